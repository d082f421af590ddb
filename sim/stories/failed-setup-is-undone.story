# A hook of the alloc fails for good, afresh and after a restart: the alloc fails by the normal way to the end.
# covers R-33
heal 60000
plugin disks stages
alloc a
task a/main
alloc b
task b/main
alloc c
task c/main
claim c/data plugin disks disk 0
at 0 assign a
at 1000 assign b
at 3000 assign c
fate ERR(permanent) alloc a HOOK 1
when alloc b PREPARING then crash 200
fate HANG alloc b HOOK 2
fate ERR(permanent) volume c/data STAGE 1
expect starts a/main 0
expect status a failed
expect state alloc a TERMINAL
expect starts b/main 0
expect status b failed
expect starts c/main 0
expect status c failed
expect claimed c/data no
expect staged c/data no
always starts c/main at_most 1
always starts a/main at_most 1
always starts b/main at_most 1
