# Prestart, main, poststart, poststop: each in its turn, over a crash in each of them.
# covers R-19 R-22
heal 60000
alloc a batch
task a/init lifecycle prestart runs 500
task a/main runs 3000
task a/after lifecycle poststart runs 500
task a/last lifecycle poststop runs 500
at 0 assign a
when task a/init RUNNING then crash 100
when task a/main STARTING then crash 100
when task a/after RUNNING then crash 2000
when task a/last RUNNING then crash 100
expect daemons 5
always first enters task a/init DEAD then starts a/main
always first starts a/main then starts a/after
always first ends a/main then starts a/last
always starts a/init 1
always starts a/main 1
always starts a/after 1
always starts a/last 1
always exit a/last 0
always status a complete
always state alloc a TERMINAL
