# The plugin never comes up: its first user waits a minute and fails; a restored one waits as long as it takes.
# covers R-39 R-69
heal 400000
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
fate ERR plugin disks LAUNCH 1
fate ERR plugin disks LAUNCH 2
fate ERR plugin disks LAUNCH 3
fate ERR plugin disks LAUNCH 4
at 0 assign a
at 70000 assign b
when volume b/data QUEUED then crash 100
at 72000 detach b/data
at 0 assign c
when volume c/data QUEUED then stop c
expect starts a/main 0
expect status a failed
expect claimed a/data no
expect refused volume b/data DETACH 1
always starts b/main 1
always mounted b/data yes
always starts c/main 0
always claimed c/data no
always status c complete
