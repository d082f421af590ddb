# The record of an alloc with a network cannot be read: it is ended, and its network is removed.
# covers R-21 R-36
heal 30000
alloc a hooks 5 0 4 1
task a/main hooks 23 0 0 0 2
alloc b hooks 5 0 4 1
task b/main hooks 23 0 0 0 2
at 0 assign a
at 0 assign b
at 1000 crash 1000
at 1500 torn_zero alloc a
expect quarantined alloc a 1
always starts a/main 1
always status a failed
always alive a/main no
always starts b/main 1
