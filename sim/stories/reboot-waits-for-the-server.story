# A reboot, and the server has given up the alloc meanwhile: nothing is started before it says so.
# covers R-03
mode server
heal 60000
alloc a
task a/main
at 0 assign a
at 1000 server down
at 1001 boot 2000
at 5000 stop a
at 35000 server up
expect daemons 2
expect enters task a/main HELD 1
always starts a/main 1
always state task a/main DEAD
always exit a/main unknown
always status a complete
