# The server asks for the unmount during the shutdown delay, while mounting, and later: refused until all have ended.
# covers R-41
mode server
heal 60000
plugin disks stages
alloc a delay 3000
task a/main
claim a/data plugin disks disk 0
at 0 assign a
when volume a/data IDLE then detach a/data
when volume a/data CLAIMING then detach a/data
when volume a/data STAGING then detach a/data
when volume a/data PUBLISHING then detach a/data
at 1000 stop a
at 2000 detach a/data
when task a/main STOPPING then detach a/data
when volume a/data UNPUBLISHING then detach a/data
when volume a/data UNSTAGING then detach a/data
when volume a/data RELEASING then detach a/data
fate ERR volume a/data UNPUBLISH 1
when volume a/data DRAINING then detach a/data
expect refused volume a/data DETACH 8
expect done volume a/data DETACH 2
expect performs volume a/data UNPUBLISH 2
always first ends a/main then performs volume a/data UNPUBLISH
always claimed a/data no
always status a complete
always mounted a/data no
