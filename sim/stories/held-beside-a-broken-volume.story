# A task that ended while nobody watched is held for a volume that cannot be mounted again: it follows its restart policy, beside a sibling that runs.
# covers R-39
heal 200000
plugin disks stages
alloc a
task a/main attempts 3 backoff 1000
task a/side
claim a/data plugin disks disk 0
alloc b
task b/main attempts 1 backoff 1000
task b/side
claim b/data plugin disks disk 1
at 0 assign a
at 0 assign b
at 1000 unmount a/data
at 1000 unmount b/data
fate ERR(permanent) volume a/data STAGE 2
fate ERR(permanent) volume a/data STAGE 3
fate ERR(permanent) volume b/data STAGE 2
fate ERR(permanent) volume b/data STAGE 3
at 2000 crash 1000
at 2500 exit a/main 1
at 2500 exit b/main 1
expect daemons 2
expect starts a/main 2
expect starts a/side 1
expect mounted a/data yes
expect status a running
expect enters volume a/data BROKEN 2
expect starts b/main 1
expect starts b/side 1
expect status b failed
expect mounted b/data no
