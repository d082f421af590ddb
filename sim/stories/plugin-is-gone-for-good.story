# The job of a plugin is purged under its volumes: half an hour after they were let go they are unmounted without it.
# covers R-40 R-49
heal 1900000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 0
at 0 assign a
at 0 assign b
at 1000 remove disks
at 2000 stop a
at 3000 stop b
at 1200000 crash 500
expect mounted a/data no
expect mounted b/data no
expect staged b/data no
expect claimed a/data no
expect claimed b/data no
expect performs volume a/data UNPUBLISH 0
expect performs volume a/data UNMOUNT 1
expect performs volume b/data UNMOUNT 1
expect status a complete
always mounted a/data no
always claimed a/data no
