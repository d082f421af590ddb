# Two last tasks run when the record of one is lost: that one is ended, the other one runs on to its end.
# covers R-21 R-38
heal 30000
alloc a batch
task a/main runs 500
task a/last lifecycle poststop runs 5000
task a/other lifecycle poststop runs 5000
at 0 assign a
at 2000 crash 500
at 2100 torn_cut task a/last
expect quarantined task a/last 1
always starts a/main 1
always starts a/last 1
always alive a/last no
always starts a/other 1
always exit a/other 0
always status a failed
always state alloc a TERMINAL
