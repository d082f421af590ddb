# The record of a volume is lost and its plugin with it: what the specification names is unmounted without one, once nothing may be under way.
# covers R-21 R-45
heal 300000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
at 1000 crash 1000
at 1500 torn_flip volume a/data
at 2500 remove disks
expect quarantined volume a/data 1
expect performs volume a/data UNMOUNT 1
expect performs volume a/data UNMOUNT_STAGING 1
expect performs volume a/data UNPUBLISH 0
expect first enters plugin disks GONE then performs volume a/data UNMOUNT
always starts a/main 1
always alive a/main no
always mounted a/data no
always staged a/data no
always claimed a/data no
always status a failed
