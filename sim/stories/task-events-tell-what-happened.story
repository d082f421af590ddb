# Each task shows what happened to it, once: its set-up, its start, its end, and whose order or whose end it was.
# covers R-15
heal 60000
alloc a
task a/main delay 500
alloc b batch
task b/main leader runs 1000
task b/other
alloc c batch
task c/main runs 1000
task c/side lifecycle prestart sidecar
alloc d batch
task d/main runs 1000 exits 1 attempts 0
task d/other
alloc e batch
task e/main runs 1000
alloc f
task f/main
alloc g batch
task g/main runs 1000
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 0 assign e
at 0 assign f
at 0 assign g
fate ERR(permanent) alloc e HOOK 1
fate ERR(permanent) task g/main HOOK 1
at 2000 signal f/main
at 3000 restart_task f/main
at 5000 stop a
at 10000 boot 2000
expect notes a/main RECEIVED 1
expect notes a/main TASK_SETUP 1
expect notes a/main STARTED 1
expect notes a/main KILLING 1
expect notes a/main SHUTDOWN_DELAY 1
expect notes a/main TERMINATED 1
expect notes a/main KILLED 1
expect notes b/main LEADER_DEAD 0
expect notes b/main KILLED 0
expect notes b/other LEADER_DEAD 1
expect notes b/other KILLING 1
expect notes b/other KILLED 1
expect notes c/side MAIN_DEAD 1
expect notes c/side KILLED 1
expect notes d/main NOT_RESTARTING 1
expect notes d/main KILLED 0
expect notes d/other SIBLING_FAILED 1
expect notes d/other KILLED 1
expect notes e/main SETUP_FAILURE 1
expect notes e/main TASK_SETUP 0
expect notes e/main KILLING 0
expect notes e/main KILLED 0
expect notes f/main SIGNALING 1
expect notes f/main RESTART_SIGNALED 1
expect notes f/main RESTARTING 1
expect notes f/main TERMINATED 2
expect notes f/main RESTORE_FAILED 1
expect notes g/main HOOK_FAILED 1
expect notes g/main NOT_RESTARTING 1
expect notes g/main STARTED 0
always status a complete
always status b complete
always status c complete
always status d failed
