# Records of members are lost while their allocs run hooks, delay, end, run their last tasks, release and go.
# covers R-21
heal 120000
plugin disks stages
alloc a hooks 1 1 1 1
task a/main
task a/other
alloc b delay 3000
task b/main
task b/other
alloc c
task c/main
task c/last lifecycle poststop
alloc d
task d/main
claim d/data plugin disks disk 0
claim d/more plugin disks disk 1
alloc e
task e/main
claim e/data plugin disks disk 2
alloc f
task f/main
claim f/data plugin disks disk 3
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 0 assign e
at 3000 stop a
when alloc a PREKILL after crash 100
when alloc a PREKILL after torn_zero task a/main
at 5000 stop b
when alloc b DELAYING after crash 100
when alloc b DELAYING after torn_cut task b/main
at 10000 stop c
when task c/last RUNNING after crash 100
when task c/last RUNNING after torn_flip task c/last
at 20000 stop d
when volume d/data UNPUBLISHING after crash 100
when volume d/data UNPUBLISHING after torn_cut volume d/data
when volume d/data UNPUBLISHING after torn_cut volume d/more
at 30000 crash 1000
at 30100 torn_zero task e/main
at 30100 torn_zero volume e/data
at 40000 assign f
when volume f/data CLAIMING after crash 100
when volume f/data CLAIMING after torn_flip volume f/data
expect quarantined task a/main 1
expect quarantined task b/main 1
expect quarantined task c/last 1
expect quarantined volume d/data 1
expect quarantined task e/main 1
expect quarantined volume f/data 1
always state alloc a TERMINAL
always state alloc b TERMINAL
always state alloc c TERMINAL
always state alloc d TERMINAL
always state alloc e TERMINAL
always state alloc f TERMINAL
always alive c/last no
always claimed d/data no
always claimed e/data no
always claimed f/data no
always starts f/main 0
always alive a/main no
always alive b/main no
always claimed d/more no
always mounted d/data no
