# A plugin counts what it has published, over reboots: it is told of the end of each, and unstages.
# covers R-65
heal 60000
plugin disks stages
alloc a
task a/main attempts 0
claim a/data plugin disks disk 0
alloc b
task b/main attempts 0
claim b/data plugin disks disk 0
at 0 assign a
at 0 assign b
at 1000 boot 1000
at 5000 boot 1000
at 10000 stop a
at 11000 stop b
expect daemons 3
expect performs volume a/data PUBLISH 3
expect performs volume a/data UNPUBLISH 3
expect performs volume b/data UNPUBLISH 3
expect performs volume b/data UNSTAGE 1
always mounted a/data no
always claimed a/data no
always claimed b/data no
always staged b/data no
