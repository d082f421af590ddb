# A payload that nobody saw running cannot be looked at: its end is told as unknown, it is ended, and nobody looks again.
# covers R-09 R-13
heal 100000
alloc a
task a/main attempts 0
at 0 assign a
at 8 crash 300
fate ERR task a/main DRIVER_RECOVER 0
expect daemons 2
expect performs task a/main DRIVER_RECOVER 5
expect performs task a/main DRIVER_DESTROY 1
expect notes a/main TERMINATED 1
expect starts a/main 1
expect status a failed
