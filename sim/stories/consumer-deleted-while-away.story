# The server deletes an alloc while the daemon is away, and the plugin is away for the first minute.
# covers R-45 R-06
mode server
heal 300000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
at 1000 crash 5000
at 2000 destroy a
at 3000 plug disks
fate ERR plugin disks LAUNCH 2
fate ERR plugin disks LAUNCH 3
fate ERR plugin disks LAUNCH 4
always starts a/main 1
always alive a/main no
always state alloc a absent
always state volume a/data absent
always mounted a/data no
always staged a/data no
always claimed a/data no
always first enters plugin disks READY then performs volume a/data UNPUBLISH
