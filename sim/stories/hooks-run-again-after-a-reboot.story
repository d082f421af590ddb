# What hooks leave in memory file systems does not survive a reboot: each of them runs again.
# covers R-29 R-65
heal 30000
plugin disks stages
alloc a
task a/main hooks 7 7 7 7 7 attempts 1
claim a/data plugin disks disk 0
at 0 assign a
when task a/main PRESTART then boot 1000
at 5000 boot 2000
expect daemons 3
expect performs volume a/data STAGE 3
expect performs volume a/data PUBLISH 3
always starts a/main 2
always first enters volume a/data VERIFYING then enters task a/main HELD
always mounted a/data yes
always state task a/main RUNNING
