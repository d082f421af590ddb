# Crashes, a reboot and hooks that fail around the network of an alloc: its tasks run in it, and none is left.
# covers R-30 R-36 R-37
heal 60000
alloc a hooks 5 0 4 1
task a/main hooks 23 0 0 0 2 attempts 5
task a/side hooks 23 0 0 0 2 attempts 5
alloc b hooks 5 0 4 1
task b/main hooks 23 0 0 0 2
alloc c hooks 5 0 4 1
task c/main runs 1000 hooks 23 0 0 0 2 attempts 0
alloc d hooks 5 0 4 1
task d/main hooks 23 0 0 0 2
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
when task a/main RUNNING then boot 1000
at 4000 crash 100
fate ERR(permanent) alloc b HOOK 2
fate ERR alloc c HOOK 3
when alloc c POSTRUN then crash 200
when alloc d PREPARING then crash 100
at 6000 stop d
when alloc d POSTRUN then boot 500
expect starts b/main 0
expect status b failed
expect state alloc b TERMINAL
expect state alloc c TERMINAL
expect state alloc d TERMINAL
always state task a/main RUNNING
always state task a/side RUNNING
always first enters task c/main DEAD then enters alloc c POSTRUN
always first enters task d/main DEAD then enters alloc d POSTRUN
