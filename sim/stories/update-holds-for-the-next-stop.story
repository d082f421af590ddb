# A newer version changes nothing that runs: the next stop waits as it says, one that has begun goes on as it was.
# covers R-08
mode server
heal 60000
alloc a
task a/main ignores_term kill 2000
alloc b
task b/main ignores_term kill 1000
alloc d delay 1000
task d/main
alloc h
task h/main delay 6000
alloc early batch
task early/main runs 100
alloc late batch
task late/main runs 100
at 0 assign a
at 0 assign b
at 0 assign d
at 0 assign h
at 500 update a 4
at 500 update b 4
at 500 update d 4
at 1000 crash 100
at 2000 stop a
at 2000 stop b
at 2000 stop d
at 2000 stop h
when task b/main STOPPING then update b 1
when task h/main DELAYING then update h 1
when alloc d DELAYING then update d 1
at 3500 term 100
at 5500 assign early
at 7000 assign late
expect daemons 3
expect first enters alloc d DELAYING then starts early/main
expect first starts early/main then enters alloc d KILLING
expect first starts early/main then ends b/main
expect first ends b/main then starts late/main
expect first starts late/main then ends h/main
expect first starts late/main then ends a/main
always exit a/main 137
always exit b/main 137
always starts a/main 1
always starts b/main 1
always starts d/main 1
always starts h/main 1
always status a complete
always status b complete
always status d complete
always status h complete
