# Who is to end and cannot be looked at is ended after a third look that fails, and its end is told as unknown.
# covers R-09 R-13
heal 20000
alloc ran
task ran/main attempts 0
alloc unseen
task unseen/main attempts 0
at 0 assign ran
at 1000 assign unseen
at 1008 crash 300
fate ERR task ran/main DRIVER_RECOVER 0
fate ERR task unseen/main DRIVER_RECOVER 0
at 1320 stop ran
at 1320 stop unseen
expect daemons 2
expect performs task ran/main DRIVER_RECOVER 3
expect performs task unseen/main DRIVER_RECOVER 3
expect performs task ran/main DRIVER_DESTROY 1
expect performs task unseen/main DRIVER_DESTROY 1
expect notes ran/main TERMINATED 1
expect notes unseen/main TERMINATED 1
expect starts ran/main 1
expect starts unseen/main 1
