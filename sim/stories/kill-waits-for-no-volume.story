# Tasks are ended in their time and their alloc is told of as complete, whatever the claims of their volume wait for: a call that hangs, a plugin that is away, each other.
# covers R-40 R-47
heal 1200000
plugin disks stages
alloc a
task a/main ignores_term kill 3000
claim a/data plugin disks disk 0
alloc b
task b/main ignores_term kill 3000
claim b/data plugin disks disk 0
alloc c
task c/main ignores_term kill 3000
claim c/data plugin disks disk 0
alloc four batch
task four/main runs 100
alloc later batch
task later/main runs 100
at 0 assign a
at 0 assign b
at 0 assign c
fate HANG volume a/data UNPUBLISH 1
fate HANG volume b/data UNPUBLISH 1
fate HANG volume c/data UNPUBLISH 1
at 10000 stop a
at 20000 stop b
at 20000 stop c
at 24000 plug disks
at 24500 assign four
expect ends a/main 1
expect first ends b/main then starts four/main
expect first ends c/main then starts four/main
expect first starts four/main then performs volume b/data UNPUBLISH
always status a complete
always status b complete
always status c complete
always mounted a/data no
always mounted b/data no
always staged c/data no
always claimed a/data no
always claimed b/data no
always claimed c/data no
