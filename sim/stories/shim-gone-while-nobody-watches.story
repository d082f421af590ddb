# The shim dies while the daemon is away, before the payload's end and after it.
# covers R-10 R-15
heal 30000
alloc a batch
task a/main attempts 0
alloc b batch
task b/main attempts 0
alloc c batch
task c/main attempts 0
at 0 assign a
at 0 assign b
at 0 assign c
at 500 record_lost c/main
at 1000 crash 5000
at 2000 shim a/main
at 2500 exit a/main 0
at 3000 exit b/main 0
at 3500 exit c/main 0
always exit a/main unknown
always exit b/main 0
always exit c/main unknown
always status a failed
always status b complete
always status c failed
always starts a/main at_most 1
always starts b/main at_most 1
