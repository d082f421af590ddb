# Two allocs let go of one volume while a process keeps its mounts busy: who fails pauses, whoever wakes it.
# covers R-42
heal 60000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 0
alloc c
task c/main
claim c/data plugin disks disk 0
at 0 assign a
at 0 assign b
at 0 assign c
at 1000 busy a/data 20000
at 1000 busy b/data 20000
at 2000 stop a
at 2000 stop b
at 2500 stop c
at 4000 crash 300
expect performs volume a/data UNPUBLISH at_most 6
expect performs volume b/data UNPUBLISH at_most 6
expect performs volume c/data UNPUBLISH 1
expect first enters volume c/data GONE then enters volume a/data GONE
expect enters alloc a TERMINAL 1
expect enters alloc b TERMINAL 1
always mounted a/data no
always mounted b/data no
always mounted c/data no
always staged a/data no
