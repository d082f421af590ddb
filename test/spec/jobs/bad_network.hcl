job "net" {
  group "bridge" {
    network {
      mode     = "bridge"
      hostname = "-mine"
      cni {
        args = { "a;b" = "1" }
      }
    }
    task "t" {
      driver = "raw_exec"
      resources {
        network {
          port "own" {}
        }
      }
    }
    task "other" {
      driver = "raw_exec"
      resources {
        network {
          mode = "bridge"
          dns {
            servers = ["10.0.0.1"]
          }
        }
      }
    }
  }

  group "cni" {
    network {
      mode = "cni/my/net"
      port "a b" {}
      port "" {}
      port "long-012345678901234567890123456789012345678901234567890123456789012345678901234567890" {}
    }
    network {
    }
    task "t" {
      driver = "raw_exec"
    }
  }

  group "host" {
    network {
      hostname = "mine"
    }
    task "t" {
      driver = "raw_exec"
    }
  }

  group "twice" {
    network {
      mode     = "hots"
      hostname = "mine"
      port "http" {
        static = 80
      }
      port "http" {}
      port "web" {
        static = 80
      }
      port "far" {
        static       = 81
        host_network = "long-012345678901234567890123456789012345678901234567890123456789012345678901234567890"
      }
    }
    task "t" {
      driver = "raw_exec"
      resources {
        network {
          port "web" {}
          port "other" {
            static = 80
          }
        }
      }
    }
  }
}
