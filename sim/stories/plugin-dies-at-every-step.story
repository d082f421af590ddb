# The plugin's process dies while it is launched, probed, asked who it is, unwell and in use: payloads go on.
# covers R-49
heal 600000
plugin disks stages
alloc a
task a/main attempts 1
claim a/data plugin disks disk 0
at 0 assign a
when plugin disks PROBING then plug disks
when plugin disks IDENTIFYING nth 1 then plug disks
when plugin disks READY nth 1 then plug disks
when plugin disks READY nth 2 then crash 200
when plugin disks UNHEALTHY then plug disks
fate ERR plugin disks PROBE 6
expect daemons 2
always state plugin disks READY
always starts a/main 1
always ends a/main 0
always mounted a/data yes
