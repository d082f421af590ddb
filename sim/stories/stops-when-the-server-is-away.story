# Who must not go on without a server ends when its time without contact is over, in whatever it does; it is told when the server is back.
# covers R-08
mode server
heal 90000
plugin disks
alloc a stop_after 5000
task a/main
task a/last lifecycle poststop runs 100
alloc patient stop_after 60000
task patient/main
alloc free
task free/main
alloc delays stop_after 5000 delay 1000 hooks 1 1 1 1
task delays/main
alloc waits after free stop_after 5000
task waits/main
alloc hangs stop_after 5000
task hangs/main
alloc mounts stop_after 5000
task mounts/main
claim mounts/data plugin disks disk 0
alloc replays stop_after 12000
task replays/main dies 20000 kill 30000
fate HANG alloc hangs HOOK 1
fate ERR plugin disks LAUNCH 1
fate ERR plugin disks LAUNCH 2
fate ERR plugin disks LAUNCH 3
at 0 assign a
at 0 assign patient
at 0 assign free
at 0 assign delays
at 100 assign waits
at 0 assign hangs
at 0 assign mounts
at 0 assign replays
at 7000 replay replays
at 10500 server down
when alloc a KILLING then crash 500
at 40000 server up
expect enters alloc hangs KILLING 1
expect enters alloc mounts KILLING 1
expect enters alloc waits KILLING 1
expect enters alloc replays KILLING 1
expect enters alloc delays DELAYING 1
expect starts a/last 1
expect told a complete 1
always starts a/main 1
always alive a/main no
always status a complete
always status delays complete
always starts waits/main 0
expect starts hangs/main 0
expect starts mounts/main 0
always alive patient/main yes
always ends patient/main 0
always alive free/main yes
always ends free/main 0
