# Work of a sysbatch job is done once for each version, well or not, and not again by asking for the same.
# covers R-01
heal 5000
kept 8
alloc a batch
task a/main runs 50 exits 1 attempts 0
job j a count 1 system
at 0 register j
at 1000 register j
at 1500 crash 100
at 2000 register j
at 3000 register j 1
expect starts a/main 2
always live j 0
always job j 1
always starts a/main at_most 2
