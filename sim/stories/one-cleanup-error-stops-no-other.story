# Each step of the clean-up fails once: all others have run, and the one that failed is done again.
# covers R-34
heal 60000
plugin disks stages
alloc a hooks 1 1 1 1
task a/main hooks 7 7 7 7 7
claim a/data plugin disks disk 0
at 0 assign a
at 1000 stop a
at 20000 destroy a
fate ERR alloc a HOOK 2
fate ERR alloc a HOOK 3
fate ERR task a/main HOOK 7
fate ERR task a/main HOOK 10
fate ERR task a/main HOOK 12
fate ERR task a/main HOOK 13
fate ERR task a/main HOOK 14
fate ERR task a/main HOOK 15
fate ERR task a/main DRIVER_STOP 1
fate ERR volume a/data UNPUBLISH 1
fate ERR volume a/data UNSTAGE 1
fate ERR volume a/data UNCLAIM 1
expect starts a/main 1
always mounted a/data no
always staged a/data no
always claimed a/data no
always alive a/main no
always state alloc a absent
always state task a/main absent
always starts a/main at_most 1
