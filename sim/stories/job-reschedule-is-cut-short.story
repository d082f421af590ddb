# A job is stopped while another alloc for its failed one waits for its time: none is placed.
# covers R-08
heal 5000
kept 8
alloc a
task a/main runs 200 exits 1 attempts 0
job j a count 1 again 2
at 0 register j
at 3000 deregister j
always live j 0
expect starts a/main 1
