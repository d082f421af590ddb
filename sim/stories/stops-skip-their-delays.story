# Who stops an alloc may have it wait for no shutdown_delay: from the start, in the group's, in the task's, over a crash.
# covers R-08
heal 30000
alloc a delay 9000
task a/main delay 9000
alloc b delay 9000
task b/main delay 9000
alloc c delay 20
task c/main delay 9000
alloc d delay 9000 hooks 1 1 1 1
task d/main delay 9000 hooks 7 7 7 7 7
alloc late batch
task late/main runs 100
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 1000 hurry a
at 1000 stop b
at 1500 hurry b
at 1000 stop c
when task c/main DELAYING then crash 500
at 3000 hurry c
at 1000 stop d
when alloc d PREKILL then hurry d
at 7000 assign late
expect enters alloc b DELAYING 1
expect enters task b/main DELAYING 0
expect enters task c/main DELAYING at_least 1
expect first enters task b/main STOPPING then starts late/main
expect first enters task c/main STOPPING then starts late/main
expect first enters task d/main STOPPING then starts late/main
expect notes a/main SKIPPING_DELAY 1
expect notes b/main SKIPPING_DELAY 1
expect notes c/main SKIPPING_DELAY 0
expect notes d/main SKIPPING_DELAY 1
always enters alloc a DELAYING 0
always enters task a/main DELAYING 0
always enters alloc b DELAYING at_most 1
always exit a/main 143
always exit b/main 143
always exit c/main 143
always exit d/main 143
always status c complete
