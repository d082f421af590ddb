# A foreign process keeps the mount busy while the alloc is removed: its directory stays until it is unmounted.
# covers R-46
heal 60000
plugin disks stages
alloc a hooks 1 0 1 1
task a/main
claim a/data plugin disks disk 0
at 0 assign a
at 1000 busy a/data 20000
at 2000 destroy a
at 10000 crash 1000
expect performs volume a/data UNPUBLISH at_least 3
always first enters volume a/data GONE then enters alloc a DESTROYING
always state alloc a absent
always mounted a/data no
