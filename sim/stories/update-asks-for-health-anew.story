# A newer version in place is of another deployment: whether its alloc is healthy is asked anew, and both times begin with it.
# covers R-08
mode server
heal 60000
alloc good healthy 3000 20000
task good/main
alloc early healthy 3000 8000
task early/main
alloc ill healthy 3000 8000
task ill/main attempts 9 backoff 500
alloc same healthy 3000 20000
task same/main
alloc last healthy 3000 20000
task last/main attempts 0 kill 3000 ignores_term
alloc told healthy 3000 20000
task told/main
at 0 assign good
at 0 assign early
at 0 assign ill
at 0 assign same
at 0 assign last
at 0 assign told
at 2000 update early 2
at 4000 update ill 2
at 5000 update good 2
at 5000 update same 3
at 6500 crash 300
at 6000 say_unhealthy told
at 5500 exit ill/main 1
at 8000 exit ill/main 1
at 10500 exit ill/main 1
at 7000 update told 2
at 7500 exit last/main 1
at 7700 update last 2
expect daemons 2
always health good healthy
always health early healthy
always health ill unhealthy
always health same healthy
always health last unhealthy
always health told healthy
always status good running
always status ill running
always starts good/main 1
always starts told/main 1
