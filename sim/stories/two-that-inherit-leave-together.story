# Two that have not mounted yet inherit a staged volume and leave in one turn: one of them unstages, and hears while it does that it is to.
# covers R-42
seed 1
heal 200000
batching drawn
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
at 0 assign a
fate SLOW alloc b HOOK 1 ms 60000
fate SLOW alloc c HOOK 1 ms 60000
at 1000 assign b
at 1000 assign c
at 2000 stop a
at 6000 stop b
at 6000 stop c
expect performs volume a/data UNSTAGE 0
expect performs volume b/data UNSTAGE 0
expect performs volume c/data UNSTAGE 1
always staged c/data no
always claimed a/data no
