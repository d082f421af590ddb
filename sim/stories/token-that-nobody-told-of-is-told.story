# Tokens are renewed: one is written and no more, one told by a signal, one by another start.  The daemon dies between writing one and telling of it: all are renewed by the next, and the task is told once.
# covers R-31 R-57
heal 60000
alloc a
task a/main hooks 514 512 0 0 512 attempts 0
at 0 assign a
at 1000 renew a/main 0
at 2000 renew a/main 1
at 4000 renew a/main 4
at 9000 crash 1000
at 12000 renew a/main 2
at 16000 renew a/main 5
at 20000 boot 1000
expect hups a/main 1
expect notes a/main RESTART_SIGNALED 3
expect starts a/main 5
always state task a/main RUNNING
