# The daemon dies behind the last task, while the alloc delays, after its last hooks, and while it is removed.
# covers R-04 R-35
mode server
heal 60000
alloc a delay 500 hooks 1 1 1 1
task a/main hooks 7 7 7 7 7
at 0 assign a
at 2000 stop a
when alloc a DELAYING after crash 50
when alloc a POSTRUN after crash 50
when alloc a TERMINAL after crash 50
at 9000 destroy a
when alloc a DESTROYING after crash 50
when task a/main GONE before crash 50
expect daemons 6
expect enters alloc a GONE 1
always starts a/main 1
always state task a/main absent
always state alloc a absent
