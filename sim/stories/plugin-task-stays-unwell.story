# A plugin that is a task does not answer: it is told so at the second failure in a row, and restarted each time that its health_timeout is over, until its policy is used up.
# covers R-50
heal 400000
plugin disks stages
alloc p
task p/driver attempts 2 interval 600000 backoff 1000 serves disks health 10000
alloc a
task a/main
claim a/data plugin disks disk 0
fate ERR plugin disks LAUNCH 1
fate HANG plugin disks PROBE 1
fate ERR plugin disks PROBE 2
fate ERR plugin disks PROBE 3
fate ERR plugin disks PROBE 4
fate ERR plugin disks PROBE 5
fate ERR plugin disks PROBE 6
fate ERR plugin disks PROBE 7
at 0 assign p
at 0 assign a
expect notes p/driver PLUGIN_UNHEALTHY 4
expect notes p/driver RESTART_SIGNALED 2
expect starts p/driver at_least 2
always state plugin disks READY
