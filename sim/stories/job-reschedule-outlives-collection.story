# A failed alloc is not collected before it is replaced: what is made for it knows how often that was done.
# covers R-08
heal 25000
kept 0
alloc a
task a/main runs 200 exits 1 attempts 0
job j a count 1 again 1
at 0 register j
at 2000 gc
expect starts a/main 2
always live j 0
always starts a/main at_most 2
