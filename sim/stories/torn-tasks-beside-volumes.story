# The records of an alloc's only task, or of its last one, are lost while it holds a volume: the volume is let go.
# covers R-21 R-45
heal 60000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
task b/last lifecycle poststop runs 5000
claim b/data plugin disks disk 1
alloc c
task c/main
claim c/data plugin disks disk 2
at 0 assign b
at 1000 stop b
when task b/last RUNNING after crash 500
when task b/last RUNNING after torn_cut task b/last
at 5000 assign a
fate SLOW alloc a HOOK 1 ms 1000
fate SLOW alloc a HOOK 2 ms 1000
at 5500 crash 500
at 5600 torn_zero task a/main
at 10000 assign c
fate SLOW volume c/data STAGE 1 ms 1000
at 10500 crash 500
at 10600 torn_flip task c/main
expect quarantined task a/main 1
expect quarantined task b/last 1
expect quarantined task c/main 1
always starts a/main 0
always starts c/main 0
always alive b/last no
always status a failed
always status b failed
always status c failed
always claimed a/data no
always claimed b/data no
always claimed c/data no
always mounted b/data no
always staged b/data no
always staged c/data no
