# Somebody unmounts a volume under a payload: after a restart it is mounted again, and the payload is left alone.
# covers R-32 R-39
heal 120000
plugin disks stages
alloc a
task a/main attempts 3
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 1
at 0 assign a
at 0 assign b
at 1000 unmount a/data
at 1000 unmount b/data
at 1500 crash 500
fate ERR(permanent) volume b/data STAGE 2
at 10000 exit a/main 1
expect state volume b/data BROKEN
expect enters volume a/data VERIFYING 3
always starts a/main 2
always mounted a/data yes
always ends b/main 0
always status a running
