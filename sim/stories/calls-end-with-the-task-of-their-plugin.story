# A plugin that is a task dies in a call: nothing of that goes on, and what undoes it is called as soon as the next one is ready, not when another's call would be over.
# covers R-44 R-49
heal 200000
cut happens
plugin disks stages
alloc p
task p/driver attempts 9 backoff 1000 serves disks
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 1
alloc c
task c/main
claim c/data plugin disks disk 2
alloc late
task late/main
alloc later
task later/main
at 0 assign p
at 1000 assign a
at 1000 assign b
fate HANG volume a/data STAGE 1
fate SLOW volume b/data STAGE 1 ms 60000
at 2000 stop a
at 3000 crash 1000
at 3500 plug disks
at 4500 stop b
at 20000 assign late
expect first performs volume a/data UNCLAIM then starts late/main
expect first performs volume b/data UNCLAIM then starts late/main
at 30000 assign c
fate LATE volume c/data PUBLISH 1
at 31000 stop c
at 32000 plug disks
at 50000 assign later
expect first performs volume c/data UNCLAIM then starts later/main
expect enters plugin disks STOPPED 2
expect starts a/main 0
expect starts b/main 0
expect starts c/main 0
always mounted c/data no
always staged a/data no
always staged b/data no
always staged c/data no
always claimed a/data no
always claimed b/data no
always claimed c/data no
