# Two instances serve one plugin: either goes, comes or dies while the other is there, and no volume waits for want of one.
# covers R-51
heal 100000
plugin disks stages
plugin newer of disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 0
alloc c
task c/main
claim c/data plugin disks disk 1
at 0 assign a
at 1000 remove disks
at 2000 assign b
at 3000 install disks
at 4000 plug newer
at 4001 assign c
at 5000 stop a
when volume c/data READY then remove newer
expect enters volume b/data QUEUED 0
expect enters volume c/data QUEUED 0
expect enters volume a/data DRAINING 0
expect enters plugin newer GONE 1
always state plugin disks READY
always mounted a/data no
always starts b/main 1
always mounted b/data yes
always starts c/main 1
always mounted c/data yes
