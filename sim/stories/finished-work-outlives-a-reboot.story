# Work that ended, with the server none the wiser, does not run again after a reboot.
# covers R-01 R-03
mode server
heal 30000
alloc a batch
task a/main runs 500
at 0 assign a
at 400 server blackhole
at 2000 boot 3000
at 9000 server up
expect daemons 2
expect told a complete 1
always starts a/main 1
always exit a/main 0
always status a complete
