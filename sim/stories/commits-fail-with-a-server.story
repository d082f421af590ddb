# The disk is full while the server wants things: it is asked again, and nothing is forgotten.
# covers R-26
mode server
heal 60000
alloc a
task a/main
alloc b
task b/main
at 0 assign a
at 1000 disk 4
at 1001 assign b
at 5000 disk 3
at 5001 stop a
at 20000 disk 2
at 20001 destroy b
always starts a/main 1
always starts b/main 1
always status a complete
always state alloc b absent
