# Somebody unmounts a volume between two attempts of its task: the next one starts when it is mounted again, or not at all.
# covers R-32
heal 200000
plugin disks stages
plugin more stages
alloc a
task a/main attempts 3 backoff 5000
claim a/data plugin disks disk 0
alloc b
task b/main attempts 2 interval 600000 backoff 1000
task b/side
claim b/data plugin disks disk 1
alloc c
task c/main attempts 0
claim c/data plugin disks disk 2
claim c/more plugin disks disk 3
alloc d
task d/main attempts 3 backoff 1000
task d/side
claim d/data plugin more disk 0
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 1000 exit a/main 1
when task a/main BACKOFF after unmount a/data
at 1000 unmount b/data
fate ERR(permanent) volume b/data STAGE 2
fate ERR(permanent) volume b/data STAGE 3
at 1500 exit b/main 1
at 1000 unmount d/data
fate ERR(permanent) volume d/data PUBLISH 2
at 1500 exit d/main 1
at 1000 unmount c/more
at 2000 restart c
expect starts a/main 2
expect starts b/main 1
expect enters task b/main LOOKING 3
expect starts c/main 2
expect performs volume a/data PUBLISH 2
expect performs volume c/data PUBLISH 1
expect performs volume c/more PUBLISH 2
always mounted a/data yes
always mounted c/more yes
always status a running
expect status b failed
always status c running
expect enters volume d/data BROKEN 1
expect starts d/main 2
expect starts d/side 1
expect mounted d/data yes
expect status d running
