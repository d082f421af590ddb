# A start that fails just before its alloc is replayed once more says nothing of that replay: its task has not been sent back yet, as it was by the one before.
# covers R-04
heal 60000
alloc a
task a/main hooks 0 0 0 1 0
alloc b
task b/main
fate EXEC task a/main DRIVER_START 1
fate IO(MAP) commit 5
at 0 assign a
at 6 assign b
at 8 replay a
when task a/main PRESTART then replay a
expect enters alloc a REPLAYING 2
expect alive a/main yes
