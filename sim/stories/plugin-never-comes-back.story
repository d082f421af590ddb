# A mount is gone after a restart and its plugin never comes back: the claim waits for half an hour over all restarts, and says why it ends.
# covers R-08 R-39
heal 4000000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc late
task late/main
at 0 assign a
at 1000 unmount a/data
at 1000 crash 500
at 1200 exit a/main 1
at 1300 plug disks
fate ERR(permanent) plugin disks LAUNCH 2
fate ERR(permanent) plugin disks LAUNCH 3
fate ERR(permanent) plugin disks LAUNCH 4
at 900000 crash 60000
at 1700000 crash 60000
at 2500000 assign late
expect enters volume a/data BROKEN 1
expect first enters volume a/data BROKEN then starts late/main
expect starts a/main 1
expect status a failed
expect claimed a/data no
