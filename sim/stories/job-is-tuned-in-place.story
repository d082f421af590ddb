# A new version that changes what is taken in place goes to each alloc as it runs: nothing is started again, the next stop goes by it.
# covers R-22
heal 40000
kept 8
alloc a
task a/main ignores_term kill 2000
alloc late batch
task late/main runs 100
job j a count 2
job l late count 1
at 0 register j 1
at 1000 tune j 3
at 1500 crash 100
at 2000 tune j 2
at 3000 count j 3
at 5000 count j 1
at 8500 register l
when task late/main STARTING then crash 100
expect starts a/main 3
expect first starts late/main then ends a/main
always starts a/main at_most 3
always live j 1
