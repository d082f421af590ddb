# An exclusive volume is claimed by one alloc at a time: the next one waits, bounded, and gets it.
# covers R-07 R-42
heal 60000
plugin disks stages
alloc a
task a/main ignores_term kill 2000
claim a/data plugin disks disk 0 exclusive
alloc b
task b/main
claim b/data plugin disks disk 0 exclusive
at 0 assign a
at 1000 assign b
at 2000 stop a
at 3000 crash 500
expect performs volume b/data CLAIM at_least 2
always first ends a/main then starts b/main
always starts a/main 1
always starts b/main 1
always claimed a/data no
always claimed b/data yes
always mounted b/data yes
