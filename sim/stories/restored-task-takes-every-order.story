# A restored task can do what a fresh one can: signal, restart, restart of its alloc, stop.
# covers R-19
heal 30000
alloc a
task a/main attempts 0
at 0 assign a
at 1000 crash 500
at 2000 signal a/main
at 2500 restart_task a/main
at 4000 crash 500
at 5000 restart a
at 7000 crash 500
at 8000 stop a
expect done task a/main SIGNAL 1
expect done task a/main RESTART 1
expect done alloc a RESTART 1
expect done alloc a STOP 1
expect starts a/main 3
expect enters task a/main BACKOFF 0
always exit a/main 143
always status a complete
always state task a/main DEAD
always enters task a/main BACKOFF 0
always starts a/main at_most 3
