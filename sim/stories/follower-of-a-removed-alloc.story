# An alloc comes while the one it replaces is being removed, whose last hooks take their time: it goes on behind them.
# covers R-07 R-35
heal 60000
alloc a hooks 1 0 1 1
task a/main
alloc b after a
task b/main
alloc c after a
task c/main
at 0 assign a
at 1000 destroy a
fate SLOW alloc a HOOK 2 ms 1000
fate ERR alloc a HOOK 3
when alloc a POSTRUN then assign b
when alloc a DESTROYING then assign c
when alloc b WAITING then crash 200
expect first ends a/main then starts b/main
expect first ends a/main then starts c/main
always state alloc a absent
always starts b/main 1
always starts c/main 1
always status b running
always status c running
