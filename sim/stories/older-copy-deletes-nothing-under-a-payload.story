# An older copy of the journal is told to forget an alloc: what it uses stays while a later attempt runs.
# covers R-38 R-41 R-46
heal 60000
plugin disks stages
alloc a
task a/main hooks 7 0 0 0 0 runs 3000 exits 1 attempts 5 backoff 2000
claim a/data plugin disks disk 0
alloc b
task b/main hooks 7 0 0 0 0 runs 3000 exits 1 attempts 5 backoff 2000
at 0 assign a
at 0 assign b
at 3500 copy
at 6000 sweep 4000
at 11000 older 1000
at 12002 destroy a
at 12002 destroy b
expect starts a/main 3
expect ends a/main 3
expect performs task a/main DRIVER_START 3
expect starts b/main 3
expect ends b/main 3
expect state alloc a absent
expect state alloc b absent
expect mounted a/data no
expect claimed a/data no
expect daemons 2
