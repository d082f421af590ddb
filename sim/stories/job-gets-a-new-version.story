# A new version replaces each alloc once, whenever the daemon dies; what has not changed stays.
# covers R-22
heal 5000
kept 8
alloc a
task a/main
job j a count 2
at 0 register j 1
at 500 register j 2
at 1000 register j 2
at 1500 crash 100
expect starts a/main 4
expect kept j 2
expect job j 1
always live j 2
