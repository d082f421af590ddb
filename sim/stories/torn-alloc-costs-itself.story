# The record of an alloc cannot be read: it is made again from what is left in order to end it.
# covers R-21 R-38
heal 30000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
at 0 assign a
at 0 assign b
at 1000 crash 1000
at 1500 torn_zero alloc a
expect quarantined alloc a 1
always starts a/main 1
always alive a/main no
always mounted a/data no
always staged a/data no
always claimed a/data no
always status a failed
always starts b/main 1
always ends b/main 0
