# An alloc is stopped while its volume waits for the next try of a stage or publish: it does not wait for that.
# covers R-44
heal 200000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 1
alloc c
task c/main
at 0 assign a
at 0 assign b
fate ERR volume a/data STAGE 0
fate ERR volume b/data PUBLISH 0
at 40000 stop a
at 40000 stop b
at 45000 assign c
expect performs volume a/data STAGE 4
expect first enters volume a/data GONE then enters alloc c PREPARING
expect first enters volume b/data GONE then enters alloc c PREPARING
always starts a/main 0
always starts b/main 0
always status a complete
always claimed a/data no
always staged a/data no
always claimed b/data no
always mounted b/data no
always staged b/data no
