job "net" {
  group "g" {
    network {
      dns {
        servers = ["10.0.0.1"]
      }
      cni {
        args = {}
      }
      port "high" {
        static = 65536
      }
      port "low" {
        to = -2
      }
      port "shared" {
        static           = 80
        ignore_collision = true
      }
      port "nameless" "two" {}
    }
    task "t" {
      driver = "raw_exec"
    }
  }
}
