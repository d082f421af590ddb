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
expect starts a/main 1
expect exit a/main 0
expect told a complete at_least 1
expect performs volume a/data UNPUBLISH 1
expect performs volume a/data UNSTAGE 1
expect performs volume a/data UNCLAIM 1
expect first performs volume a/data UNPUBLISH then performs volume a/data UNSTAGE
expect first performs volume a/data UNSTAGE then performs volume a/data UNCLAIM
expect claimed a/data no
always starts a/main at_most 1
always mounted a/data no
always staged a/data no
always claimed a/data no
