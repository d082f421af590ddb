# A job is purged while its allocs start: all of it goes, whenever the daemon dies.
# covers R-22
heal 5000
alloc a
task a/main
job j a count 2
at 0 register j
when task a/main STARTING after purge j
at 1000 crash 100
always live j 0
always kept j 0
always job j -1
