# A template that says something else is written and no more, told by a signal, or by another start, each change once.
# covers R-31
heal 60000
alloc a
task a/main hooks 130 128 2 0 128 attempts 0
alloc b
task b/main hooks 130 128 0 0 128 attempts 0
at 0 assign a
at 0 assign b
at 1000 change a/main 0
at 2000 change a/main 1
at 3000 change a/main 1
at 4000 change a/main 2
at 5000 change b/main 2
at 6000 change b/main 2
at 7000 change b/main 1
always hups a/main at_most 2
always hups b/main at_most 1
expect notes a/main SIGNALING 2
expect notes a/main RESTART_SIGNALED 1
expect enters task a/main PREKILL 1
always starts a/main 2
always starts b/main 3
always state task a/main RUNNING
always state task b/main RUNNING
