# The plugin refuses the first connects and its first info call fails: it is probed on and then used.
# covers R-49 R-50
heal 300000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
fate ERR plugin disks PROBE 1
fate ERR plugin disks PROBE 2
fate HANG plugin disks PROBE 3
fate ERR plugin disks IDENTIFY 1
fate HANG plugin disks IDENTIFY 2
always state plugin disks READY
always starts a/main 1
always first enters plugin disks READY then performs volume a/data STAGE
always mounted a/data yes
always status a running
