# A plugin is not what was asked for, at launch and when asked: it is rejected, tried again at the next start.
# covers R-49 R-50
heal 300000
plugin disks stages
plugin other
alloc a
task a/main
claim a/data plugin disks disk 0
fate ERR(permanent) plugin disks LAUNCH 1
fate ERR(permanent) plugin disks LAUNCH 2
fate ERR(permanent) plugin other IDENTIFY 1
at 0 assign a
at 2000 crash 100
at 4000 crash 100
at 10000 stop_plugin other
expect enters plugin disks REJECTED 2
expect enters plugin other REJECTED at_least 1
always state plugin disks READY
always starts a/main 1
