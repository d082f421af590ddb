# A mount vanishes under a payload and the plugin says that it is there with other arguments: nothing is undone under what runs.
# covers R-41 R-44
heal 1000000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
at 1000 unmount a/data
at 1000 crash 500
fate CLASH volume a/data PUBLISH 2
expect performs volume a/data UNPUBLISH 0
expect performs volume a/data PUBLISH 3
always starts a/main 1
always mounted a/data yes
