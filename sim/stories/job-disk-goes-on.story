# The disk of an alloc goes on with the next one in its place, which begins when it has ended; until that has the disk the directory stays, be it asked to go or one too many.
# covers R-07
heal 20000
kept 0
alloc a sticky
task a/main ignores_term kill 1500
job j a
fate SLOW alloc a HOOK 4 ms 1000
fate SLOW alloc a HOOK 5 ms 1000
at 0 register j 1
at 4000 register j 2
at 4500 register j 3
at 5700 gc
at 6700 gc
at 7100 crash 100
expect starts a/main 2
expect job j 2
always live j 1
