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
expect exit a/main 0
expect exit b/main 3
expect exit c/main 139
expect status a complete
expect status b failed
expect status c failed
expect told a complete 1
expect told b failed 1
expect told c failed 1
expect starts d/main 2
expect enters task d/main BACKOFF 1
always starts a/main at_most 1
always starts b/main at_most 1
always starts c/main at_most 1
always starts d/main at_most 2
