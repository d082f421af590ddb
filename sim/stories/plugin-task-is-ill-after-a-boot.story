# A plugin was healthy and the machine boots: while nobody knows yet that its task has ended it is not ready, and later neither: the task hears why, and that it is over.
# covers R-50
heal 400000
plugin disks stages
alloc p
task p/driver attempts 2 interval 600000 backoff 1000 serves disks health 60000
fate ERR plugin disks PROBE 2
fate ERR plugin disks PROBE 3
fate ERR plugin disks PROBE 4
fate ERR plugin disks PROBE 5
fate ERR plugin disks PROBE 6
fate SLOW task p/driver DRIVER_RECOVER 1 ms 3000
at 0 assign p
at 10000 boot 1000
expect notes p/driver PLUGIN_UNHEALTHY 2
expect notes p/driver PLUGIN_HEALTHY 2
expect starts p/driver 2
always state plugin disks READY
