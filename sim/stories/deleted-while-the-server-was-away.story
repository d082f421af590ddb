# An alloc is deleted while the line is down: it is stopped and removed at the first answer.
# covers R-06
mode server
heal 30000
alloc a
task a/main
alloc b
task b/main
at 0 assign a
at 0 assign b
at 1000 server down
at 2000 destroy a
at 3000 crash 500
at 10000 server up
always starts a/main 1
always alive a/main no
always state alloc a absent
always state task a/main absent
always ends b/main 0
