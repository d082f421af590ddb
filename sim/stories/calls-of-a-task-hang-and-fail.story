# Every call of a task hangs, is slow or fails: each ends in its bound, the task gets on.
# covers R-69
heal 3600000
alloc a hooks 1 1 1 1
task a/main hooks 7 7 7 7 7 attempts 5
at 0 assign a
fate HANG alloc a HOOK 2
fate HANG task a/main HOOK 2
fate ERR task a/main HOOK 3
fate SLOW task a/main DRIVER_START 1 ms 20000
fate ERR task a/main DRIVER_DESTROY 1
fate SLOW task a/main DRIVER_DESTROY 2 ms 9000
fate SLOW task a/main DRIVER_STOP 1 ms 9000
fate DONE+ERR task a/main HOOK 8
fate HANG alloc a HOOK 3
at 1500000 restart_task a/main
at 2000000 stop a
expect notes a/main DRIVER_FAILURE 1
expect status a complete
always state alloc a TERMINAL
always alive a/main no
