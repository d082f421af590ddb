# A payload ends by itself while it is told to stop: the code is the true one, told once.
# covers R-13
mode server
heal 30000
alloc a
task a/main dies 10
alloc b
task b/main dies 10
alloc c
task c/main dies 10
at 0 assign a
at 0 assign b
at 0 assign c
at 1000 stop a
at 1000 exit a/main 7
when task b/main STOPPING before exit b/main 0
at 2000 stop b
when task c/main STOPPING then exit c/main 3
at 3000 stop c
expect told a complete 1
expect told b complete 1
expect told c complete 1
always exit a/main 7
always exit b/main 0
always exit c/main 3
always starts a/main 1
always starts b/main at_most 1
always starts c/main at_most 1
