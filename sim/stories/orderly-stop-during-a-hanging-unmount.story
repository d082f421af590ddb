# The unmount hangs when the daemon is told to stop: it leaves, and the next start finishes the work.
# covers R-47
mode server
heal 600000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
at 0 assign a
at 0 assign b
at 1000 stop a
fate HANG volume a/data UNPUBLISH 1
at 3000 term 500
expect daemons 2
expect performs volume a/data UNPUBLISH 2
always mounted a/data no
always claimed a/data no
always status a complete
always starts b/main 1
always ends b/main 0
