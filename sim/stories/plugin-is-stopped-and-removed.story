# An operator stops and removes plugins, at every step of their lives; one that is in use later comes again.
# covers R-49
heal 300000
plugin disks stages
plugin other
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
at 1000 stop_plugin disks
when plugin disks STOPPING then stop_plugin disks
when plugin disks STOPPED then stop_plugin disks
when plugin disks STOPPED then crash 100
at 3000 remove disks
fate ERR plugin other TERMINATE 1
at 2000 stop_plugin other
when plugin other STOPPING then crash 100
when plugin other STOPPING then remove other
expect done plugin disks STOP 3
expect done plugin other STOP 1
expect enters plugin disks GONE 1
expect enters plugin other GONE 1
always state plugin disks READY
always starts a/main 1
always ends a/main 0
always mounted a/data yes
