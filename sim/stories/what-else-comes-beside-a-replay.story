# All tasks are to run again: in the same turn one fails for good, after a crash the record of the only one is lost, or a volume is not to be had under one that still ends.
# covers R-04 R-33
seed 1
heal 60000
batching drawn
plugin disks stages
alloc a delay 1000
task a/main attempts 0
task a/side dies 500
alloc b
task b/main dies 4000
claim b/data plugin disks disk 0
alloc c
task c/main dies 9000 kill 20000
claim c/data plugin disks disk 1
fate ERR(permanent) volume c/data STAGE 2
at 0 assign a
at 3000 exit a/main 1
at 3005 replay a
at 10000 assign b
at 12000 replay b
at 12500 crash 100
at 12550 torn_zero task b/main
at 20000 assign c
at 22000 unmount c/data
at 22500 replay c
at 23000 crash 100
expect enters alloc a REPLAYING 1
expect enters alloc a DELAYING 1
expect status a failed
expect enters alloc b REPLAYING 1
expect enters volume b/data GONE 1
expect status b failed
expect enters alloc c REPLAYING 1
expect enters volume c/data BROKEN 1
expect status c failed
expect claimed b/data no
expect claimed c/data no
expect mounted c/data no
