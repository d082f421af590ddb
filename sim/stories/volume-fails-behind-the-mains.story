# A reboot, and a volume cannot be claimed again: what waits for its start fails, and all of it is undone.
# covers R-33 R-39
heal 30000
plugin disks
alloc a batch
task a/main runs 500
task a/last lifecycle poststop runs 200
claim a/data plugin disks disk 0
alloc b
task b/main runs 500 exits 1 attempts 5 backoff 20000
claim b/data plugin disks disk 1
alloc c
task c/main
claim c/data plugin disks disk 2
at 0 assign a
at 0 assign b
at 0 assign c
when alloc a POSTSTOP after boot 100
fate SRV(denied) volume a/data CLAIM 2
fate SRV(denied) volume b/data CLAIM 2
fate SRV(denied) volume c/data CLAIM 2
expect starts a/main 1
expect starts a/last 0
expect status a failed
expect starts b/main 1
expect status b failed
expect starts c/main 1
expect status c failed
expect claimed b/data no
expect claimed c/data no
always claimed a/data no
always starts a/main at_most 2
always starts c/main at_most 2
