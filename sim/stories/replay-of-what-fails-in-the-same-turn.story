# A task fails for good in the turn in which all are to run again: the alloc ends, and lets go of its volume.
# covers R-04
seed 1
heal 20000
batching drawn
plugin disks stages
alloc a
task a/main attempts 0
claim a/data plugin disks disk 0
at 0 assign a
at 3000 exit a/main 1
at 3005 replay a
expect done alloc a REPLAY 1
expect enters alloc a REPLAYING 1
expect starts a/main 1
expect status a failed
expect mounted a/data no
expect staged a/data no
expect claimed a/data no
