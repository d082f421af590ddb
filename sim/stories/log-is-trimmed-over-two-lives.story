# A plugin is removed and comes again under its name: its old base is not the beginning of its new life.
# covers R-49
log 8
heal 300000
plugin disks
plugin other
alloc a
task a/main
at 0 assign a
at 1000 remove other
at 3000 install other
at 5000 crash 100
at 6000 remove other
at 8000 install other
at 10000 crash 100
at 12000 remove disks
at 13000 install disks
at 15000 crash 100
expect daemons 4
always state plugin disks READY
always starts a/main 1
