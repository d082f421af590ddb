# The plugin is away when the daemon comes back, and so is the server: a mounted volume needs neither.
# covers R-39 R-50
mode server
heal 200000
plugin disks stages
alloc a
task a/main attempts 1
claim a/data plugin disks disk 0
at 0 assign a
at 1000 server down
at 1001 crash 1000
at 1500 plug disks
fate SLOW plugin disks RECOVER 1 ms 5000
fate ERR plugin disks LAUNCH 2
fate ERR plugin disks LAUNCH 3
at 150000 server up
expect performs volume a/data CLAIM 1
expect performs volume a/data STAGE 1
expect performs volume a/data PUBLISH 1
expect performs plugin disks LAUNCH 4
always starts a/main 1
always ends a/main 0
always mounted a/data yes
always state plugin disks READY
