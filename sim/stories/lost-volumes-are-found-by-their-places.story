# The records of volumes and the specification that names them are lost: each is found where it is mounted, unmounted and let go.
# covers R-21 R-45
heal 120000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
claim a/logs plugin disks disk 1
alloc b
task b/main
claim b/data plugin disks disk 0
alloc c
task c/main
claim c/kept plugin disks disk 2
claim c/lost plugin disks disk 3
at 0 assign a
at 0 assign b
at 0 assign c
at 1000 crash 1000
at 1500 torn_flip volume a/data
at 1500 torn_zero volume a/logs
at 1500 torn_spec a
at 1500 torn_cut volume c/lost
at 1500 torn_spec c
expect quarantined volume a/data 1
expect quarantined volume a/logs 1
expect quarantined volume c/lost 1
expect performs volume a/data UNMOUNT 1
expect performs volume a/data UNMOUNT_STAGING 0
expect performs volume a/logs UNMOUNT 1
expect performs volume a/logs UNMOUNT_STAGING 1
expect performs volume c/lost UNMOUNT 1
expect performs volume c/kept UNMOUNT 0
expect performs volume c/kept UNPUBLISH 1
always starts a/main 1
always starts c/main 1
always first ends a/main then performs volume a/data UNMOUNT
always first ends c/main then performs volume c/lost UNMOUNT
always mounted a/data no
always mounted a/logs no
always mounted c/lost no
always claimed a/data no
always claimed a/logs no
always claimed c/lost no
always status a failed
always status c failed
always starts b/main 1
always mounted b/data yes
