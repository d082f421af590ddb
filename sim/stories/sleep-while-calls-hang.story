# The host sleeps while calls to the server and the plugin hang: their bounds count the sleep.
# covers R-64 R-69
heal 900000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
fate HANG volume a/data CLAIM 1
when volume a/data CLAIMING then sleep 70000
at 150000 stop a
fate HANG volume a/data UNPUBLISH 1
when volume a/data UNPUBLISHING then sleep 130000
fate HANG volume a/data UNSTAGE 1
when volume a/data UNSTAGING then sleep 130000
always starts a/main 1
always status a complete
always mounted a/data no
always staged a/data no
always claimed a/data no
