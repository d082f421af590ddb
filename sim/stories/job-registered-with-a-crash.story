# A job is there with all its allocs, or it is not there at all; whoever asks again gets nothing twice.
# covers R-22
heal 3000
alloc a
task a/main
alloc b
task b/main
job j a b count 2
at 0 register j
at 0 crash 200
always live j 4
always job j 0
always starts b/main at_least 2
