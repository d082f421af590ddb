# A plugin that is a task answers, but cannot say who it is or is not ready: its task hears why long before its time is over, once.
# covers R-50
heal 400000
plugin disks stages
alloc p
task p/driver attempts 2 interval 600000 backoff 1000 serves disks health 60000
plugin others
alloc q
task q/driver attempts 2 interval 600000 backoff 1000 serves others health 60000
fate ERR plugin disks IDENTIFY 1
fate ERR plugin disks IDENTIFY 2
fate ERR plugin disks IDENTIFY 3
fate ERR plugin others PROBE 1
fate ERR plugin others PROBE 2
fate ERR plugin others PROBE 3
fate ERR plugin others PROBE 4
at 0 assign p
at 0 assign q
expect notes p/driver PLUGIN_UNHEALTHY 1
expect notes q/driver PLUGIN_UNHEALTHY 1
expect notes p/driver PLUGIN_HEALTHY 1
expect notes q/driver PLUGIN_HEALTHY 1
expect notes p/driver RESTART_SIGNALED 0
expect notes q/driver RESTART_SIGNALED 0
expect starts p/driver 1
expect starts q/driver 1
always state plugin disks READY
always state plugin others READY
