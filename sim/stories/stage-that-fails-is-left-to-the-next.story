# A volume is let go while it is staged, which fails: its alloc owes its claim and no more, for another one waits for the stage.
# covers R-42 R-43
heal 100000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 0
fate SLOW volume a/data CLAIM 1 ms 3000
fate ERR volume a/data STAGE 1
fate SLOW alloc b HOOK 1 ms 60000
at 0 assign a
at 1000 assign b
at 3000 stop a
expect performs volume a/data STAGE 1
expect performs volume a/data UNSTAGE 0
expect first performs volume a/data UNCLAIM then performs volume b/data STAGE
expect starts a/main 0
always claimed a/data no
always status a complete
always starts b/main 1
always mounted b/data yes
always staged b/data yes
