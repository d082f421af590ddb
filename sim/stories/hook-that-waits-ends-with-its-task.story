# A task whose hook waits, as for a host volume that a plugin makes, is told to end: nobody waits for the hook any more.
# covers R-40 R-69
heal 600000
alloc a
task a/main hooks 7 7 7 7 7
alloc later batch
task later/main runs 100
at 0 assign a
fate SLOW task a/main HOOK 2 ms 290000
at 10000 stop a
at 20000 assign later
expect first enters task a/main DEAD then starts later/main
expect starts a/main 0
always status a complete
