# Publishing finds the stage gone, or the target published with other arguments: staged or unpublished once more, then published.
# covers R-44
heal 300000
plugin disks stages
plugin plain
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 1
alloc c
task c/main
claim c/data plugin disks disk 2
alloc d
task d/main
claim d/data plugin disks disk 3
alloc e
task e/main
claim e/data plugin plain disk 0
alloc f
task f/main
claim f/data plugin disks disk 3
fate FORGOT volume a/data PUBLISH 1
fate CLASH volume b/data PUBLISH 1
fate CLASH volume c/data PUBLISH 1
fate ERR volume c/data UNPUBLISH 1
fate CLASH volume d/data PUBLISH 1
fate SLOW volume d/data UNPUBLISH 1 ms 3000
fate DOUBT volume e/data PUBLISH 0
fate CLASH volume f/data PUBLISH 1
fate SLOW volume f/data UNPUBLISH 1 ms 3000
at 0 assign a
at 0 assign b
at 0 assign c
at 0 assign d
at 1000 stop d
at 0 assign e
at 10000 assign f
at 11000 crash 100
expect performs volume a/data STAGE 2
expect performs volume a/data PUBLISH 2
expect performs volume b/data UNPUBLISH 1
expect performs volume b/data PUBLISH 2
expect enters volume c/data BROKEN 1
expect status c failed
expect performs volume d/data PUBLISH 1
expect performs volume e/data PUBLISH 5
expect status e failed
expect status f running
always starts a/main 1
always starts b/main 1
always mounted a/data yes
always mounted b/data yes
always starts c/main at_most 1
always mounted d/data no
always claimed d/data no
always claimed e/data no
