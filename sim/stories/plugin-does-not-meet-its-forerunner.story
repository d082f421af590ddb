# A plugin is removed while calls of it are under way and installed again at once: their answers are not taken for its own.
# covers R-49
heal 200000
plugin disks stages
plugin other
alloc a
task a/main
claim a/data plugin disks disk 0
fate SLOW plugin disks PROBE 1 ms 3000
fate SLOW plugin other LAUNCH 1 ms 3000
when plugin disks PROBING then remove disks
when plugin disks GONE then install disks
at 100 remove other
at 200 install other
at 0 assign a
expect enters plugin disks GONE 1
expect enters plugin other GONE 1
expect performs plugin other LAUNCH 2
always state plugin disks READY
always state plugin other READY
always starts a/main 1
always mounted a/data yes
