# Finished batch work is not placed again by asking for the same job again.
# covers R-01
heal 5000
kept 8
alloc a batch
task a/main runs 50
job j a count 2
at 0 register j
at 1000 register j
at 1500 crash 100
at 2000 register j
expect starts a/main 2
always live j 0
always job j 0
always starts a/main at_most 4
