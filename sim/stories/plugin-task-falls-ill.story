# A plugin that is a task was well and does not answer any more: it is told so, and to start again once its health_timeout is over.
# covers R-49
heal 200000
plugin disks stages
alloc p
task p/driver attempts 3 backoff 1000 serves disks health 10000
alloc a
task a/main
claim a/data plugin disks disk 0
fate ERR plugin disks PROBE 2
fate HANG plugin disks PROBE 3
at 0 assign p
at 0 assign a
expect enters plugin disks UNHEALTHY at_least 1
expect notes p/driver RESTART_SIGNALED 1
expect starts p/driver 2
expect starts a/main 1
always mounted a/data yes
always state plugin disks READY
