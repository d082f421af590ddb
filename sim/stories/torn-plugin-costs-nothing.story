# The record of a plugin cannot be read: it is launched anew; payload and mount do not notice.
# covers R-21 R-49
heal 30000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
at 1000 crash 1000
at 1500 torn_cut plugin disks
expect quarantined plugin disks 1
expect performs volume a/data PUBLISH 1
always state plugin disks READY
always starts a/main 1
always ends a/main 0
always mounted a/data yes
always status a running
