# A claim that is let go while its plugin is away waits for it and writes nothing, however long that takes.
# covers R-45 R-47
heal 2000000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 0
at 0 assign a
at 0 assign b
at 30000 remove disks
at 60000 stop a
at 1200000 install disks
expect enters volume a/data DRAINING 1
expect performs volume a/data UNPUBLISH 1
expect performs volume a/data UNMOUNT 0
always mounted a/data no
always claimed a/data no
always mounted b/data yes
always status b running
