# The host goes down while a task is set up, started, stopped, reaped, waits, and while its last hooks run.
# covers R-03 R-16 R-22
mode server
heal 120000
alloc a
task a/main hooks 7 7 7 7 7 attempts 3
alloc b
task b/main hooks 7 7 7 7 7 attempts 3 backoff 2000
at 0 assign a
at 10000 assign b
when task a/main PRESTART then boot 500
when task a/main STARTING then boot 500
at 6000 stop a
when task a/main STOPPING then boot 500
when task b/main RUNNING then exit b/main 1
when task b/main EXITED then boot 500
when task b/main BACKOFF then boot 500
expect daemons 6
always alive a/main no
always status a complete
always state task b/main RUNNING
always status b running
always starts b/main 2
