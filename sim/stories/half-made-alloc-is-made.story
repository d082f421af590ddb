# A crash while an alloc is being taken: all of it is there or nothing, and what is there goes on.
# covers R-22
heal 20000
alloc a
task a/main
task a/other
alloc b
task b/main
task b/other
at 0 assign a
at 1000 assign b
when alloc a PREPARING before crash 300
when task b/other WAITING after crash 300
expect daemons 3
always starts a/main 1
always starts a/other 1
always starts b/main 1
always starts b/other 1
always status a running
always status b running
