# A lost record ends an alloc that waits; in an older copy it is there, so the alloc waits again.
# covers R-21
heal 28000
alloc a1
task a1/t
alloc a2 after a1
task a2/t
at 0 assign a1
at 5138 assign a2
at 5269 copy
at 5673 torn_zero task a2/t
at 14453 boot 1000
at 16331 older 36
expect enters alloc a2 TERMINAL 1
expect enters alloc a2 WAITING 1
expect starts a2/t 0
expect status a2 pending
