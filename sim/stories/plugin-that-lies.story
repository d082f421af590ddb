# The plugin reports success and has done nothing: the mount table is believed, and the stage repeated.
# covers R-44
heal 200000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin disks disk 1
at 0 assign a
at 0 assign b
fate LIE volume b/data STAGE 1
fate LIE volume a/data PUBLISH 1
at 100000 stop a
fate LIE volume a/data UNPUBLISH 1
expect performs volume a/data UNPUBLISH 2
expect performs volume b/data STAGE 2
always starts a/main 1
always first enters volume a/data READY then starts a/main
always mounted a/data no
always staged a/data no
always claimed a/data no
always status a complete
always starts b/main 1
always first enters volume b/data READY then starts b/main
always mounted b/data yes
always staged b/data yes
