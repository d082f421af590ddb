# A daemon that is down has no contact: the time without it goes on over its crashes and a reboot, and is no longer by them; one that comes back in time counts anew.
# covers R-08
mode server
heal 90000
alloc a stop_after 8000
task a/main
alloc b stop_after 30000
task b/main
alloc c stop_after 30000
task c/main
alloc late stop_after 9000
task late/main
at 0 assign a
at 0 assign b
at 4000 crash 3000
at 12000 crash 10000
at 25000 server blackhole
at 27000 crash 3000
at 33000 boot 4000
at 45000 server up
at 46000 assign c
at 50000 crash 20000
at 75000 assign late
at 78000 server down
at 80000 crash 2000
expect daemons 7
expect starts a/main 1
expect starts late/main 1
expect status late complete
expect told late complete 1
always status a complete
always alive a/main no
always alive b/main yes
always ends c/main 0
