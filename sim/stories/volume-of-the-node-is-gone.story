# A task has a volume of the node; after a reboot the node is configured without it, and nothing starts.
# covers R-28 R-32
alloc a
task a/main attempts 1 hooks 15 0 0 0 2
alloc b
task b/main attempts 1 hooks 15 0 0 0 2
at 0 assign a
at 0 assign b
fate ERR(permanent) task b/main HOOK 4
at 2000 boot 1000
fate ERR(permanent) task a/main HOOK 8
expect starts b/main 0
expect status b failed
expect starts a/main 1
always starts b/main at_most 2
always starts a/main at_most 2
