# An alloc waits for the one it replaces, which does not want to end, over a crash.
# covers R-07
heal 30000
alloc a
task a/main ignores_term kill 5000
alloc b after a
task b/main
at 0 assign a
at 1000 assign b
at 1500 stop a
at 2000 crash 1000
expect enters alloc b WAITING 1
expect performs alloc b WATCH_PREVIOUS 2
always first enters alloc a TERMINAL then enters alloc b PREPARING
always first ends a/main then starts b/main
always exit a/main 137
always starts b/main 1
always state task b/main RUNNING
