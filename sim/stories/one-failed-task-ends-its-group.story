# A task has used up its attempts: its siblings are ended by the normal way, with hooks and delays.
# covers R-33
heal 60000
plugin disks stages
alloc a hooks 1 1 1 1
task a/bad runs 500 exits 1 attempts 0
task a/good
alloc b delay 1000
task b/bad runs 1500 exits 1 attempts 0
task b/good
alloc c
task c/init lifecycle prestart runs 500 exits 1 attempts 1 backoff 100
task c/main
task c/last lifecycle poststop runs 100
alloc d
task d/bad runs 4500 exits 1 attempts 0
task d/good
claim d/data plugin disks disk 0
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
when alloc a PREKILL then crash 100
when alloc b DELAYING then crash 100
when alloc d RELEASING then crash 100
always status a failed
always status b failed
always status c failed
always status d failed
always exit a/good 143
always exit b/good 143
always starts c/init 2
always starts c/main 0
always starts c/last 1
always claimed d/data no
always mounted d/data no
