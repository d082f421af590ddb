# Users of one volume come and leave while another one's slow call is under way: each in its turn, unstaged once.
# covers R-42
heal 120000
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
claim d/data plugin disks disk 0
alloc e
task e/main
claim e/data plugin disks disk 0
at 0 assign a
at 500 assign b
at 500 assign c
fate SLOW volume b/data PUBLISH 1 ms 500
at 800 stop c
at 2000 assign d
fate SLOW volume d/data PUBLISH 1 ms 2000
at 2500 stop a
at 2600 stop b
at 6000 stop d
fate SLOW volume d/data UNPUBLISH 1 ms 2000
at 7000 assign e
at 7100 detach e/data
at 12000 stop e
expect starts c/main 0
expect performs volume e/data UNSTAGE 1
expect performs volume a/data UNSTAGE 0
expect performs volume b/data UNSTAGE 0
expect performs volume d/data UNSTAGE 0
expect refused volume e/data DETACH 1
always starts a/main 1
always starts b/main 1
always starts d/main 1
always starts e/main 1
always staged e/data no
always claimed a/data no
always claimed b/data no
always claimed c/data no
always claimed d/data no
always claimed e/data no
