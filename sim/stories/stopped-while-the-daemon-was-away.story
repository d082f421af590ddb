# The server stops an alloc with a volume while the daemon is away: unmounted, unstaged, released.
# covers R-40
mode server
heal 60000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
at 1000 crash 5000
at 2000 stop a
expect performs volume a/data UNPUBLISH 1
expect performs volume a/data UNSTAGE 1
expect performs volume a/data UNCLAIM 1
always starts a/main 1
always first ends a/main then performs volume a/data UNPUBLISH
always first performs volume a/data UNPUBLISH then performs volume a/data UNSTAGE
always first performs volume a/data UNSTAGE then performs volume a/data UNCLAIM
always mounted a/data no
always staged a/data no
always claimed a/data no
always status a complete
