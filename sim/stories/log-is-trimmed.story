# The log keeps six events: what it loses is in the bases, over crashes, failed commits and ends.
# covers R-22 R-26
log 6
heal 60000
plugin disk stages
alloc a
task a/main attempts 3
claim a/data plugin disk disk 0
alloc b batch
task b/main runs 300
at 0 assign a
at 0 assign b
when task a/main RUNNING after crash 200
at 2000 exit a/main 1
at 2500 disk 2
at 2600 restart a
at 6000 destroy b
at 6500 crash 100
at 7000 signal a/main
at 8000 boot 1000
at 12000 restart a
at 14000 term 100
expect daemons 5
expect state alloc b absent
always status a running
always mounted a/data yes
