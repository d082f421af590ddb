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
always starts a/main 1
always starts b/main 1
always starts b/last 1
always starts c/main 1
always starts d/main 1
always exit d/main 137
always status a complete
always status b complete
always status c complete
always status d complete
always claimed c/data no
