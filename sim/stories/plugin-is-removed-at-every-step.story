# A plugin is removed while it is launched, probed, identified, found again, unwell, put off and rejected; installed anew each time.
# covers R-49
heal 120000
plugin disks stages
alloc a
task a/main
at 0 assign a
when plugin disks LAUNCHING then remove disks
at 1000 install disks
when plugin disks PROBING then remove disks
at 2000 install disks
when plugin disks IDENTIFYING then remove disks
at 3000 install disks
when plugin disks READY then crash 100
when plugin disks RECOVERING then remove disks
at 4000 install disks
fate ERR plugin disks LAUNCH 6
when plugin disks LAUNCHING nth 5 then crash 100
when plugin disks BACKOFF then remove disks
at 5000 install disks
fate ERR(permanent) plugin disks LAUNCH 7
when plugin disks REJECTED then remove disks
at 6000 install disks
fate ERR plugin disks PROBE 7
when plugin disks UNHEALTHY then remove disks
at 60000 install disks
expect enters plugin disks GONE 7
always state plugin disks READY
always starts a/main 1
always ends a/main 0
