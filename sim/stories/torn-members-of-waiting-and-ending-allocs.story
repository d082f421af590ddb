# Records of tasks are lost while their allocs prepare, delay, run poststop tasks and release volumes.
# covers R-21
heal 60000
plugin disks
alloc a
task a/main
alloc b delay 2000 hooks 1 0 1 1
task b/main
task b/other
alloc c
task c/main
task c/after lifecycle poststop runs 3000
alloc d
task d/main ignores_term kill 4000
task d/other
at 0 assign b
at 0 assign c
at 0 assign d
at 1000 stop b
at 1000 stop c
at 1000 stop d
at 1500 assign a
when task a/main PRESTART then crash 500
at 1600 torn_cut task a/main
at 1700 torn_cut task b/main
at 1800 torn_cut task c/after
at 1900 torn_cut task d/other
expect quarantined task a/main 1
expect quarantined task b/main 1
expect quarantined task c/after 1
expect quarantined task d/other 1
expect state alloc a TERMINAL
expect starts a/main 0
always state alloc b TERMINAL
always state alloc c TERMINAL
always state alloc d TERMINAL
always alive b/main no
always alive c/after no
always alive c/main no
always alive d/main no
