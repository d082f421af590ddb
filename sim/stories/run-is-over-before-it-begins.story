# A limit that is met while an alloc waits, is prepared or mounts: nothing of it is ever started.
# covers R-08
heal 700000
plugin disks
alloc before
task before/main
alloc a batch limit 2000 after before
task a/main
alloc b batch limit 2000
task b/main
alloc c batch limit 2000
task c/main
claim c/data plugin disks disk 0
fate ERR plugin disks LAUNCH 0
fate HANG alloc b HOOK 0
at 0 assign before
at 3000 assign a
at 3000 assign b
at 3000 assign c
expect enters alloc a PREPARING 0
expect enters alloc b RUNNING 0
expect enters alloc c MOUNTING 1
expect enters alloc c RUNNING 0
always starts a/main 0
always starts b/main 0
always starts c/main 0
always status a complete
always status b complete
always status c complete
always claimed c/data no
always starts before/main 1
