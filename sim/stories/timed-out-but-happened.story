# A stage and a publish time out and happen later, when their alloc has been stopped: undone all the same.
# covers R-44
heal 1000000
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
at 0 assign a
at 0 assign b
at 0 assign c
fate LATE volume a/data STAGE 1
fate LATE volume b/data PUBLISH 1
fate HANG volume c/data STAGE 1
at 60000 stop a
at 60000 stop b
at 60000 stop c
expect starts a/main 0
expect starts b/main 0
always mounted a/data no
always staged a/data no
always claimed a/data no
always mounted b/data no
always staged b/data no
always claimed b/data no
always staged c/data no
always status a complete
