# An older copy of the journal knows the first version only, whose time to be healthy is over; the newer one is asked for its own when it comes again.
# covers R-08 R-38
mode server
heal 60000
alloc a healthy 3000 8000
task a/main attempts 9 backoff 500
at 0 assign a
at 1000 copy
at 2000 exit a/main 1
at 4500 exit a/main 1
at 6000 update a 2
at 7000 exit a/main 1
at 9000 older 500
expect daemons 2
always health a healthy
always status a running
