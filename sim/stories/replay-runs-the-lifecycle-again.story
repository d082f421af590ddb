# A user restarts all tasks: they end in the order of a kill and start in that of their lifecycle, those that were over, too.
# covers R-04 R-22
heal 60000
alloc a
task a/init lifecycle prestart runs 500
task a/proxy lifecycle prestart sidecar dies 300
task a/main dies 300 delay 700
task a/after lifecycle poststart runs 500
alloc b
task b/main leader dies 300
task b/other dies 300
task b/last lifecycle poststop runs 100
at 0 assign a
at 0 assign b
at 5000 replay a
at 5000 replay b
when alloc a REPLAYING then replay a
when alloc a REPLAYING then restart a
expect done alloc a REPLAY 2
expect done alloc a RESTART 1
expect done alloc b REPLAY 1
expect first enters alloc a REPLAYING then ends a/main
expect first ends a/main then ends a/proxy
expect first ends b/main then ends b/other
expect enters task a/main DELAYING 0
expect starts a/init 2
expect starts a/proxy 2
expect starts a/main 2
expect starts a/after 2
expect notes a/init RESTART_SIGNALED 1
expect notes a/init RESTARTING 1
expect notes a/main RESTART_SIGNALED 1
expect notes a/main RESTARTING 1
always starts b/last 0
always state task a/init DEAD
always state task a/after DEAD
always state alloc a RUNNING
always state alloc b RUNNING
always alive a/proxy yes
always alive a/main yes
always alive b/main yes
always alive b/other yes
always status a running
