# A plugin is a task whose last hook fails until its alloc is destroyed: the plugin has gone with the first try, and is not left behind.
# covers R-34 R-49
heal 60000
plugin disks stages
alloc p
task p/driver hooks 0 0 0 0 0 serves disks
at 0 assign p
at 3000 stop p
fate ERR task p/driver HOOK 2
fate ERR task p/driver HOOK 3
fate ERR task p/driver HOOK 4
when task p/driver OWING then destroy p
expect notes p/driver PLUGIN_HEALTHY 1
expect enters task p/driver OWING 1
expect enters task p/driver DEAD 0
expect enters plugin disks STOPPED 1
expect enters plugin disks STOPPING 1
