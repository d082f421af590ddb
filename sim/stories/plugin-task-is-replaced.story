# A newer version of a plugin's task takes over from the older one: volumes go on through whichever is ready, and nobody waits.
# covers R-51
heal 200000
plugin disks stages
plugin newer of disks stages
alloc p
task p/driver serves disks
alloc q
task q/driver serves newer
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 1
at 0 assign p
at 1000 assign a
at 2000 assign q
at 3000 stop p
at 4000 assign b
at 5000 stop a
expect starts b/main 1
expect mounted b/data yes
expect enters volume b/data QUEUED 0
expect claimed a/data no
expect mounted a/data no
expect enters volume a/data DRAINING 0
always state plugin newer READY
always status p complete
