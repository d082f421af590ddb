# What a driver, or a hook, says of a task is told of it once, before and while it starts as later, and through a crash.
# covers R-15
heal 30000
alloc a
task a/main
at 0 assign a
when task a/main PRESTART then says a/main
when task a/main STARTING then says a/main
at 3000 says a/main
at 5000 crash 500
expect notes a/main DRIVER 3
expect enters task a/main RUNNING 2
expect alive a/main yes
