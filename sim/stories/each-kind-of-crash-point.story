# The daemon dies before a commit, behind it, between effects, behind an effect and behind its answer: once each.
# covers R-09 R-22
mode server
heal 30000
cut happens
die 29 3 4 5 6
alloc a
task a/main hooks 7 7 7 7 7 attempts 2
at 0 assign a
at 5000 stop a
expect daemons 6
always starts a/main 1
always exit a/main 143
always status a complete
always alive a/main no
