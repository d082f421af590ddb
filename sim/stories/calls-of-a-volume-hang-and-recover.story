# Each call of a volume hangs or comes late once, and the alloc stays: it is repeated until it succeeds.
# covers R-44 R-69
heal 3000000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
fate HANG volume a/data CLAIM 1
fate LATE volume a/data STAGE 1
fate LATE volume a/data PUBLISH 1
at 1000000 stop a
fate LATE volume a/data UNPUBLISH 1
fate HANG volume a/data UNSTAGE 1
fate LATE volume a/data UNCLAIM 1
expect enters volume a/data GONE 1
always starts a/main 1
always exit a/main 143
always staged a/data no
always claimed a/data no
always mounted a/data no
