# A task whose script has failed for good waits for its shutdown_delay, and the stop of its alloc does not begin it anew.
# covers R-08 R-31
heal 60000
alloc a
task a/main hooks 130 128 0 0 128 attempts 0 delay 5000
alloc early batch
task early/main runs 100
alloc late batch
task late/main runs 100
fate ERR(permanent) task a/main SCRIPT 1
at 0 assign a
at 1000 change a/main 3
at 3000 stop a
at 5800 assign early
at 6200 assign late
expect enters task a/main DELAYING 1
expect first starts early/main then enters task a/main STOPPING
expect first enters task a/main STOPPING then starts late/main
always starts a/main 1
always exit a/main 143
