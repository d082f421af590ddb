# A batch payload with a volume ends while the daemon is away: the volume is released, in order, once.
# covers R-15 R-40
mode server
heal 60000
plugin disks stages
alloc a batch
task a/main runs 3000 attempts 0
claim a/data plugin disks disk 0
at 0 assign a
at 1000 crash 5000
expect told a complete at_least 1
expect performs volume a/data UNPUBLISH 1
expect performs volume a/data UNSTAGE 1
expect performs volume a/data UNCLAIM 1
always starts a/main 1
always exit a/main 0
always first performs volume a/data UNPUBLISH then performs volume a/data UNSTAGE
always first performs volume a/data UNSTAGE then performs volume a/data UNCLAIM
always claimed a/data no
always mounted a/data no
always staged a/data no
