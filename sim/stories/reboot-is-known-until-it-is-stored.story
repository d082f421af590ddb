# The host reboots and the daemon dies before its first commit, or cannot commit: it still knows of the reboot.
# covers R-03 R-16 R-26
heal 60000
die 0 2
alloc a
task a/main attempts 0
alloc b
task b/main attempts 0
at 0 assign a
at 0 assign b
at 1000 boot 1000
at 10000 boot 1000
at 10001 disk 3
expect daemons 4
expect enters task a/main BACKOFF 0
always starts a/main 3
always starts b/main 3
always status a running
always status b running
