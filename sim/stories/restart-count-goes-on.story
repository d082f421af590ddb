# Two restarts are allowed; the daemon dies between the attempts; there is no third restart.
# covers R-08
heal 60000
alloc a
task a/main runs 100 exits 1 attempts 2 backoff 1000
at 0 assign a
when task a/main BACKOFF after crash 300
when task a/main BACKOFF nth 2 then crash 300
expect daemons 3
expect enters task a/main BACKOFF 2
always starts a/main 3
always exit a/main 1
always status a failed
always enters task a/main BACKOFF 2
