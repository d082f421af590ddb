# The disk is full when a failed alloc is to be replaced: it is not collected before another one is stored.
# covers R-08 R-26
heal 25000
kept 0
alloc a
task a/main runs 200 exits 1 attempts 0
job j a count 1 again 1
at 0 register j
at 5000 disk 2
expect starts a/main 2
always live j 0
always starts a/main at_most 2
