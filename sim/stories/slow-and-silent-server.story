# The server takes seconds, accepts and never answers, denies a claim, and comes back: nothing is told twice.
# covers R-58 R-62 R-69
mode server
heal 600000
plugin disks
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 1
alloc c
task c/main
at 0 server slow
at 0 assign a
at 100 assign b
fate SRV(denied) volume b/data CLAIM 1
at 30000 server blackhole
at 31000 assign c
at 32000 crash 1000
at 200000 server up
at 300000 crash 1000
expect starts b/main 0
expect status b failed
expect told a running 1
expect told b failed at_most 3
expect told c running 1
always starts a/main 1
always ends a/main 0
always starts c/main 1
always mounted a/data yes
always starts b/main at_most 1
