# The shim alone is killed, with the daemon up and away: the payload is ended before the next starts.
# covers R-10 R-52
heal 60000
alloc a
task a/main ignores_term forks attempts 3
alloc b
task b/main ignores_term forks attempts 3
at 0 assign a
at 0 assign b
at 1000 shim a/main
at 5000 crash 3000
at 6000 shim b/main
expect enters task a/main BACKOFF 1
expect enters task b/main BACKOFF 1
always starts a/main 2
always ends a/main 1
always starts b/main 2
always first ends b/main then enters task b/main BACKOFF
always state task a/main RUNNING
always state task b/main RUNNING
always status a running
always status b running
