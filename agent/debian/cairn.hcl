# The agent of this node: man cairn, CONFIGURATION FILES.  All *.hcl and *.json here are read, in the
# order of their names.

data_dir = "/var/lib/cairn"

# Whoever reaches this address can run programs, unless tokens are asked for (acl).
bind_addr = "127.0.0.1"

ports {
  http = 4646
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

# plugin "raw_exec" {
#   config {
#     enabled = false
#   }
# }
