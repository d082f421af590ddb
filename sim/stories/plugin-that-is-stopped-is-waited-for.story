# A plugin is only stopped: what was let go waits for it, for longer than for one that is gone.
# covers R-40 R-49
heal 2000000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
at 1000 stop_plugin disks
at 2000 stop a
at 1900000 remove disks
at 1900010 install disks
expect performs volume a/data UNPUBLISH 1
expect performs volume a/data UNMOUNT 0
always claimed a/data no
always mounted a/data no
always status a complete
