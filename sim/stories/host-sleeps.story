# The host sleeps for half an hour with delays, kill timeouts and restart delays running; then its clock is set.
# covers R-64 R-08
mode server
heal 4000000
alloc a delay 10000
task a/main
alloc b
task b/main runs 1000 exits 1 attempts 3 backoff 60000 interval 3600000
alloc c
task c/main
at 0 assign a
at 0 assign b
at 0 assign c
at 2000 stop a
at 3000 sleep 1800000
at 1900000 jump -3600000
at 1910000 crash 500
at 1920000 jump 7200000
expect told c running 1
always status a complete
always starts a/main 1
always exit a/main 143
always starts c/main 1
always ends c/main 0
always starts b/main 4
always status b failed
