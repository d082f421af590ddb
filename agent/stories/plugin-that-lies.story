# The plugin reports success and has done nothing: the mount table is believed, not the plugin.
# covers R-39 R-43
heal 700000
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
expect starts a/main 1
expect first enters volume a/data READY then starts a/main
expect mounted a/data no
expect staged a/data no
expect claimed a/data no
expect performs volume a/data UNPUBLISH 2
expect status a complete
expect starts b/main 0
expect status b failed
expect claimed b/data no
expect staged b/data no
always first enters volume a/data READY then starts a/main
always mounted a/data no
always claimed a/data no
