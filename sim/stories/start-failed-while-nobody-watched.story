# The program cannot be executed and the daemon dies before it hears so: the reason is told, no end is made up.
# covers R-09 R-13
heal 60000
alloc a
task a/main attempts 3
alloc b
task b/main attempts 3
alloc c
task c/main attempts 3
at 0 assign a
at 0 assign b
at 20000 assign c
fate EXEC task a/main DRIVER_START 1
fate EXEC task b/main DRIVER_START 1
fate EXEC task c/main DRIVER_START 1
fate ERR task b/main DRIVER_RECOVER 1
when task a/main STARTING then stop b
at 8 crash 300
at 20008 boot 1000
expect daemons 3
expect notes a/main DRIVER_FAILURE 1
expect notes a/main TERMINATED 0
expect notes a/main NOT_RESTARTING 1
expect notes b/main DRIVER_FAILURE 1
expect notes b/main TERMINATED 0
expect notes c/main DRIVER_FAILURE 1
expect notes c/main RESTORE_FAILED 0
expect notes c/main TERMINATED 0
expect starts a/main 0
expect starts b/main 0
expect starts c/main 0
expect status a failed
expect status c failed
