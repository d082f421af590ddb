job "bad" {
  group "host" {
    network {
      port "http" {}
    }
    service {
      name     = "nomads"
      provider = "nomad"
      connect {
        native = true
      }
    }
    service {
      name = "both"
      connect {
        native = true
        sidecar_service {}
      }
    }
    service {
      name = "hosts"
      connect {
        sidecar_service {}
      }
    }
    service {
      name = "whose"
      connect {
        native = true
      }
    }
    task "one" {
      driver = "raw_exec"
      consul {}
    }
    task "two" {
      driver = "raw_exec"
      kind   = "connect-proxy:other"
    }
  }
}
