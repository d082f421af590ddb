# An alloc that has not mounted yet inherits a staged volume, and leaves while its plugin is away; another one comes.
# covers R-42 R-43
heal 200000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 0
alloc c
task c/main
claim c/data plugin disks disk 0
alloc d
task d/main
claim d/data plugin disks disk 1
alloc e
task e/main
claim e/data plugin disks disk 1
alloc f
task f/main
claim f/data plugin disks disk 1
at 0 assign a
at 0 assign d
fate SLOW alloc b HOOK 1 ms 60000
fate SLOW alloc e HOOK 1 ms 60000
at 1000 assign b
at 1000 assign e
at 2000 stop a
at 2000 stop d
fate ERR plugin disks LAUNCH 2
fate ERR plugin disks LAUNCH 3
at 5000 plug disks
at 6000 stop b
at 6500 assign c
at 20000 stop e
at 20500 assign f
at 21000 crash 500
expect performs volume a/data UNSTAGE 0
expect performs volume b/data UNSTAGE 0
expect performs volume b/data CLAIM 0
expect starts b/main 0
expect starts e/main 0
always state volume b/data absent
always state volume e/data absent
always starts c/main 1
always starts f/main 1
always mounted c/data yes
always mounted f/data yes
always staged c/data yes
always claimed a/data no
always claimed b/data no
