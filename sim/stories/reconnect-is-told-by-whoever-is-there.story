# A server that did not know what has become of an alloc hears of it again: each task says so once, whatever it does, and nothing else comes of it.
# covers R-02
mode server
heal 60000
alloc runs
task runs/main
task runs/last lifecycle poststop runs 100
alloc over batch
task over/main runs 1000
alloc waits after runs
task waits/main
alloc ends hooks 0 0 1 0
task ends/main kill 5000
task ends/before lifecycle prestart runs 500
alloc delays delay 4000
task delays/main
fate HANG alloc ends HOOK 2
at 0 assign runs
at 0 assign over
at 0 assign waits
at 0 assign ends
at 0 assign delays
at 100 reconnect ends
at 3000 reconnect runs
at 3000 reconnect over
at 3000 reconnect waits
at 4000 crash 500
at 5000 reconnect runs
at 6000 stop delays
at 7000 reconnect delays
at 8000 stop ends
at 8500 reconnect ends
always starts runs/main 1
always starts over/main 1
always starts waits/main 0
expect status over complete
always status runs running
expect notes runs/main RECONNECTED 2
expect notes runs/last RECONNECTED 2
expect notes over/main RECONNECTED 1
expect notes waits/main RECONNECTED 1
expect notes ends/before RECONNECTED 2
expect notes delays/main RECONNECTED 1
