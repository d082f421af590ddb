# Each task that has made its alloc unhealthy says so, once, wherever it is by then: failed, over, in its pause, or waiting for its turn.
# covers R-15
heal 60000
alloc a healthy 3000 20000
task a/main attempts 0 runs 1000 exits 1
task a/other
alloc b healthy 1000 4000
task b/init lifecycle prestart runs 9000
task b/main
alloc c healthy 1000 4000
task c/main runs 300 exits 1 attempts 9 backoff 8000
alloc d healthy 3000 4000
task d/init lifecycle prestart runs 2000
task d/main
alloc e healthy 1000 4000
task e/main hooks 7 0 0 0 7
alloc f healthy 1000 4000
task f/main
alloc g batch healthy 3000 20000
task g/main runs 1000 hooks 7 0 0 0 7
alloc h batch healthy 3000 20000
task h/main runs 1000
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 0 assign e
at 0 assign f
at 0 assign g
at 0 assign h
fate SLOW task e/main HOOK 1 ms 9000
fate SLOW task f/main DRIVER_START 1 ms 9000
fate ERR task g/main HOOK 4
expect notes a/main ALLOC_UNHEALTHY 1
expect notes a/other ALLOC_UNHEALTHY 0
expect notes b/init ALLOC_UNHEALTHY 0
expect notes b/main ALLOC_UNHEALTHY 1
expect notes c/main ALLOC_UNHEALTHY 1
expect notes d/main ALLOC_UNHEALTHY 1
expect notes e/main ALLOC_UNHEALTHY 1
expect notes f/main ALLOC_UNHEALTHY 1
expect notes g/main ALLOC_UNHEALTHY 1
expect notes h/main ALLOC_UNHEALTHY 1
always health a unhealthy
always health g unhealthy
