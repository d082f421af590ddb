# What is stored of a job cannot be read: its payloads go on, and are its own again when it is registered again.
# covers R-21
heal 8000
kept 8
alloc a
task a/main
job j a count 2
at 0 register j
at 500 torn_job j
at 600 crash 100
expect starts a/main 2
always live j 2
