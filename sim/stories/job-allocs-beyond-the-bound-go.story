# Of allocs that have ended as many are kept as the node is to keep.
# covers R-22
heal 8000
kept 2
alloc a batch
task a/main runs 100
job j a count 3
at 0 register j 1
at 1000 register j 2
expect starts a/main 6
expect kept j 2
always live j 0
always job j 1
