# The leader ends: the others are told, sidecars last, poststop tasks run behind all of them.
# covers R-19
heal 60000
alloc a
task a/lead leader runs 1000 attempts 0
task a/main ignores_term kill 1000
task a/side lifecycle poststart sidecar
task a/last lifecycle poststop runs 100
alloc b
task b/lead leader
task b/main
task b/side lifecycle prestart sidecar
at 0 assign a
at 0 assign b
when task a/main STOPPING then crash 300
at 5000 stop b
when task b/lead STOPPING then crash 300
always first ends a/lead then ends a/main
always first ends a/main then starts a/last
always exit a/main 137
always status a failed
always first ends b/lead then enters task b/main STOPPING
always first ends b/main then enters task b/side STOPPING
always starts b/main 1
always status b complete
always state alloc a TERMINAL
always state alloc b TERMINAL
