# A user stops one alloc: another takes its index, with the same commit.
# covers R-22
heal 5000
kept 4
alloc a
task a/main
job j a count 2
at 0 register j
at 500 replace j 1
expect starts a/main 3
expect kept j 1
always live j 2
always job j 0
