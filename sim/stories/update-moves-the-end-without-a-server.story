# A newer version says anew how long an alloc goes on without a server, for what ends later as for what ends earlier.
# covers R-08
mode server
heal 60000
alloc more stop_after 5000
task more/main
alloc less stop_after 10000
task less/main
at 0 assign more
at 0 assign less
at 500 update more 15
at 500 update less 15
at 2000 update less 1
when alloc less RUNNING then crash 100
at 10500 server down
at 40000 server up
expect daemons 2
expect told less complete 1
expect told more running 1
always alive more/main yes
always ends more/main 0
always starts less/main 1
always alive less/main no
always status less complete
