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
always alive a/main no
always alive a/other no
always starts a/main 1
always starts a/other 1
always status a failed
always state alloc a TERMINAL
always starts b/main 1
always ends b/main 0
always status b running
