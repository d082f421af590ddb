# The daemon dies whenever a task has come into another state: each is taken up again where it was.
# covers R-09 R-19 R-22
heal 120000
alloc a
task a/main hooks 7 7 7 7 7 delay 500 kill 500 ignores_term runs 1500 exits 1 attempts 1 backoff 1000
at 0 assign a
when task a/main PRESTART after crash 20
when task a/main EXITED after crash 20
when task a/main BACKOFF after crash 20
when task a/main PRESTART nth 2 then crash 20
at 5000 stop a
when task a/main CLEANUP after crash 20
alloc b
task b/main hooks 7 7 7 7 7 delay 500 kill 500 ignores_term
at 20000 assign b
at 22000 stop b
when task b/main PREKILL after crash 20
when task b/main DELAYING after crash 20
when task b/main STOPPING after crash 20
expect daemons 9
always starts a/main 2
always exit a/main 1
always status a failed
always starts b/main 1
always exit b/main 137
always status b complete
always alive a/main no
always alive b/main no
always enters task a/main BACKOFF 1
