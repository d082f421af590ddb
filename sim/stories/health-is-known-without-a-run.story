# The deadline of an alloc's health comes while it is set up, mounts, waits or begins anew, and says unhealthy; so does a set-up that fails.
# covers R-08
heal 700000
plugin disks
alloc hangs healthy 1000 3000
task hangs/main
alloc mounts healthy 1000 3000
task mounts/main
claim mounts/data plugin disks disk 0
alloc replays healthy 4000 6000
task replays/main dies 4000 kill 5000
alloc fails healthy 1000 3000
task fails/main
alloc before
task before/main dies 20000 kill 30000
alloc waits after before healthy 1000 3000
task waits/main
fate HANG alloc hangs HOOK 1
fate ERR alloc fails HOOK 1
fate ERR plugin disks LAUNCH 1
fate ERR plugin disks LAUNCH 2
fate ERR plugin disks LAUNCH 3
at 0 assign hangs
at 0 assign mounts
at 0 assign replays
at 0 assign fails
at 0 assign before
at 100 assign waits
at 1000 stop before
at 3500 replay replays
when alloc replays REPLAYING then crash 500
expect enters alloc mounts MOUNTING 1
expect enters alloc replays REPLAYING 1
expect health hangs unhealthy
expect health mounts unhealthy
expect state alloc hangs RUNNING
expect state alloc mounts RUNNING
expect health replays unhealthy
expect health fails unhealthy
always health waits healthy
