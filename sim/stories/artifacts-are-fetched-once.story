# What a task needs is fetched before it starts, once: a restart finds it there, and what could not be fetched is a start that failed.
# covers R-32
heal 60000
alloc a
task a/main attempts 2 backoff 500 hooks 66 0 0 0 2
alloc b batch
task b/main attempts 0 hooks 66 0 0 0 2
at 0 assign a
at 0 assign b
fate ERR task a/main HOOK 2
fate ERR(permanent) task b/main HOOK 2
at 4000 restart_task a/main
at 6000 crash
expect notes a/main DOWNLOADING 2
expect notes a/main DOWNLOAD_FAILED 1
expect notes a/main HOOK_FAILED 0
expect notes a/main STARTED 2
expect starts a/main 2
expect notes b/main DOWNLOADING 1
expect notes b/main DOWNLOAD_FAILED 1
expect notes b/main NOT_RESTARTING 1
expect starts b/main 0
expect status b failed
always starts b/main at_most 1
