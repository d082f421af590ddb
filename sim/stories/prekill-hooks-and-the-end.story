# A payload ends by itself, and the daemon dies, while the hooks before its kill run; hooks fail there, too.
# covers R-13 R-34
heal 700000
alloc a
task a/main hooks 7 7 7 7 7
alloc b
task b/main hooks 7 7 7 7 7 delay 1000
alloc c
task c/main hooks 7 0 7 0 7 delay 1000
at 0 assign a
at 0 assign b
at 0 assign c
at 1000 stop a
at 1000 stop b
at 1000 stop c
when task a/main PREKILL then exit a/main 4
when task b/main PREKILL then crash 100
fate ERR task c/main HOOK 4
fate ERR task c/main HOOK 5
fate ERR task c/main HOOK 6
when task c/main DELAYING then exit c/main 5
expect exit c/main 5
expect performs task b/main DRIVER_STOP 1
always exit a/main 4
always exit b/main 143
always status a complete
always status b complete
always status c complete
always alive a/main no
always alive b/main no
always starts b/main at_most 1
