# What ends an alloc while all of its tasks are being restarted ends it: a stop, a removal, its time, a failure, a record that is lost.
# covers R-04
heal 90000
alloc a
task a/main dies 500
task a/last lifecycle poststop runs 100
alloc b
task b/main dies 500
alloc c batch limit 4000
task c/main dies 500
alloc d batch
task d/init lifecycle prestart runs 100
task d/main attempts 0
alloc e
task e/init lifecycle prestart runs 100
task e/main dies 500
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 0 assign e
at 3000 replay a
at 3200 stop a
at 3000 replay b
at 3200 destroy b
at 3800 replay c
at 3000 exit d/main 1
when task d/main CLEANUP then replay d
at 6000 torn_zero task e/init
at 7000 crash 100
at 8000 replay e
when alloc e KILLING then replay e
expect enters alloc a REPLAYING 1
expect enters alloc b REPLAYING 1
expect enters alloc c REPLAYING 1
expect enters alloc e REPLAYING 1
expect refused alloc d REPLAY 1
expect refused alloc e REPLAY 1
always starts a/main at_most 1
always starts a/last 1
always starts b/main 1
always starts c/main 1
always starts d/init 1
always starts d/main 1
always status a complete
always status c complete
always status d failed
expect status e failed
always alive a/main no
always alive b/main no
always alive c/main no
expect alive e/main no
