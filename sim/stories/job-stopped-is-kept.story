# A stopped job and its last allocs are kept until they are collected, and it runs again if asked to.
# covers R-22
heal 6000
kept 4
alloc a
task a/main
job j a count 2
at 0 register j
at 500 deregister j
at 1000 crash 100
at 2000 gc
at 3000 register j
expect starts a/main 4
always live j 2
