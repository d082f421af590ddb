# A newer version of a service takes the place of the older one alloc by alloc, each when the one before it is healthy, whenever the daemon dies; a version that comes in between takes the place of both.
# covers R-22
heal 30000
kept 16
alloc a healthy 2000 20000
task a/main
job j a count 2 parallel 1
at 0 register j 1
at 5000 register j 2
at 6000 crash 300
at 12000 boot 1000
at 16000 register j 3
at 17000 register j 4
expect live j 2
expect job j 3
expect starts a/main at_least 6
always live j 2
