# The daemon comes back to allocs in every state of an end: the server's first answer starts nothing again.
# covers R-01 R-03 R-62
mode server
heal 90000
plugin disks stages
alloc a delay 2000 hooks 1 1 1 1
task a/main ignores_term kill 2000
alloc b
task b/main
task b/last lifecycle poststop runs 3000
alloc c
task c/main
claim c/data plugin disks disk 0
alloc d
task d/main ignores_term kill 5000 delay 500 hooks 7 7 7 7 7
alloc e
task e/main runs 300 exits 1 attempts 3 backoff 9000
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 0 assign e
at 3000 stop a
at 3000 stop b
at 3000 stop c
at 3000 stop d
fate SLOW volume c/data UNPUBLISH 1 ms 1000
when volume c/data UNPUBLISHING then crash 100
at 4500 crash 100
at 6500 crash 100
expect starts a/main 1
expect starts b/main 1
expect starts b/last 1
expect starts c/main 1
expect starts d/main 1
expect exit d/main 137
expect status a complete
expect status b complete
expect status c complete
expect status d complete
expect claimed c/data no
always starts a/main at_most 1
always starts b/main at_most 1
always starts b/last at_most 1
always starts d/main at_most 1
always status a complete
always claimed c/data no
