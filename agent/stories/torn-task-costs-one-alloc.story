# The record of a task cannot be read: its alloc fails through the normal end, the other one is not touched.
# covers R-21 R-38
heal 30000
alloc a
task a/main
task a/other
alloc b
task b/main
at 0 assign a
at 0 assign b
at 1000 crash 1000
at 1500 torn_cut task a/main
expect quarantined task a/main 1
expect alive a/main no
expect alive a/other no
expect starts a/main 1
expect starts a/other 1
expect status a failed
expect state alloc a TERMINAL
expect starts b/main 1
expect ends b/main 0
always alive a/main no
always alive a/other no
always starts b/main at_most 2
always status b running
