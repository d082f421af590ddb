# The runtime directory of a start that a hard reboot cut short is left: it is no reason to refuse, nor to believe.
# covers R-16
heal 30000
cut happens
alloc a
task a/main
alloc b
task b/main
at 0 assign a
at 3000 assign b
when task a/main STARTING then boot 1000
fate SLOW task b/main DRIVER_START 1 ms 50
when task b/main STARTING then boot 1000
expect daemons 3
expect starts a/main at_most 2
expect ends a/main at_most 1
always state task a/main RUNNING
always state task b/main RUNNING
always status a running
always status b running
