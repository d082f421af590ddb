# The job of `./dev demo`: a service group with two tasks, and a batch group beside it.
job "demo" {
  datacenters = ["dc1"]
  type        = "service"

  group "web" {
    restart {
      attempts = 3
      delay    = "1s"
      interval = "10m"
      mode     = "fail"
    }

    task "server" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo serving as $NOMAD_ALLOC_NAME; exec sleep 3600"]
      }
      kill_timeout = "3s"
    }

    task "worker" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo working; exec sleep 3601"]
      }
      kill_timeout = "3s"
    }
  }
}
