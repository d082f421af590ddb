# The hooks before a kill hang until all tasks have ended by themselves: what comes behind them goes on.
# covers R-34 R-69
heal 700000
plugin disks
alloc a batch hooks 1 1 1 1
task a/main
task a/last lifecycle poststop runs 200
alloc b batch hooks 1 1 1 1
task b/main
claim b/data plugin disks disk 0
alloc c batch hooks 1 1 1 1 delay 1000
task c/main
at 0 assign a
at 0 assign b
at 0 assign c
at 1000 stop a
at 1000 stop b
at 1000 stop c
fate HANG alloc a HOOK 2
fate HANG alloc b HOOK 2
fate HANG alloc c HOOK 2
at 2000 exit a/main 0
at 2000 exit b/main 0
at 2000 exit c/main 0
expect enters alloc a KILLING 0
expect enters alloc b KILLING 0
expect starts a/main 1
expect starts a/last 1
always status a complete
always status b complete
always status c complete
always claimed b/data no
always mounted b/data no
always alive a/main no
always alive c/main no
