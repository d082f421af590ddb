# A restart of all tasks goes on over crashes and a reboot: whoever has come back to its turn waits for the others.
# covers R-04 R-08
heal 90000
alloc a
task a/init lifecycle prestart runs 500
task a/main leader dies 500 hooks 7 0 7 7 7
task a/other dies 500
task a/after lifecycle poststart sidecar dies 500
alloc b
task b/init lifecycle prestart runs 500
task b/main dies 2000 kill 5000
at 0 assign a
at 0 assign b
at 5000 replay a
when task a/main PREKILL then crash 100
when task a/main STOPPING then crash 100
when task a/other STOPPING then crash 100
when task a/after REAPING then crash 100
at 20000 replay b
at 20500 boot 4000
expect daemons 6
expect enters alloc a REPLAYING 1
expect enters alloc b REPLAYING 1
expect first ends a/other then ends a/after
expect starts a/init 2
expect starts a/main 3
expect starts a/other 3
expect starts a/after at_least 2
expect starts b/init 2
expect starts b/main 2
always state task a/init DEAD
always state task b/init DEAD
always alive a/main yes
always alive a/other yes
always alive a/after yes
always alive b/main yes
always status a running
