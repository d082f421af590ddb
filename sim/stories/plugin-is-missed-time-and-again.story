# A volume has lost its mount and its plugin: each start waits for one anew, gives up in time and tries again, until there is a plugin.
# covers R-39 R-50
heal 900000
plugin disks stages
alloc p
task p/driver serves disks
alloc a
task a/main attempts 9 backoff 500 interval 3600000
task a/side
claim a/data plugin disks disk 0
at 0 assign p
at 0 assign a
at 5000 stop p
at 6000 unmount a/data
at 7000 exit a/main 1
expect enters volume a/data BROKEN at_least 3
expect starts a/main 1
