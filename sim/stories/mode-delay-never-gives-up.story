# Restart mode delay: when the attempts of an interval are used up, the next interval is waited for.
# covers R-08
heal 25000
alloc a
task a/main runs 100 exits 1 attempts 1 backoff 500 interval 10000 mode_delay
at 0 assign a
when task a/main BACKOFF nth 2 after crash 300
expect starts a/main at_least 5
always status a running
always state task a/main RUNNING
always starts a/main at_least 5
