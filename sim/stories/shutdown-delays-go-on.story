# The group's and the task's shutdown_delay are waited for once, whatever happens to the daemon.
# covers R-08
heal 30000
alloc a delay 3000
task a/main delay 2000
alloc b hooks 1 1 1 1
task b/main delay 1000 hooks 7 7 7 7 7
alloc early batch
task early/main runs 100
alloc late batch
task late/main runs 100
at 0 assign a
at 0 assign b
at 1000 stop a
at 1000 stop b
when alloc a DELAYING then crash 500
when task a/main DELAYING then crash 500
at 2500 signal b/main
at 5900 assign early
at 6100 assign late
expect daemons 3
expect enters alloc a DELAYING 1
expect enters task a/main DELAYING at_least 1
expect first starts early/main then enters task a/main STOPPING
expect first enters task a/main STOPPING then starts late/main
always first enters alloc a DELAYING then enters task a/main DELAYING
always exit a/main 143
always exit b/main 143
always status a complete
always enters alloc a DELAYING at_most 1
