# After a restart no look at a mount succeeds any more: after half an hour the claim is given up, what runs on it is left alone.
# covers R-32 R-69
heal 4000000
plugin disks stages
alloc a
task a/main attempts 3
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 1
at 0 assign a
at 0 assign b
at 1000 crash 500
fate ERR volume a/data LOOK 0
fate ERR volume b/data LOOK 0
fate SLOW volume a/data LOOK 1 ms 1
fate SLOW volume b/data LOOK 1 ms 1
at 60000 crash 500
at 100000 stop b
at 3000000 exit a/main 1
expect performs volume a/data LOOK at_least 30
expect enters volume a/data BROKEN 1
expect starts a/main 1
expect status a failed
always mounted a/data no
always claimed a/data no
always status b complete
always mounted b/data no
always staged b/data no
always claimed b/data no
