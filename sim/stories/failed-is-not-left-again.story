# A volume fails for good behind a payload that the restart has yet to find: the alloc has failed, and never runs again.
# covers R-33
mode server
heal 60000
plugin disks stages
alloc a
task a/main dies 3000
claim a/data plugin disks disk 0
at 0 assign a
when task a/main RUNNING before crash 1000
at 500 unmount a/data
fate ERR(permanent) volume a/data STAGE 2
fate SLOW task a/main DRIVER_RECOVER 1 ms 5000
expect state alloc a TERMINAL
expect told a failed at_least 1
expect told a running 0
expect starts a/main 1
expect status a failed
