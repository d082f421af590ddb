# A reboot excuses the restart of what it ended, once: a task that then fails by itself uses up its attempts.
# covers R-03 R-08 R-35
heal 90000
alloc a
task a/main runs 3000 exits 1 attempts 1 backoff 500 interval 60000
alloc b
task b/main attempts 1 backoff 500
alloc c batch
task c/main runs 500
at 0 assign a
at 0 assign b
at 0 assign c
at 1000 boot 1000
at 1001 dir_lost b
expect enters task a/main BACKOFF 1
always starts a/main 3
always exit a/main 1
always status a failed
always starts b/main 1
always status b failed
always state alloc b TERMINAL
always starts c/main 1
always status c complete
