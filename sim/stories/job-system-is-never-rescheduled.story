# One alloc of a system job's group, which is not replaced when it has failed for good, only asked for anew.
# covers R-08
heal 25000
kept 8
alloc a
task a/main runs 200 exits 1 attempts 0
job j a count 1 system
at 0 register j
at 5000 crash 100
at 20000 register j
expect starts a/main 2
expect kept j 2
always live j 0
always job j 0
always starts a/main at_most 2
