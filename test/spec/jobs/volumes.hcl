job "vol" {
  group "g" {
    count = 2
    volume "data" {
      type      = "host"
      source    = "database"
      per_alloc = true
    }
    volume "certs" {
      type        = "host"
      source      = "certificates"
      read_only   = true
      access_mode = "single-node-reader-only"
    }

    task "t" {
      driver = "exec"
      config {
        command = "/bin/sleep"
      }
      volume_mount {
        volume      = "data"
        destination = "/var/lib/data"
      }
      volume_mount {
        volume           = "certs"
        destination      = "${NOMAD_TASK_DIR}/certs"
        read_only        = true
        propagation_mode = "host-to-task"
        selinux_label    = "z"
      }
    }
  }
}
