# After a reboot tasks wait for the server: they are stopped, asked for restarts, crashed and rebooted again.
# covers R-03
mode server
heal 120000
alloc a
task a/main hooks 7 7 7 7 7
alloc b
task b/main
alloc c
task c/main attempts 3 backoff 60000
at 0 assign a
at 0 assign b
at 0 assign c
at 500 exit c/main 1
at 1000 server down
at 1001 boot 1000
at 3000 restart_task a/main
at 3000 signal a/main
at 3100 stop b
at 4000 crash 100
at 5000 boot 1000
at 90000 server up
expect refused task a/main RESTART 1
expect refused task a/main SIGNAL 1
always starts a/main 2
always starts b/main 1
always starts c/main 2
always state task b/main DEAD
always status a running
always status c running
