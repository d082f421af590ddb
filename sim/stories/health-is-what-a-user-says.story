# What a user says of the health of an alloc holds, whatever its tasks have come to; where only he may, they say nothing.
# covers R-08
heal 60000
alloc good healthy 3000 20000 manual
task good/main
alloc quiet healthy 3000 20000 manual
task quiet/main
alloc bad healthy 3000 20000 manual
task bad/main attempts 0 runs 1000 exits 1
alloc early healthy 8000 20000
task early/main
alloc twice healthy 1000 20000
task twice/main
alloc wanting healthy 1000 20000
task wanting/main
alloc over batch healthy 3000 20000 manual
task over/main runs 1000
at 0 assign good
at 0 assign quiet
at 0 assign bad
at 0 assign early
at 0 assign twice
at 0 assign wanting
at 0 assign over
at 2000 say_healthy good
at 2000 say_unhealthy early
at 3000 say_unhealthy twice
at 3000 say_unhealthy wanting
at 4000 crash 500
at 6000 say_healthy twice
at 6000 say_unhealthy over
expect health good healthy
always health quiet unknown
always health bad unknown
expect health early unhealthy
expect health twice healthy
expect health wanting unhealthy
expect health over unhealthy
always starts good/main 1
always status early running
