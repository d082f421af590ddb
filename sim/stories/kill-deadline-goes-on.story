# A payload that ignores its signal is killed when its time is over, daemon or not.
# covers R-08 R-10
heal 20000
alloc a
task a/main ignores_term kill 3000
alloc b
task b/main ignores_term kill 3000
alloc early batch
task early/main runs 100
alloc late batch
task late/main runs 100
at 0 assign a
at 0 assign b
at 1000 stop a
when task a/main STOPPING then crash 1000
at 3900 assign early
at 4100 assign late
at 6000 stop b
when task b/main STOPPING then crash 5000
expect first starts early/main then ends a/main
expect first ends a/main then starts late/main
always exit a/main 137
always exit b/main 137
always starts a/main 1
always status a complete
always status b complete
always alive a/main no
always alive b/main no
