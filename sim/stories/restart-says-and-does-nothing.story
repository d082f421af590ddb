# The daemon restarts, no server for ten minutes: no hook runs, nothing ends, nothing is told again.
# covers R-32 R-39 R-58 R-62
mode server
heal 1200000
plugin disks stages
alloc a
task a/main attempts 0 hooks 7 0 7 7 7
claim a/data plugin disks disk 0
alloc b batch
task b/main runs 500
at 0 assign a
at 0 assign b
at 5000 server down
at 5001 crash 1000
at 606000 server up
at 700000 crash 0
expect daemons 3
expect performs task a/main HOOK 0 since 2
expect performs volume a/data CLAIM 1
expect performs volume a/data PUBLISH 1
expect told a running 0 since 2
expect told b complete 0 since 2
always starts a/main 1
always ends a/main 0
always status a running
always status b complete
always performs volume a/data PUBLISH at_most 2
