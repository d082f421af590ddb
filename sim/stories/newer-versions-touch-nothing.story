# The server has a newer version of an alloc at every step of its life: what runs is not touched.
# covers R-05
mode server
heal 60000
alloc a
task a/main delay 1000 hooks 7 7 7 7 4
task a/last lifecycle poststop runs 500 hooks 7 7 0 7 4
at 0 assign a
when alloc a PREPARING then update a 2
when task a/main PRESTART then update a 2
when task a/main STARTING then update a 2
when task a/main RUNNING then update a 2
at 3000 crash 500
when task a/main RECOVERING then update a 2
at 5000 restart_task a/main
when task a/main RUNNING nth 3 then update a 2
at 9000 stop a
when task a/main PREKILL nth 2 then update a 2
when task a/main DELAYING then update a 2
when task a/main STOPPING nth 2 then update a 2
when task a/main REAPING nth 2 then update a 2
when task a/main EXITED nth 2 then update a 2
when alloc a POSTSTOP then update a 2
when alloc a TERMINAL then update a 2
expect starts a/main 2
expect starts a/last 1
expect daemons 2
expect state alloc a TERMINAL
always starts a/last at_most 1
