# A volume is not mounted at the first try: who waits for it is told why at once, and once, before the first start and before any other, and knows it when he is stopped meanwhile.
# covers R-32
heal 200000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main attempts 3 backoff 1000
task b/side
claim b/data plugin disks disk 1
alloc c batch
task c/main runs 1500
task c/after lifecycle poststop runs 1000
claim c/data plugin disks disk 2
alloc d
task d/main
claim d/data plugin disks disk 3
at 0 assign a
fate ERR volume a/data STAGE 1
at 500 stop a
at 0 assign b
at 1000 unmount b/data
fate ERR volume b/data PUBLISH 2
fate ERR volume b/data PUBLISH 3
at 1500 exit b/main 1
at 0 assign c
at 1000 unmount c/data
fate ERR volume c/data STAGE 2
at 0 assign d
fate LIE volume d/data PUBLISH 1
fate LIE volume d/data PUBLISH 2
expect notes a/main HOOK_FAILED 1
expect performs volume a/data STAGE 1
expect starts a/main 0
expect notes b/main HOOK_FAILED 1
expect notes b/side HOOK_FAILED 0
expect starts b/main 2
expect notes c/main HOOK_FAILED 0
expect notes c/after HOOK_FAILED 1
expect starts c/after 1
expect notes d/main HOOK_FAILED 1
expect starts d/main 1
always status a complete
always status b running
always status c complete
always status d running
