# Checks ask for restarts again and again, at each step of a restart: those of a running task are granted.
# covers R-68
heal 60000
alloc a
task a/main hooks 7 7 7 7 7 attempts 0
alloc b
task b/main attempts 0
task b/other attempts 0
at 0 assign a
at 0 assign b
at 1000 restart_task a/main
at 1000 restart_task a/main
at 1000 restart a
at 1001 restart_task a/main
at 1003 restart_task a/main
at 1005 restart a
at 1007 restart_task a/main
at 1009 restart_task a/main
at 1011 restart_task a/main
when task a/main PRESTART nth 2 then restart_task a/main
when task a/main STARTING nth 2 then restart_task a/main
when task a/main RUNNING nth 2 then restart_task a/main
when task a/main REAPING nth 2 then restart_task a/main
when task a/main EXITED nth 2 then restart_task a/main
at 2000 restart b
at 2001 restart b
at 3000 crash 200
at 4000 restart b
expect starts a/main 3
expect starts b/main 3
expect starts b/other 3
expect enters task a/main BACKOFF 0
always status a running
always status b running
always enters task a/main BACKOFF 0
always starts b/main at_most 4
