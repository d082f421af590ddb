# Three allocs use one volume and leave together, one after the other, and with a crash: unstaged once, by the last.
# covers R-42 R-43
heal 60000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 0
alloc c
task c/main ignores_term kill 1500
claim c/data plugin disks disk 0
at 0 assign a
at 0 assign b
at 0 assign c
at 1000 stop a
at 1000 stop b
at 1100 stop c
when volume a/data UNPUBLISHING then crash 200
expect performs volume c/data UNSTAGE 1
expect performs volume a/data UNSTAGE 0
expect performs volume b/data UNSTAGE 0
always staged c/data no
always claimed a/data no
always claimed b/data no
always claimed c/data no
