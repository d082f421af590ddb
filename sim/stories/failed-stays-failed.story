# A group that is told to have failed still has tasks that do not want to end, and one that ends well: it stays failed.
# covers R-33 R-62
mode server
heal 60000
alloc a
task a/lead leader ignores_term kill 20000
task a/bad runs 1000 exits 1 attempts 0
task a/stubborn ignores_term kill 5000
task a/last lifecycle poststop runs 500
at 0 assign a
at 3000 crash 500
at 4000 exit a/lead 0
at 4500 stop a
expect told a running 1
expect told a failed at_least 1
expect told a complete 0
always exit a/stubborn 137
always starts a/last 1
always status a failed
always state alloc a TERMINAL
