# A task waits for its shutdown_delay when the daemon dies, and is looked at when its alloc is told not to wait.
# covers R-08
heal 30000
alloc a
task a/main delay 9000
alloc late batch
task late/main runs 100
at 0 assign a
at 1000 stop a
when task a/main DELAYING then crash 500
when task a/main RECOVERING then hurry a
at 7000 assign late
expect first enters task a/main STOPPING then starts late/main
expect enters task a/main DELAYING at_least 1
expect exit a/main 143
always status a complete
