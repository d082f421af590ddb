# All tasks are to run again, one of them is only being started, and after a crash its volume is not to be had: the alloc ends.
# covers R-04 R-33
heal 60000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
fate SLOW task a/main DRIVER_START 1 ms 5000
fate SLOW task a/main DRIVER_RECOVER 1 ms 5000
fate ERR(permanent) volume a/data STAGE 2
at 0 assign a
at 1000 replay a
at 1500 unmount a/data
at 1600 crash 100
expect enters alloc a REPLAYING 1
expect enters alloc a KILLING 1
expect status a failed
expect mounted a/data no
expect staged a/data no
expect claimed a/data no
