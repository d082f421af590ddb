# After a crash the plugin is found again, after a reboot it is launched anew; payloads of a crash go on.
# covers R-49 R-50
heal 60000
plugin disks stages
alloc a
task a/main attempts 1
claim a/data plugin disks disk 0
at 0 assign a
at 1000 crash 500
at 5000 boot 1000
expect daemons 3
expect performs plugin disks RECOVER 2
expect performs plugin disks LAUNCH 2
always state plugin disks READY
always starts a/main 2
always mounted a/data yes
