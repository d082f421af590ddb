# After a reboot a foreign process has the journaled pid: it is neither believed nor signalled.
# covers R-11 R-16
heal 30000
alloc a
task a/main
alloc b
task b/main
at 0 assign a
at 500 assign b
at 1000 stop a
at 1001 boot 2000
expect daemons 2
expect starts a/main 1
expect exit a/main unknown
always state task a/main DEAD
always starts b/main 2
always ends b/main 1
always state task b/main RUNNING
always starts a/main at_most 2
