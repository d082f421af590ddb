# After a restart the driver cannot look at what is there: it looks again, and leaves alone what runs well.
# covers R-32 R-13
heal 400000
alloc a
task a/main attempts 0
alloc b
task b/main attempts 0 ignores_term kill 1000
at 0 assign a
at 0 assign b
at 1000 crash 500
fate ERR task a/main DRIVER_RECOVER 1
fate ERR task a/main DRIVER_RECOVER 2
fate ERR task a/main DRIVER_RECOVER 3
fate SLOW task b/main DRIVER_RECOVER 1 ms 3000
at 2000 restart_task b/main
at 2000 signal b/main
at 2100 stop b
at 2200 crash 100
expect refused task b/main RESTART 1
expect refused task b/main SIGNAL 1
always starts a/main 1
always ends a/main 0
always exit b/main 137
always status b complete
always status a running
