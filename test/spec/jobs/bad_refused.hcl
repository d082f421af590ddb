job "a" {
  periodic {
    cron = "@daily"
  }
  vault {}

  group "g" {
    volume "data" {
      type   = "host"
      source = "data"
      sticky = true
    }
    service {
      name = "web"
    }
    scaling {
      max = 3
    }

    task "t" {
      driver = "raw_exec"
      resources {
        device "nvidia/gpu" {}
      }
    }
  }
}
