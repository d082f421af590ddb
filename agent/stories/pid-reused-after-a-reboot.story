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
expect state task a/main DEAD
expect exit a/main unknown
expect starts b/main 2
expect ends b/main 1
expect state task b/main RUNNING
always starts b/main at_most 2
always ends b/main at_most 1
always starts a/main at_most 2
