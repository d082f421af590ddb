# The daemon dies in a call, which goes on in the plugin: what undoes it comes behind it, and a next user of the volume, too.
# covers R-43 R-44
heal 1000000
cut happens
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 1
alloc c
task c/main
claim c/data plugin disks disk 1
at 0 assign a
fate SLOW volume a/data STAGE 1 ms 9000
at 1000 crash 100
at 1050 stop a
at 100000 assign b
at 110000 stop b
fate SLOW volume b/data UNSTAGE 1 ms 9000
at 111000 crash 100
at 112000 assign c
expect performs volume b/data UNSTAGE 2
expect first performs volume b/data UNCLAIM then performs volume c/data STAGE
always mounted a/data no
always staged a/data no
always claimed a/data no
always mounted b/data no
always starts c/main 1
always mounted c/data yes
always staged c/data yes
