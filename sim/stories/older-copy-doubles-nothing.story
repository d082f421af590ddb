# An older copy of the journal comes back while a later attempt is slow to end: none runs beside it.
# covers R-16 R-38
heal 60000
alloc a
task a/main hooks 7 0 0 0 0 runs 3000 exits 1 attempts 5 backoff 2000
at 0 assign a
at 3500 copy
at 6000 sweep 4000
at 11000 older 1000
at 20000 stop a
expect starts a/main 4
expect ends a/main 4
expect performs task a/main DRIVER_START 4
expect state alloc a TERMINAL
expect daemons 2
