# A stop that comes between any two steps of a start: no payload without its hooks, none left.
# covers R-05
heal 30000
alloc a
task a/main
alloc b
task b/main
alloc c
task c/main
alloc d
task d/main
alloc e
task e/main
alloc f
task f/main hooks 7 7 7 7 2
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 0 assign e
at 0 assign f
when alloc a PREPARING then stop a
when task b/main PRESTART then stop b
when task c/main STARTING after stop c
when task d/main STARTING then stop d
when task e/main RUNNING after stop e
when task f/main RUNNING then stop f
expect starts a/main 0
expect starts b/main 0
expect starts d/main 1
always starts e/main 1
always starts f/main 1
always alive a/main no
always alive b/main no
always alive c/main no
always alive d/main no
always alive e/main no
always alive f/main no
always status a complete
always status d complete
always starts a/main at_most 1
always starts b/main at_most 1
always starts c/main at_most 1
always status f complete
