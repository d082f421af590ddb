# A reboot, and the server still wants the alloc: it is started again once the server has said so.
# covers R-03 R-16 R-29
mode server
heal 60000
alloc a
task a/main
at 0 assign a
at 1000 server down
at 1001 boot 2000
at 30000 server up
expect daemons 2
expect enters task a/main HELD 1
expect enters task a/main BACKOFF 0
always starts a/main 2
always state task a/main RUNNING
always status a running
