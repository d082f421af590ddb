# The record of a volume cannot be read: all that may have been done is undone, its alloc ends.
# covers R-21 R-45
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
at 1500 torn_flip volume a/data
expect quarantined volume a/data 1
always starts a/main 1
always alive a/main no
always mounted a/data no
always staged a/data no
always claimed a/data no
always status a failed
always first ends a/main then performs volume a/data UNPUBLISH
always ends b/main 0
