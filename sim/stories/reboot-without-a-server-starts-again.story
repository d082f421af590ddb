# Stand-alone, the journal is the authority: what ran before a reboot runs again after it, at once.
# covers R-16 R-29 R-65
heal 30000
alloc a
task a/main attempts 0
at 0 assign a
at 1000 boot 2000
at 10000 boot 2000
expect daemons 3
expect enters task a/main HELD 0
expect enters task a/main BACKOFF 0
always starts a/main 3
always state task a/main RUNNING
