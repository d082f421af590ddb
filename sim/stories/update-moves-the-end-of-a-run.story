# A newer version moves the end of a run, which is counted from its begin, and the bound of restarts: what is over already ends at once, a pause goes on.
# covers R-08
mode server
heal 60000
alloc c
task c/main
alloc e batch limit 4000
task e/main
task e/last lifecycle poststop runs 100
alloc f batch limit 4000
task f/main
alloc g
task g/main
alloc h batch limit 30000
task h/main
alloc late batch
task late/main runs 100
at 0 assign c
at 0 assign e
at 0 assign f
at 0 assign g
at 0 assign h
at 500 update c 2
at 500 update e 8
at 500 update f 2
at 1000 crash 100
at 3000 exit c/main 1
at 3000 exit g/main 1
when task g/main BACKOFF then update g 8
at 5500 assign late
at 6500 exit c/main 1
at 7000 exit g/main 1
at 11000 exit c/main 1
at 12000 update e 1
at 20000 update h 1
expect daemons 2
expect first starts late/main then enters alloc f KILLING
expect first enters alloc f KILLING then enters alloc e KILLING
expect first enters alloc e KILLING then enters alloc h KILLING
expect starts c/main 3
expect starts g/main 3
expect state task c/main DEAD
expect status c failed
always starts e/main 1
always starts e/last 0
always starts f/main 1
always starts h/main 1
always status e complete
always status f complete
always status h complete
always alive e/main no
always alive f/main no
always alive g/main yes
