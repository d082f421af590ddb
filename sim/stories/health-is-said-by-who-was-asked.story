# What a task had said before its alloc asked it whether it runs is no answer: its end may stand behind it in the turn of a late daemon.
# covers R-08
heal 20000
alloc a healthy 2000 10000
task a/main attempts 0
at 0 assign a
at 1900 disk 1
at 1950 signal a/main
at 2500 signal a/main
at 2600 exit a/main 1
always health a unhealthy
always status a failed
