# What a template reads changes while no daemon looks, and the daemon dies before it has told of it, and behind that: the task is told once.
# covers R-31 R-09
heal 60000
alloc a
task a/main hooks 130 128 0 0 128 attempts 0
at 0 assign a
at 1000 crash 2000
at 2000 change a/main 1
when task a/main RUNNING nth 2 after crash 100
at 6000 crash 1000
at 6500 change a/main 2
when task a/main STOPPING after crash 100
at 20000 boot 1000
always hups a/main 1
expect notes a/main SIGNALING 1
expect notes a/main RESTART_SIGNALED 1
always starts a/main 3
always state task a/main RUNNING
