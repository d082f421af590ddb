# Payloads leave descendants behind: all of a cgroup is ended before the next attempt and at the end.
# covers R-18
heal 30000
alloc a
task a/main runs 500 forks attempts 2 exits 1
alloc b batch
task b/main runs 500 forks
at 0 assign a
at 0 assign b
when task a/main REAPING then crash 200
fate ERR task b/main DRIVER_DESTROY 1
expect performs task b/main DRIVER_DESTROY at_least 2
always starts a/main 3
always exit b/main 0
always alive b/main no
always status b complete
always starts b/main 1
