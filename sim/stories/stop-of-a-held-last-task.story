# A last task waits for the server's word after a reboot, and the word is a stop: it runs all the same.
# covers R-03
mode server
heal 90000
alloc a batch
task a/main runs 500
task a/last lifecycle poststop runs 1000
alloc b
task b/main
task b/last lifecycle poststop runs 1000
at 0 assign a
at 0 assign b
when task a/last PRESTART then boot 500
at 600 server down
at 5000 stop a
at 5000 stop b
at 20000 server up
expect enters task a/last HELD 1
always starts a/main 1
always starts a/last 1
always exit a/last 0
always starts b/main 1
always starts b/last 1
always status a complete
always state alloc b TERMINAL
