# The server purges allocs while they prepare, mount, run, wait for a restart, delay, and run their last task.
# covers R-06 R-35
mode server
heal 90000
plugin disks stages
alloc a
task a/main
alloc b
task b/main
claim b/data plugin disks disk 0
alloc c delay 500 hooks 1 1 1 1
task c/main
alloc d
task d/main runs 300 exits 1 attempts 3 backoff 5000
alloc e delay 3000
task e/main
alloc f
task f/main
task f/last lifecycle poststop
alloc g hooks 1 1 1 1
task g/main hooks 7 7 7 7 7
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 0 assign e
at 0 assign f
at 0 assign g
when alloc a PREPARING then destroy a
when alloc b MOUNTING then destroy b
at 2000 destroy c
when task d/main BACKOFF then destroy d
at 2000 stop e
at 3000 destroy e
at 2000 stop f
when task f/last RUNNING then destroy f
at 2000 destroy g
when alloc g DESTROYING then crash 300
when alloc c PREKILL then destroy c
fate ERR alloc g HOOK 4
always state alloc a absent
always state alloc b absent
always state alloc c absent
always state alloc d absent
always state alloc e absent
always state alloc f absent
always state alloc g absent
always starts a/main 0
always starts b/main 0
always starts d/main 1
always alive f/last no
always claimed b/data no
