# The time for which tasks must run before their alloc is healthy goes on while no daemon looks, and begins anew after a reboot.
# covers R-08
heal 90000
alloc a healthy 10000 60000
task a/main
task a/side lifecycle poststart sidecar
alloc gone healthy 10000 60000
task gone/main attempts 5
alloc b healthy 10000 30000
task b/main
alloc cut healthy 10000 12000
task cut/main runs 9000 attempts 5
alloc slow healthy 10000 12000
task slow/main
alloc first
task first/main dies 3000
alloc next after first healthy 1000 3000
task next/main
at 0 assign a
at 0 assign gone
at 0 assign slow
at 0 assign cut
at 4000 crash 9000
at 8000 exit gone/main 1
at 20000 assign b
at 24000 boot 5000
at 40000 assign first
at 41000 assign next
at 41000 stop first
when alloc next RUNNING then crash 100
when alloc b RUNNING then crash 100
expect daemons 5
always health a healthy
always health gone healthy
expect health slow healthy
always health cut unhealthy
always health b healthy
expect health next healthy
