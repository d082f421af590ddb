# A payload that ignores its signal is killed when its time is over, daemon or not.
# covers R-08 R-10
heal 20000
alloc a
task a/main ignores_term kill 3000
alloc b
task b/main ignores_term kill 3000
at 0 assign a
at 0 assign b
at 1000 stop a
when task a/main STOPPING then crash 1000
at 6000 stop b
when task b/main STOPPING then crash 5000
expect exit a/main 137
expect exit b/main 137
expect starts a/main 1
expect status a complete
expect status b complete
always starts a/main at_most 1
always alive a/main no
always alive b/main no
always status b complete
