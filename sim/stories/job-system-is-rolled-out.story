# A newer version of a system job takes the place of the older one in each of its groups, and its deployment ends, whenever the daemon dies.
# covers R-22
heal 30000
kept 16
alloc a healthy 2000 20000
task a/main
alloc b healthy 2000 20000
task b/main
job j a b count 1 system parallel 1
at 0 register j 1
at 5000 register j 2
at 6000 crash 300
at 12000 register j 3
expect live j 2
expect job j 2
expect starts a/main at_least 3
expect starts b/main at_least 3
always live j 2
