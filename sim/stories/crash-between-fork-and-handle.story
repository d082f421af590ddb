# The daemon dies when the payload has been made and not yet written down: it is found, not doubled.
# covers R-09
heal 60000
cut happens
alloc a
task a/main
alloc b
task b/main
alloc c
task c/main
at 0 assign a
at 3000 assign b
at 6000 assign c
when task a/main STARTING then crash 500
when task b/main STARTING after crash 500
when task c/main RUNNING before crash 500
fate SLOW task a/main DRIVER_START 1 ms 40
expect daemons 4
always starts a/main 1
always starts b/main 1
always starts c/main 1
always state task a/main RUNNING
always state task b/main RUNNING
always state task c/main RUNNING
always ends c/main 0
