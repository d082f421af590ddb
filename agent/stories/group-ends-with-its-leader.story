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
expect first ends a/lead then ends a/main
expect first ends a/main then starts a/last
expect exit a/main 137
expect status a failed
expect first ends b/lead then enters task b/main STOPPING
expect first ends b/main then enters task b/side STOPPING
expect starts b/main 1
expect status b complete
always first ends b/lead then enters task b/main STOPPING
always first ends b/main then enters task b/side STOPPING
always state alloc a TERMINAL
always state alloc b TERMINAL
