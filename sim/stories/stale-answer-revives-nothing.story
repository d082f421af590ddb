# A server that is behind in its log says that finished work runs: it does not run again.
# covers R-02
mode server
heal 30000
alloc a batch
task a/main runs 500
at 0 assign a
at 3000 server stale
at 3100 crash 500
at 9000 server up
expect daemons 2
expect told a complete 1
always starts a/main 1
