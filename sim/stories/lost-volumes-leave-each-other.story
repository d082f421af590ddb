# The records of all users of a volume are lost, and its plugin: each unmounts its own, and what was staged is unmounted once nobody has it.
# covers R-21 R-45
heal 300000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 0
at 0 assign a
at 0 assign b
at 1000 crash 1000
at 1500 torn_flip volume a/data
at 1500 torn_flip volume b/data
at 2500 remove disks
expect quarantined volume a/data 1
expect quarantined volume b/data 1
expect performs volume a/data UNMOUNT 1
expect performs volume b/data UNMOUNT 1
always mounted a/data no
always mounted b/data no
always staged a/data no
always claimed a/data no
always claimed b/data no
always status a failed
always status b failed
