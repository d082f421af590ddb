# The agent of this node: man cairn, CONFIGURATION FILES.  All *.hcl and *.json here are read, in the
# order of their names.

data_dir = "/var/lib/cairn"

# Whoever reaches the API can run programs as root, unless tokens are asked for (acl).  By this socket
# that is root and who is in the group cairn; for its commands, and Nomad's:
#   export NOMAD_ADDR=unix:///run/cairn/api.sock
# With "127.0.0.1 unix:///run/cairn/api.sock" every user of this machine would reach it, too.
addresses {
  http = "unix:///run/cairn/api.sock"
}
unix_sockets {
  group = "cairn"
  mode  = "0660"
}

# acl {
#   enabled = true
# }

client {
  enabled = true

  # The cgroup that cairn-tasks.service holds.  It can be changed while nothing runs.
  cgroup_parent = "cairn.slice/cairn-tasks.service"

  # node_class = "edge"
  # meta {
  #   rack = "r1"
  # }
  # reserved {
  #   cores          = "0"
  #   reserved_ports = "22"
  # }
  # host_volume "data" {
  #   path = "/srv/data"
  # }
}

# plugin "nvidia-gpu" {  # a program of that name in plugin_dir, for devices or for a driver
#   config {
#     enabled = true
#   }
# }
# plugin "raw_exec" {
#   config {
#     enabled = false
#   }
# }
