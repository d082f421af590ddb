# Whose health somebody waits for is healthy when all its tasks have run for long enough, else unhealthy by its deadline: it is said once.
# covers R-08
heal 60000
alloc good healthy 3000 20000
task good/init lifecycle prestart runs 500
task good/main
task good/hello lifecycle poststart runs 200
task good/last lifecycle poststop runs 100
alloc shaky healthy 3000 20000
task shaky/main runs 2000 attempts 5 backoff 500
alloc late healthy 3000 6000
task late/init lifecycle prestart runs 5000
task late/main
alloc bad healthy 3000 20000
task bad/main attempts 0 runs 1000 exits 1
alloc over batch healthy 3000 20000
task over/main runs 1000
alloc told healthy 3000 20000
task told/main
alloc short batch limit 2000 healthy 3000 20000
task short/main
alloc again healthy 3000 20000
task again/init lifecycle prestart runs 100
task again/main
at 0 assign good
at 0 assign shaky
at 0 assign late
at 0 assign bad
at 0 assign over
at 0 assign told
at 2000 stop told
at 0 assign short
at 0 assign again
at 2000 replay again
always health good healthy
always health shaky unhealthy
always health late unhealthy
always health bad unhealthy
always health over unhealthy
always health told unknown
always health short unknown
always health again healthy
expect starts again/main 2
always status good running
always status told complete
