# Hooks before a start fail, for now and for good, hang, and are told to end: no payload without all of them.
# covers R-05 R-32 R-69
heal 1500000
alloc a
task a/main attempts 2 backoff 500
alloc b
task b/main attempts 2
alloc c
task c/main attempts 1
alloc d
task d/main attempts 0
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
fate ERR task a/main HOOK 2
fate DONE+ERR task a/main HOOK 4
fate ERR(permanent) task b/main HOOK 3
fate HANG task c/main HOOK 1
fate SLOW task d/main HOOK 2 ms 5000
at 1000 stop d
expect enters task a/main BACKOFF 2
expect starts b/main 0
expect status b failed
expect enters task c/main BACKOFF 1
expect starts d/main 0
always starts a/main 1
always starts c/main 1
always state task d/main DEAD
always status d complete
always starts d/main at_most 1
always starts b/main at_most 1
