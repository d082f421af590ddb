# Every record of a node is lost while its payloads live: they are ended, never started twice.
# covers R-21 R-67
heal 30000
plugin disks stages
alloc a
task a/main
claim a/data plugin disks disk 0
alloc b
task b/main
at 0 assign a
at 0 assign b
at 1000 crash 1000
at 1500 torn_zero alloc a
at 1500 torn_zero task a/main
at 1500 torn_zero volume a/data
at 1500 torn_zero plugin disks
at 1500 torn_zero alloc b
at 1500 torn_zero task b/main
always starts a/main 1
always starts b/main 1
always alive a/main no
always alive b/main no
always mounted a/data no
always staged a/data no
always claimed a/data no
always status a failed
always status b failed
