# Answers that miss some of the allocs end none; those they bring are taken.
# covers R-06
mode server
heal 30000
alloc a
task a/main
alloc b
task b/main
alloc c
task c/main
at 0 assign a
at 0 assign b
at 1000 server partial
at 1500 crash 500
at 3000 assign c
at 9000 server up
always starts a/main 1
always starts b/main 1
always starts c/main 1
always ends a/main 0
always ends b/main 0
