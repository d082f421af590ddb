# Records that are put aside and made again to be ended break their histories off: the log is trimmed all the same.
# covers R-21 R-45
log 6
heal 60000
plugin disk stages
alloc a
task a/main
task a/other
claim a/data plugin disk disk 0
alloc b
task b/main
at 0 assign a
at 0 assign b
at 2000 crash 1000
at 2500 torn_cut task a/main
at 8000 crash 1000
at 8500 torn_zero alloc b
at 14000 destroy a
at 20000 crash 100
expect quarantined task a/main 1
expect quarantined alloc b 1
always alive a/main no
always alive a/other no
always alive b/main no
