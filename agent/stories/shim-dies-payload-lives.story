# The shim alone is killed, with the daemon up and away: the payload is ended before the next starts.
# covers R-10 R-52 R-54
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
expect starts a/main 2
expect ends a/main 1
expect starts b/main 2
expect first ends b/main then enters task b/main BACKOFF
expect enters task a/main BACKOFF 1
expect enters task b/main BACKOFF 1
expect state task a/main RUNNING
expect state task b/main RUNNING
always starts a/main at_most 2
always starts b/main at_most 2
always status a running
always status b running
