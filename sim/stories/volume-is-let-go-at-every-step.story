# Allocs are stopped while their volumes are claimed, queued, staged, published and looked at.
# covers R-43 R-44 R-40
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
claim c/data plugin disks disk 2
alloc d
task d/main
claim d/data plugin disks disk 3
alloc e
task e/main
claim e/data plugin disks disk 3
alloc f
task f/main
claim f/data plugin disks disk 3
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 0 assign e
at 500 assign f
when volume a/data CLAIMING then stop a
when volume b/data STAGING then stop b
when volume c/data PUBLISHING then stop c
fate SLOW volume a/data CLAIM 1 ms 300
fate SLOW volume b/data STAGE 1 ms 300
fate SLOW volume c/data PUBLISH 1 ms 300
fate ERR volume d/data STAGE 1
at 2000 crash 500
fate SLOW volume e/data LOOK 1 ms 2000
when volume e/data VERIFYING then stop e
when volume e/data VERIFYING then detach e/data
fate ERR volume f/data LOOK 1
expect starts a/main 0
expect starts b/main 0
expect starts c/main 0
always starts d/main 1
always ends d/main 0
always claimed a/data no
always claimed b/data no
always staged b/data no
always claimed c/data no
always mounted c/data no
always staged c/data no
always claimed e/data no
always mounted e/data no
always mounted d/data yes
always mounted f/data yes
always staged d/data yes
