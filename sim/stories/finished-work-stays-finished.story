# Work that ended while no server could hear of it does not run again after a crash.
# covers R-01 R-15
mode server
heal 20000
alloc a batch
task a/main runs 500
at 0 assign a
at 400 server down
when task a/main DEAD after crash 1000
at 5000 server up
expect daemons 2
expect told a complete 1
always starts a/main 1
always exit a/main 0
always state alloc a TERMINAL
always status a complete
