job "a" {
  priority    = "high"
  datacenters = "dc1"

  group "g" {
    count = 2.5

    task "t" {
      driver       = ["raw_exec"]
      kill_timeout = "30 s"
      leader       = "maybe"
      env {
        LIST = [1]
      }
      resources {
        cpu    = -5
        memory = 5000000000
      }
    }
  }

  group "h" {
    count = 2001
    task "t" {
      driver         = "raw_exec"
      shutdown_delay = "-1s"
    }
  }
}
