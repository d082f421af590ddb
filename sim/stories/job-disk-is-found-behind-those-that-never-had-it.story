# While an alloc ends others come and go in its place, more than are kept: the last of them still finds the disk.
# covers R-07
heal 20000
kept 0
alloc a sticky
task a/main ignores_term kill 4000
job j a
at 0 register j 1
at 1000 register j 2
at 1100 register j 3
at 1200 deregister j
at 2000 register j 4
at 2100 gc
at 2500 register j 5
at 2600 crash 100
expect starts a/main 2
always live j 1
