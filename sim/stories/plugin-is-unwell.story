# A plugin in use answers no more, for a while and for good: its users keep their mounts, calls wait for it.
# covers R-49 R-39
heal 600000
plugin disks stages
plugin other
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
fate HANG plugin disks PROBE 2
fate ERR plugin disks PROBE 3
fate ERR plugin disks PROBE 4
fate ERR plugin other PROBE 0
when plugin disks UNHEALTHY then stop a
expect enters plugin disks UNHEALTHY 1
expect enters plugin other BACKOFF at_least 2
expect claimed a/data no
expect mounted a/data no
expect staged a/data no
expect status a complete
always state plugin other READY
expect starts a/main 1
always state plugin disks READY
