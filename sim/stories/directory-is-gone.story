# A reboot takes an alloc's directory with it: the alloc fails with that reason and is cleaned up.
# covers R-35
heal 60000
alloc a
task a/main attempts 2
alloc b
task b/main
at 0 assign a
at 0 assign b
at 1000 boot 1000
at 1001 dir_lost a
always starts a/main 1
always status a failed
always state alloc a TERMINAL
always starts b/main 2
always status b running
