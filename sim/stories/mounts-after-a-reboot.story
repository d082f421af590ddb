# Reboot, restart, reboot, removal: mounts are asked for each time, and what is unmounted already is unmounted.
# covers R-65
heal 60000
plugin disks stages
alloc a
task a/main attempts 0
claim a/data plugin disks disk 0
at 0 assign a
at 1000 boot 1000
at 5000 crash 500
at 10000 boot 1000
at 10500 destroy a
expect daemons 4
expect performs volume a/data LOOK 6
always state alloc a absent
always mounted a/data no
always claimed a/data no
