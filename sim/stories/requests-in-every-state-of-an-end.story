# Users ask for restarts, signals, stops and removals while an alloc ends: agreed or refused, never lost.
# covers R-04 R-05
heal 90000
plugin disks stages
alloc a hooks 1 1 1 1 delay 500
task a/main delay 500 hooks 7 7 7 7 7 kill 500 ignores_term
task a/last lifecycle poststop runs 500
claim a/data plugin disks disk 0
at 0 assign a
when alloc a PREPARING then restart a
when alloc a MOUNTING then restart a
at 5000 stop a
when alloc a PREKILL then restart a
when alloc a PREKILL then stop a
when alloc a DELAYING then restart a
when alloc a DELAYING then stop a
when alloc a KILLING then restart a
when alloc a POSTSTOP then restart a
when alloc a RELEASING then restart a
when alloc a POSTRUN then restart a
when task a/main PREKILL then signal a/main
when task a/main PREKILL then restart_task a/main
when task a/main DELAYING then restart_task a/main
when task a/main STOPPING then signal a/main
when task a/main STOPPING then restart_task a/main
when task a/main REAPING then signal a/main
when task a/main EXITED then signal a/main
when task a/main CLEANUP then signal a/main
when task a/main CLEANUP then restart_task a/main
when task a/last PRESTART then signal a/last
when task a/last STARTING then signal a/last
expect refused alloc a RESTART 8
expect done task a/main SIGNAL 2
expect refused task a/main RESTART 4
expect refused task a/last SIGNAL 2
always starts a/main 1
always starts a/last 1
always exit a/main 137
always status a complete
always claimed a/data no
always refused alloc a RESTART at_most 8
always alive a/main no
