# A template that says something else has its script run once, one change behind the other, again where the daemon died with it, and one that fails is the end of its task where that is asked for.
# covers R-31
heal 60000
alloc a
task a/main hooks 130 128 0 0 128 attempts 0
alloc b
task b/main hooks 130 128 2 0 128 attempts 3
alloc c
task c/main hooks 130 128 0 0 128 attempts 3 delay 3000
alloc d
task d/main hooks 130 128 0 0 128 attempts 3
alloc e
task e/main hooks 130 128 0 0 128 attempts 0
fate SLOW task a/main SCRIPT 1 ms 2000
fate SLOW task a/main SCRIPT 3 ms 5000
fate ERR task b/main SCRIPT 1
fate ERR(permanent) task b/main SCRIPT 2
fate ERR(permanent) task c/main SCRIPT 1
fate ERR(permanent) task d/main SCRIPT 1
fate SLOW task e/main DRIVER_NOTIFY 1 ms 5000
fate SLOW task e/main SCRIPT 1 ms 5000
at 0 assign c
at 0 assign d
at 0 assign e
at 2000 change c/main 3
at 2000 change d/main 3
at 7000 change e/main 1
at 7100 change e/main 3
at 0 assign a
at 0 assign b
at 1000 change a/main 3
at 1500 change a/main 3
at 1600 change a/main 1
at 6000 change a/main 3
at 8000 crash 1000
at 2000 change b/main 3
at 4000 change b/main 3
always hups a/main 1
expect scripts a/main 4
always scripts a/main at_least 3
expect scripts b/main at_most 2
expect notes a/main HOOK_MESSAGE 3
expect notes b/main HOOK_FAILED 2
expect enters task b/main PREKILL 1
always hups e/main 1
expect scripts e/main 2
always scripts e/main at_least 1
always starts a/main 1
always starts c/main 1
always starts d/main 1
always starts e/main 1
expect state task c/main DEAD
expect state task d/main DEAD
always state task e/main RUNNING
always starts b/main 1
always state task a/main RUNNING
expect state task b/main DEAD
