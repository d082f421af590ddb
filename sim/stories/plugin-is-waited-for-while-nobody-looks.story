# The time that a volume had to wait for its plugin ends while the host is down: it waits anew, and ends if none comes.
# covers R-50
mode server
heal 8000000
plugin disks
plugin never
alloc p
task p/driver attempts 0 serves disks
alloc q
task q/driver serves never
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
claim b/data plugin never disk 1
at 0 assign a
at 0 assign b
at 1000 crash 500
at 3000 boot 2000
at 4000 jump 1900000
at 20000 assign p
at 90000 stop a
at 91000 stop p
expect starts a/main 1
expect starts b/main 0
expect enters volume b/data BROKEN 1
always status a complete
always status b failed
