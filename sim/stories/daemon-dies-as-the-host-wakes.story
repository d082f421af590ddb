# The host sleeps in a call and the daemon dies as it wakes: how long ago a call was made says nothing of its end.
# covers R-43 R-69
heal 1000000
cut happens
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
fate SLOW volume a/data STAGE 1 ms 9000
at 1000 sleep 800000
at 1100 crash 100
at 1150 stop a
expect performs volume a/data STAGE 2
always mounted a/data no
always staged a/data no
always claimed a/data no
