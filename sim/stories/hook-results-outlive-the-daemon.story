# What hooks made is there at a start in a later incarnation: environment, directory, mount.
# covers R-28 R-19
heal 30000
plugin disks stages
alloc a
task a/main hooks 7 7 7 7 7 attempts 3
claim a/data plugin disks disk 0
at 0 assign a
at 1000 crash 500
at 3000 exit a/main 1
expect daemons 2
expect performs volume a/data PUBLISH 1
expect performs volume a/data LOOK 3
always starts a/main 2
always first daemons then starts a/main
always mounted a/data yes
always status a running
