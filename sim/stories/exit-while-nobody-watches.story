# Payloads end while the daemon is away, well, badly and by a signal: each is told as it was.
# covers R-13 R-15 R-40
mode server
heal 30000
alloc a batch
task a/main attempts 0 runs 2000
alloc b batch
task b/main attempts 0 runs 2000 exits 3
alloc c batch
task c/main attempts 0 runs 2000 signal 11
alloc d
task d/main attempts 1
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 1000 crash 5000
at 3000 exit d/main 3
expect told a complete 1
expect told b failed 1
expect told c failed 1
expect enters task d/main BACKOFF 1
always exit a/main 0
always exit b/main 3
always exit c/main 139
always status a complete
always status b failed
always status c failed
always starts d/main 2
always starts a/main at_most 1
always starts b/main at_most 1
always starts c/main at_most 1
