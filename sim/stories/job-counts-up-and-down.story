# More allocs are placed beside those that run, fewer end the last ones.
# covers R-22
heal 5000
kept 8
alloc a
task a/main
job j a count 1
at 0 register j
at 500 count j 3
at 1000 count j 1
expect starts a/main 3
expect kept j 2
expect job j 2
always live j 1
