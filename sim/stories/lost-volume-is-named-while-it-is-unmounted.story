# The record of a volume is lost; while it is unmounted without its plugin, a claim that had inherited the stage leaves and names it.
# covers R-21 R-42
heal 300000
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
fate SLOW alloc b HOOK 1 ms 60000
fate SLOW alloc b HOOK 2 ms 100000
fate SLOW volume a/data UNMOUNT 1 ms 5000
at 0 assign a
at 0 assign c
at 1000 assign b
at 2000 stop c
at 3000 crash 1000
at 3500 torn_flip volume a/data
when volume a/data UNPUBLISHING then stop b
expect quarantined volume a/data 1
expect performs volume a/data UNMOUNT 1
expect performs volume a/data UNSTAGE 1
expect performs volume b/data UNSTAGE 0
expect performs volume c/data UNSTAGE 0
expect starts b/main 0
always mounted a/data no
always staged a/data no
always claimed a/data no
always claimed b/data no
always claimed c/data no
