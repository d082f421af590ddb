job "a" {
  multiregion {
    strategy {}
  }
  vault {}

  group "g" {
    volume "data" {
      type   = "host"
      source = "data"
    }
    service {
      name = "web"
      connect {}
    }

    task "t" {
      driver = "raw_exec"
      scaling "cpu" {
        max = 3
      }
      resources {
        device "nvidia/gpu" {}
      }
    }
  }
}
