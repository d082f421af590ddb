# The plugin says again and again that it has unmounted what is still mounted: it is unmounted without it, and let go.
# covers R-40 R-48
heal 1000000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 1
at 0 assign a
at 0 assign b
at 1000 stop a
fate LIE volume a/data UNPUBLISH 0
fate ERR volume a/data UNMOUNT 1
at 1000 stop b
fate LIE volume b/data UNSTAGE 0
expect performs volume a/data UNMOUNT 2
expect performs volume a/data UNPUBLISH at_least 5
expect performs volume a/data UNMOUNT_STAGING 0
expect performs volume b/data UNMOUNT_STAGING 1
expect performs volume b/data UNMOUNT 0
always mounted a/data no
always staged a/data no
always claimed a/data no
always staged b/data no
always claimed b/data no
always status a complete
always status b complete
