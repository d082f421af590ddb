# The daemon dies while a volume is claimed, waits for its plugin, is staged and published: each is done again.
# covers R-09 R-44
heal 120000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
when volume a/data CLAIMING then crash 300
when volume a/data STAGING then crash 300
when volume a/data PUBLISHING then crash 300
when volume a/data READY then crash 300
when task a/main RUNNING then crash 300
expect daemons 6
always mounted a/data yes
always starts a/main 1
always status a running
always claimed a/data yes
