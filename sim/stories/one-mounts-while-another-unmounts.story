# An alloc comes at each step of another's way back: it never publishes what is being unstaged.
# covers R-42
heal 60000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 0
alloc c
task c/main
claim c/data plugin disks disk 1
alloc d
task d/main
claim d/data plugin disks disk 1
alloc e
task e/main
claim e/data plugin disks disk 2
alloc f
task f/main
claim f/data plugin disks disk 2
at 0 assign a
at 0 assign c
at 0 assign e
at 1000 stop a
at 1000 stop c
at 1000 stop e
when volume a/data UNPUBLISHING then assign b
when volume c/data UNSTAGING then assign d
when volume e/data RELEASING then assign f
fate SLOW volume a/data UNPUBLISH 1 ms 500
fate SLOW volume c/data UNSTAGE 1 ms 500
fate SLOW volume e/data UNCLAIM 1 ms 500
expect performs volume a/data UNSTAGE 0
expect performs volume c/data UNSTAGE 1
always mounted a/data no
always mounted b/data yes
always mounted d/data yes
always mounted f/data yes
always staged b/data yes
always starts b/main 1
always starts d/main 1
always starts f/main 1
