# The same with stops: each is granted, and what was stopped stays so, over a crash, until it is installed anew.
# covers R-49
heal 300000
plugin disks stages
at 10 stop_plugin disks
when plugin disks STOPPED then crash 100
at 1000 remove disks
at 1010 install disks
when plugin disks LAUNCHING nth 2 then stop_plugin disks
when plugin disks STOPPED nth 2 then remove disks
at 2010 install disks
when plugin disks PROBING nth 2 then stop_plugin disks
when plugin disks STOPPED nth 3 then remove disks
at 3010 install disks
when plugin disks IDENTIFYING nth 2 then stop_plugin disks
when plugin disks STOPPED nth 4 then remove disks
at 4010 install disks
when plugin disks READY nth 2 then crash 100
when plugin disks RECOVERING then stop_plugin disks
when plugin disks STOPPED nth 5 then remove disks
fate ERR plugin disks LAUNCH 6
at 5010 install disks
when plugin disks BACKOFF then stop_plugin disks
when plugin disks STOPPED nth 6 then remove disks
fate ERR(permanent) plugin disks LAUNCH 7
at 6010 install disks
when plugin disks REJECTED then stop_plugin disks
when plugin disks STOPPED nth 7 then remove disks
fate ERR plugin disks TERMINATE 7
at 60000 install disks
fate ERR plugin disks PROBE 6
when plugin disks UNHEALTHY then crash 100
fate ERR plugin disks PROBE 8
when plugin disks UNHEALTHY nth 2 then stop_plugin disks
expect done plugin disks STOP 8
expect enters plugin disks STOPPED 8
expect enters plugin disks UNHEALTHY 2
always state plugin disks READY
