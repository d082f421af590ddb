# What waits for its predecessor can be stopped, removed and lost; what is asked of it otherwise is refused.
# covers R-07 R-21
heal 30000
alloc a
task a/main
alloc b after a
task b/main
alloc c after a delay 100
task c/main
alloc d after a
task d/main
task d/side lifecycle prestart sidecar
at 0 assign a
at 500 assign b
at 500 assign c
at 500 assign d
at 600 restart b
at 600 restart_task b/main
at 600 signal b/main
at 1000 stop b
at 1000 destroy c
at 2000 torn_zero task d/main
at 2001 crash 200
expect refused alloc b RESTART 1
expect refused task b/main RESTART 1
expect refused task b/main SIGNAL 1
expect quarantined task d/main 1
always state task b/main DEAD
always status b complete
always state alloc c absent
always status d failed
always starts b/main 0
always starts c/main 0
always starts d/main 0
always starts a/main 1
