# What has failed for good is placed again after its delay, as often as its policy says, whatever crashes between.
# covers R-08
heal 25000
kept 8
alloc a
task a/main runs 200 exits 1 attempts 0
job j a count 1 again 2
at 0 register j
expect starts a/main 3
expect kept j 3
always live j 0
always job j 0
always starts a/main at_most 3
