# Whatever is asked of an alloc that has ended, no hook runs and nothing starts.
# covers R-04
heal 20000
alloc a batch hooks 1 0 1 1
task a/main runs 200 hooks 7 7 7 7 2
at 0 assign a
at 2000 restart a
at 2010 restart_task a/main
at 2020 signal a/main
at 2030 stop a
at 2500 crash 100
at 3000 restart a
at 3010 restart_task a/main
at 3020 signal a/main
expect refused alloc a RESTART 2
expect refused task a/main RESTART 2
expect refused task a/main SIGNAL 2
expect done alloc a STOP 1
expect performs task a/main DRIVER_START 1
expect enters task a/main PRESTART 1
expect enters alloc a PREPARING 1
always starts a/main 1
always enters task a/main PRESTART at_most 2
always enters alloc a PREPARING 1
