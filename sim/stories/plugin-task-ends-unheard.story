# A plugin that is a task ends before anybody listens, and another one fails its probe at the very time by which it had to be well.
# covers R-49 R-50
heal 200000
plugin disks stages
plugin slow
alloc p
task p/driver attempts 3 backoff 1000 serves disks
alloc q
task q/driver attempts 3 backoff 1000 serves slow health 5001
fate HANG plugin disks LAUNCH 1
fate HANG plugin slow PROBE 1
at 0 assign p
at 0 assign q
at 3000 plug disks
expect enters plugin disks STOPPED at_least 1
expect starts p/driver at_least 2
expect starts q/driver 2
expect notes q/driver RESTART_SIGNALED 1
always state plugin disks READY
always state plugin slow READY
