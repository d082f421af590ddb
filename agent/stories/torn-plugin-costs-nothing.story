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
expect state plugin disks READY
expect starts a/main 1
expect ends a/main 0
expect performs volume a/data PUBLISH 1
expect mounted a/data yes
expect status a running
always state plugin disks READY
always ends a/main 0
