# Volumes are let go while they are staged, published and looked at, and the daemon dies before the outcome is known.
# covers R-43 R-44
heal 120000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 1
alloc c
task c/main
claim c/data plugin disks disk 2
alloc d
task d/main
claim d/data plugin disks disk 3
at 0 assign c
at 1000 crash 100
at 1000 assign a
at 1000 assign b
at 1000 assign d
fate SLOW volume a/data STAGE 1 ms 3000
fate SLOW volume b/data PUBLISH 1 ms 3000
fate SLOW volume c/data LOOK 1 ms 3000
fate ERR volume d/data CLAIM 1
at 2000 stop a
at 2000 stop b
at 2000 stop c
at 2000 stop d
at 2500 crash 100
expect daemons 3
expect starts a/main 0
expect starts b/main 0
expect starts d/main 0
always starts c/main 1
always staged a/data no
always claimed a/data no
always mounted b/data no
always staged b/data no
always claimed b/data no
always mounted c/data no
always staged c/data no
always claimed c/data no
always claimed d/data no
always status a complete
always status c complete
