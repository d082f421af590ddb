# What a template reads changes while its task is on its way to an end, waits to start again, or is over: nobody is told, and the next start says it.
# covers R-31
heal 60000
alloc a
task a/main hooks 130 128 2 0 128 attempts 2 delay 500 kill 500 ignores_term backoff 1000
at 0 assign a
at 1000 change a/main 1
when task a/main BACKOFF then change a/main 2
at 3000 exit a/main 1
when task a/main PRESTART nth 2 then change a/main 1
at 9000 stop a
when task a/main PREKILL then change a/main 1
when task a/main DELAYING then change a/main 2
when task a/main STOPPING then change a/main 1
when task a/main REAPING nth 2 then change a/main 2
expect hups a/main 1
expect notes a/main RESTART_SIGNALED 0
always starts a/main 2
always status a complete
