# The daemon dies whenever an alloc has come into another state: each is taken up again where it was.
# covers R-22 R-43
heal 60000
plugin disks stages
alloc a delay 300 hooks 1 1 1 1
task a/main
task a/last lifecycle poststop runs 200
claim a/data plugin disks disk 0
at 0 assign a
when alloc a PREPARING after crash 20
when alloc a MOUNTING after crash 20
when alloc a RUNNING after crash 20
at 3000 stop a
when alloc a PREKILL after crash 20
when alloc a KILLING after crash 20
when alloc a POSTSTOP after crash 20
when alloc a RELEASING after crash 20
at 9000 destroy a
expect daemons 8
always starts a/main 1
always starts a/last 1
always first ends a/main then starts a/last
always first ends a/last then performs volume a/data UNPUBLISH
always first enters volume a/data GONE then enters alloc a TERMINAL
always state alloc a absent
always claimed a/data no
always staged a/data no
