# A volume is unmounted when it has just become ready, and again between the last look at it and the start: nothing runs on the bare directory.
# covers R-32
heal 60000
plugin disks stages
plugin more stages
alloc a
task a/main attempts 3 backoff 1000
claim a/data plugin disks disk 0
alloc b
task b/main attempts 3 backoff 1000
claim b/data plugin disks disk 1
alloc c
task c/first lifecycle prestart runs 300
task c/main
claim c/data plugin disks disk 2
alloc d
task d/main
claim d/data plugin disks disk 3
alloc e
task e/main
claim e/data plugin more disk 0
at 0 assign a
when volume a/data READY after unmount a/data
at 0 assign b
when task b/main STARTING after unmount b/data
at 0 assign c
when task c/first RUNNING after unmount c/data
at 0 assign d
fate SLOW volume d/data LOOK 1 ms 5000
when task d/main LOOKING after crash 500
at 20000 assign e
fate SLOW volume e/data LOOK 1 ms 3000
at 21000 replay e
expect enters alloc e REPLAYING 1
expect notes e/main RESTARTING 0
expect notes e/main RESTART_SIGNALED 0
always starts e/main 1
always status e running
expect performs volume a/data PUBLISH 2
expect performs task b/main DRIVER_START 2
expect performs volume b/data PUBLISH 2
expect performs volume c/data PUBLISH 2
expect starts d/main 1
always starts a/main 1
always starts b/main 1
always starts c/main 1
always mounted a/data yes
always mounted b/data yes
always mounted c/data yes
always status a running
always status b running
always status c running
always status d running
