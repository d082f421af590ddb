# The plugin becomes unwell while a call of an alloc that has let go is under way: the rest waits for it.
# covers R-40 R-43 R-49
heal 200000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 1
alloc c
task c/main
claim c/data plugin disks disk 2
fate ERR plugin disks PROBE 2
fate ERR plugin disks PROBE 3
at 0 assign a
at 20000 assign b
at 25000 assign c
fate SLOW volume b/data STAGE 1 ms 10100
fate LIE volume c/data STAGE 1
fate SLOW volume c/data STAGE 2 ms 5900
fate SLOW volume a/data UNPUBLISH 1 ms 5100
at 25000 stop a
at 25000 stop b
at 29000 stop c
expect first enters plugin disks UNHEALTHY then enters volume b/data DRAINING
expect first enters plugin disks UNHEALTHY then performs volume a/data UNSTAGE
expect enters volume a/data DRAINING 1
expect enters volume c/data DRAINING 1
always starts a/main 1
always starts b/main 0
always starts c/main 0
always claimed a/data no
always claimed b/data no
always claimed c/data no
always staged a/data no
always staged b/data no
always staged c/data no
always mounted a/data no
always state plugin disks READY
