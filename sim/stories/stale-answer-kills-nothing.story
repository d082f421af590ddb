# A server that is behind in its log does not know what runs, and one that runs was stopped since.
# covers R-02
mode server
heal 30000
alloc a
task a/main
alloc b
task b/main
at 0 assign a
at 1000 assign b
at 2000 stop a
at 3000 server stale
at 3100 crash 500
at 9000 server up
always starts a/main 1
always starts b/main 1
always ends b/main 0
always state task a/main DEAD
always state task b/main RUNNING
