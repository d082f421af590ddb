# A daemon that comes back while a stop hook is owed waits for the rest of the pause, and does not try it at once.
# covers R-08
heal 60000
alloc a batch
task a/main runs 1000 attempts 0 hooks 2 0 0 0 2
alloc b
task b/main
fate ERR task a/main HOOK 2
at 0 assign a
when task a/main OWING after crash 1
at 1200 assign b
expect daemons 2
expect enters task a/main OWING 1
expect first starts b/main then enters task a/main DEAD
always starts a/main at_most 1
