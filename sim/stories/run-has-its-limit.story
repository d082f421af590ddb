# Whose max_run_duration is over is ended, complete, without its poststop tasks: the limit goes on over crashes and a reboot.
# covers R-08
heal 40000
alloc a batch limit 3000
task a/main
task a/last lifecycle poststop runs 100
alloc b batch limit 3000 hooks 1 1 1 1
task b/main
alloc c batch limit 3000 delay 1000
task c/main
alloc d batch limit 3000
task d/main runs 1000
task d/last lifecycle poststop runs 30000
alloc f batch limit 5000
task f/main
alloc g batch limit 3000 delay 6000
task g/main
task g/last lifecycle poststop runs 100
alloc late batch
task late/main runs 100
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 0 assign g
when task a/main RUNNING then crash 500
at 1000 stop g
at 3200 assign late
at 10000 assign f
at 12000 boot 4000
expect daemons 3
expect first enters alloc a KILLING then starts late/main
expect enters alloc b PREKILL 1
expect enters alloc c DELAYING 1
expect enters alloc d POSTSTOP 1
expect enters alloc g POSTSTOP 0
expect starts f/main 1
always starts a/main 1
always starts a/last 0
always starts d/last 1
always starts g/last 0
always status a complete
always status b complete
always status c complete
always status d complete
always status f complete
always status g complete
always alive a/main no
always alive f/main no
