# No process can be made, the program cannot be executed, the driver fails: each is told, none runs twice.
# covers R-13 R-69
heal 60000
alloc a
task a/main attempts 3
alloc b
task b/main attempts 3
alloc c
task c/main attempts 3
alloc d
task d/main attempts 1
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
fate FORK task a/main DRIVER_START 1
fate EXEC task b/main DRIVER_START 1
fate ERR(permanent) task c/main DRIVER_START 1
fate ERR task d/main DRIVER_START 1
fate ERR task d/main DRIVER_START 2
expect enters task a/main BACKOFF 1
expect starts b/main 0
expect starts c/main 0
expect starts d/main 0
expect status b failed
expect status c failed
expect status d failed
always starts a/main 1
always status a running
always starts b/main at_most 1
