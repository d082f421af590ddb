# Stand-alone, the journal alone knows that work has ended: a crash and a reboot change nothing.
# covers R-01
heal 20000
alloc a batch
task a/main runs 500 exits 3 attempts 0
at 0 assign a
when task a/main CLEANUP before crash 200
at 3000 boot 1000
expect daemons 3
always starts a/main 1
always exit a/main 3
always status a failed
