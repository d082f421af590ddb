# No space, an error, a full map, in the middle of a task's life: no effect without its commit.
# covers R-26
heal 60000
alloc a
task a/main runs 2000 attempts 5
at 0 assign a
at 15000 disk 3
at 15001 stop a
fate IO(ENOSPC) commit 2
fate IO(EIO) commit 5
fate IO(MAP) commit 8
fate IO(EIO) commit 11
when task a/main RUNNING nth 2 after crash 300
expect daemons 2
expect done alloc a STOP 1
always alive a/main no
always status a complete
