# A network namespace that is taken away under living tasks is noticed by the next daemon: all of them start again, in lifecycle order, in a new one.
# covers R-37
heal 60000
alloc a hooks 5 0 4 1
task a/init lifecycle prestart runs 500 hooks 23 0 0 0 2
task a/main leader hooks 23 0 0 0 2
task a/side lifecycle poststart sidecar hooks 23 0 0 0 2
alloc b hooks 5 0 4 1
task b/main hooks 23 0 0 0 2
alloc c hooks 5 0 4 1
task c/main runs 200 exits 1 attempts 3 backoff 20000 hooks 23 0 0 0 2
alloc d hooks 5 0 4 1
task d/main attempts 0 runs 5500 exits 1 hooks 23 0 0 0 2
task d/other hooks 23 0 0 0 2
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
fate SLOW task d/main HOOK 5 ms 9000
fate SLOW task d/main HOOK 6 ms 9000
at 5000 net_lost a
at 5000 net_lost c
at 5000 net_lost d
at 6000 crash 100
at 15000 crash 100
at 20000 net_lost b
at 20100 boot 1000
expect enters alloc a REPLAYING 1
expect enters alloc b REPLAYING 0
expect enters alloc c REPLAYING 0
expect enters alloc d REPLAYING 0
expect starts a/init 2
expect starts a/main 3
expect starts a/side 3
expect starts b/main 2
expect notes a/main RESTART_SIGNALED 1
expect notes a/side RESTART_SIGNALED 1
always state task a/main RUNNING
always state task a/side RUNNING
always state task b/main RUNNING
