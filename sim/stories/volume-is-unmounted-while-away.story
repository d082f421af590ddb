# The mount of an alloc that was stopped meanwhile is gone already: that is what was wanted.
# covers R-40 R-48 R-65
mode server
heal 60000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
at 0 assign a
at 1000 crash 3000
at 2000 unmount a/data
at 2500 stop a
expect enters volume a/data BROKEN 0
always mounted a/data no
always staged a/data no
always claimed a/data no
always status a complete
