# A claim that waits for its turn inherits a staged volume, is let go while the plugin is away, and another one comes.
# covers R-42 R-43
heal 200000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0 exclusive
alloc b
task b/main
claim b/data plugin disks disk 0 exclusive
alloc c
task c/main
claim c/data plugin disks disk 0 exclusive
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
at 1000 assign b
at 2000 stop a
at 2018 plug disks
fate ERR plugin disks LAUNCH 2
when volume b/data QUEUED then stop b
when volume b/data DRAINING then assign c
fate SLOW alloc e HOOK 1 ms 150000
at 60000 assign e
at 61000 stop d
at 62000 plug disks
at 66500 stop e
at 66600 assign f
expect performs volume a/data UNSTAGE 0
expect performs volume b/data UNSTAGE 0
expect performs volume e/data UNSTAGE 0
expect state volume b/data absent
expect starts b/main 0
expect starts c/main 1
expect mounted c/data yes
expect claimed b/data no
always state volume e/data absent
always starts f/main 1
always mounted f/data yes
always claimed a/data no
