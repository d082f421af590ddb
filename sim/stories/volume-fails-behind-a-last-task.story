# A volume is gone while a last task runs: that one is left alone, and when it fails it cannot start again.
# covers R-32 R-33
heal 60000
plugin disks
alloc a batch
task a/main runs 500
task a/last lifecycle poststop runs 5000 exits 1 attempts 3 backoff 1000
claim a/data plugin disks disk 0
at 0 assign a
at 2000 unmount a/data
at 2100 crash 500
fate SRV(denied) volume a/data CLAIM 2
expect daemons 2
expect first enters volume a/data BROKEN then ends a/last
expect starts a/last 1
expect exit a/last 1
expect starts a/main 1
always status a failed
always claimed a/data no
always mounted a/data no
