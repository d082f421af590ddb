# A volume has the name of a task, and its record is lost: the volume is undone, and its task is ended as others are.
# covers R-21 R-45
heal 60000
plugin disks stages
alloc a
task a/data
claim a/data plugin disks disk 0
alloc b
task b/data
claim b/data plugin disks disk 1
at 0 assign a
at 0 assign b
at 1000 crash 1000
at 1500 torn_flip volume a/data
at 5000 crash 1000
at 5500 torn_flip task b/data
expect quarantined volume a/data 1
expect quarantined task b/data 1
always starts a/data 1
always alive a/data no
always first ends a/data then performs volume a/data UNPUBLISH
always mounted a/data no
always claimed a/data no
always status a failed
always alive b/data no
always mounted b/data no
always claimed b/data no
always status b failed
