# Claim, stage, publish and all of the way back are done and their answers lost: each takes effect once.
# covers R-48
mode server
heal 600000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
fate SRV(drop-reply) volume a/data CLAIM 1
fate DONE+ERR volume a/data STAGE 1
fate DONE+ERR volume a/data PUBLISH 1
at 200000 stop a
fate DONE+ERR volume a/data UNPUBLISH 1
fate DONE+ERR volume a/data UNSTAGE 1
fate SRV(drop-reply) volume a/data UNCLAIM 1
expect performs volume a/data CLAIM 2
expect performs volume a/data UNCLAIM 2
expect enters volume a/data GONE 1
always starts a/main 1
always mounted a/data no
always staged a/data no
always claimed a/data no
always status a complete
