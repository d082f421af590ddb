# A call of one claim hangs for minutes, and who waits behind it has a plugin: it fails when that is gone for a minute, not before.
# covers R-39 R-69
heal 1000000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 0
alloc c
task c/main
claim c/data plugin disks disk 1
alloc d
task d/main
claim d/data plugin disks disk 1
at 0 assign a
fate HANG volume a/data STAGE 1
at 10 assign b
at 300000 assign c
fate HANG volume c/data STAGE 1
at 300010 assign d
at 310000 stop_plugin disks
expect enters volume b/data BROKEN 0
expect enters volume d/data BROKEN 1
expect state alloc d TERMINAL
always starts b/main 1
always mounted b/data yes
always starts a/main 1
expect starts d/main 0
