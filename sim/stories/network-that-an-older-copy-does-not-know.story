# An older copy of the journal does not know an alloc that has a network: it is removed as its payload is.
# covers R-36 R-38
heal 30000
alloc a hooks 5 0 4 1
task a/main hooks 23 0 0 0 2
alloc b hooks 5 0 4 1
task b/main hooks 23 0 0 0 2
at 0 assign a
at 500 copy
at 600 assign b
at 2000 older 500
expect starts a/main 1
expect ends b/main 1
