# Who has checks is healthy once all of them have passed for min_healthy_time: a daemon that dies keeps what they found, a boot does not; a check that fails too often restarts its task.
# covers R-08 R-59
heal 60000
alloc soon healthy 1000 20000 checks 2
task soon/main
alloc never healthy 1000 8000 checks 2
task never/main
alloc again healthy 3000 20000 checks 1
task again/main
alloc ill healthy 1000 20000 checks 1
task ill/main attempts 1 backoff 100
alloc other healthy 1000 20000
task other/main
at 0 assign soon
at 0 assign never
at 0 assign again
at 0 assign ill
at 0 assign other
at 2000 check soon 1
at 2000 check never 1
at 2000 check again 1
at 2000 check ill 1
at 3000 check again 0
at 3500 crash 200
at 5000 check soon 3
at 9000 check again 1
at 10000 unwell ill/main
at 12000 unwell ill/main
at 13000 boot 1000
expect health soon healthy
expect health never unhealthy
expect notes never/main ALLOC_UNHEALTHY 1
expect health again healthy
expect health ill healthy
expect notes ill/main RESTART_SIGNALED 2
expect status ill failed
expect health other healthy
