# The daemon dies after the unmount and before the unstage, and before the release: the way back is finished.
# covers R-43
mode server
heal 200000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
at 1000 stop a
when volume a/data UNPUBLISHING then crash 300
when volume a/data UNSTAGING then crash 300
when volume a/data RELEASING then crash 300
expect daemons 4
expect enters volume a/data GONE 1
always mounted a/data no
always staged a/data no
always claimed a/data no
always first performs volume a/data UNSTAGE then performs volume a/data UNCLAIM
always status a complete
always enters volume a/data GONE 1
