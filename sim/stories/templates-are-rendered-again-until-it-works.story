# The disk of a task is full as its template changes: it is rendered again until that works, and told once, over a crash of the daemon too; a start meanwhile follows the restart policy.
# covers R-31 R-32
heal 120000
alloc a
task a/main hooks 130 128 0 0 128 attempts 0
alloc b
task b/main hooks 130 128 0 0 128 attempts 0
alloc c
task c/main hooks 130 128 0 0 128 attempts 3 backoff 2000
at 0 assign a
at 0 assign b
at 0 assign c
at 1000 unrendered a/main 5000
at 1500 change a/main 1
at 2000 change a/main 1
at 11000 unrendered b/main 5000
at 11500 change b/main 2
at 12000 crash 1000
at 20000 unrendered c/main 4000
at 21000 exit c/main 1
always hups a/main at_most 1
expect hups a/main 1
expect notes a/main SIGNALING 1
always starts a/main 1
expect notes b/main RESTART_SIGNALED 1
always starts b/main 2
expect notes c/main HOOK_FAILED 1
expect enters task c/main BACKOFF 2
always starts c/main 2
always state task a/main RUNNING
always state task b/main RUNNING
always state task c/main RUNNING
