# The record of a task is lost while its payload runs, or is being killed: it is ended, then its volume is unmounted.
# covers R-21 R-38
heal 60000
plugin disks stages
alloc a
task a/main ignores_term forks
claim a/data plugin disks disk 0
alloc b
task b/main ignores_term kill 5000 forks
claim b/data plugin disks disk 1
at 0 assign a
at 0 assign b
at 1000 stop b
at 2000 crash 1000
at 2500 torn_cut task a/main
at 2500 torn_flip task b/main
always first ends a/main then performs volume a/data UNPUBLISH
always first ends b/main then performs volume b/data UNPUBLISH
always alive a/main no
always alive b/main no
always starts a/main 1
always starts b/main 1
always status a failed
always claimed a/data no
always claimed b/data no
always mounted a/data no
always staged b/data no
always state alloc a TERMINAL
always state alloc b TERMINAL
