# A call is not over because the plugin's task had ended before it, or because another instance of the plugin ends: what undoes it waits for its time.
# covers R-44 R-51
heal 700000
plugin disks stages
plugin newer of disks stages
alloc p
task p/driver attempts 9 backoff 1000 serves disks
alloc q
task q/driver serves newer
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 1
at 0 assign p
at 1000 plug disks
at 5000 assign a
fate LATE volume a/data STAGE 1
at 6000 stop a
at 300000 assign q
at 305000 assign b
fate LATE volume b/data STAGE 1
at 306000 stop b
at 307000 plug disks
expect enters plugin disks STOPPED 2
expect enters volume a/data DRAINING 1
expect enters volume b/data DRAINING 1
always staged a/data no
always claimed a/data no
always staged b/data no
always claimed b/data no
