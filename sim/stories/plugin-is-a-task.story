# A plugin is a task: it ends and starts again beside its users, which notice nothing, and goes with its alloc; what is let go without it waits for the next.
# covers R-39 R-49
heal 4000000
plugin disks stages
alloc p
task p/driver attempts 9 backoff 1000 serves disks
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 1
at 0 assign p
at 0 assign a
at 5000 plug disks
at 5000 stop a
at 20000 crash 2000
at 21000 plug disks
at 30000 assign b
at 40000 stop p
at 41000 stop b
expect starts p/driver 3
expect notes p/driver PLUGIN_HEALTHY 3
expect enters plugin disks STOPPED at_least 1
expect starts a/main 1
expect performs volume a/data UNPUBLISH 1
expect starts b/main 1
always status p complete
always claimed a/data no
always mounted a/data no
always claimed b/data no
always mounted b/data no
