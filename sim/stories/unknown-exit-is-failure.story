# What became of a payload cannot be known: a batch task has failed, never succeeded.
# covers R-13 R-15
heal 30000
alloc a batch
task a/main runs 3000 attempts 0
alloc b batch
task b/main runs 3000 attempts 0
alloc c batch
task c/main runs 1000 attempts 1
at 0 assign a
at 0 assign b
at 0 assign c
at 1000 shim a/main
at 1000 record_lost b/main
at 500 record_lost c/main
always exit a/main unknown
always exit b/main unknown
always status a failed
always status b failed
always starts c/main 2
always exit c/main 0
always status c complete
