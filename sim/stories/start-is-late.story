# A start is given up, and its payload comes all the same: it is ended before the next attempt.
# covers R-09 R-69
heal 120000
alloc a
task a/main attempts 3
at 0 assign a
fate LATE task a/main DRIVER_START 1
fate HANG task a/main DRIVER_START 2
expect enters task a/main BACKOFF 2
expect performs task a/main DRIVER_START 3
expect starts a/main at_most 2
always state task a/main RUNNING
always starts a/main at_most 3
always status a running
