# A shutdown tells payloads and shims to end, and the records of their ends say so: that is the reboot's doing, and uses up no attempt. What then fails by itself does; batch work that ends well when it is told to has finished.
# covers R-01 R-03 R-08
heal 90000
alloc a
task a/main attempts 0
alloc b
task b/main runs 3000 exits 1 attempts 1 backoff 500 interval 60000
alloc c batch
task c/main runs 500
alloc d batch
task d/main runs 3000 attempts 0
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 1000 shutdown 1000
expect enters task a/main BACKOFF 0
always starts a/main 2
always status a running
expect enters task b/main BACKOFF 1
always starts b/main 3
always exit b/main 1
always status b failed
always starts c/main 1
always status c complete
always starts d/main 1
always status d complete
