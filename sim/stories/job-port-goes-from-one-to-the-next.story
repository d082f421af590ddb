# Each version of a job inherits the port of the one before, stopped in between or not: of all that come while the first still ends the last is begun, and not before.
# covers R-22
heal 15000
kept 8
alloc a
task a/main ignores_term kill 2000
alloc b delay 1500
task b/main
job j a
job k b
at 0 register j 1
at 100 register k 1
at 500 register j 2
at 600 register k 2
at 700 deregister j
at 1000 register j 3
at 1100 register k 3
at 1300 crash 100
expect starts a/main 2
expect starts b/main 2
always live j 1
always live k 1
always job k 2
