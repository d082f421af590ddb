# Secrets are busy when a task ends: its alloc goes on, users are told, and they are removed as soon as they can be.
# covers R-34 R-08
heal 600000
alloc a batch
task a/main runs 1000 attempts 0 hooks 6 0 0 0 6
task a/last lifecycle poststop runs 500
alloc b
task b/main hooks 2 0 0 0 2
alloc c
task c/main hooks 2 0 0 0 2
alloc d batch
task d/main runs 1000 attempts 0 hooks 2 0 0 0 2
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 4900 stop b
at 3500 stop c
when task a/main OWING nth 2 after crash 300
when task b/main OWING then boot 1000
when task c/main OWING then destroy c
when task d/main OWING then signal d/main
when task d/main OWING nth 2 then restart_task d/main
fate ERR task a/main HOOK 3
fate ERR task a/main HOOK 5
fate ERR task a/main HOOK 6
fate ERR task a/main HOOK 7
fate ERR task b/main HOOK 2
fate ERR task b/main HOOK 3
fate ERR task c/main HOOK 2
fate ERR task d/main HOOK 2
fate ERR task d/main HOOK 3
expect notes a/main HOOK_FAILED 1
expect enters task a/main OWING 4
expect first enters alloc a TERMINAL then enters task a/main DEAD
expect starts a/last 1
expect notes b/main HOOK_FAILED 1
expect enters task b/main OWING 2
expect enters task c/main OWING 1
expect enters task c/main DEAD 0
expect refused task d/main SIGNAL 1
expect refused task d/main RESTART 1
expect status a complete
expect status b complete
expect status d complete
always state task a/main DEAD
always state task b/main DEAD
always state task d/main DEAD
always starts a/last 1
