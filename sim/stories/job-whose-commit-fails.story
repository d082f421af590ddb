# The disk is full while a job is registered: it is refused whole, and asked for again.
# covers R-26
heal 4000
alloc a
task a/main
job j a count 2
at 0 disk 2
at 1 register j
expect starts a/main 2
always live j 2
always job j 0
