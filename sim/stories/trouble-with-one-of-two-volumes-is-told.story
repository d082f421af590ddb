# A volume that takes long is a thing to be told: the server hears what the tasks say of it, though another volume of theirs waits for ever.
# covers R-44
mode server
heal 60000
plugin p0 stages
alloc a
task a/main
claim a/data plugin p0 disk 1
alloc b
task b/main
claim b/data plugin p0 disk 1 exclusive
claim b/more plugin p0 disk 2
at 0 assign a
at 1000 assign b
fate LATE volume b/more STAGE 1 ms 1449
expect first performs alloc b TELL_STATUS then enters volume b/more PUBLISHING
expect starts b/main 0
