job "bad" {
  group "g" {
    network {
      port "http" {}
    }
    service {
      name     = "consuls"
      provider = "consul"
      on_update = "hope"
    }
    service {
      name     = "others"
      provider = "etcd"
    }
    service {
      name     = "with.dot"
      provider = "nomad"
    }
    service {
      name     = "mode"
      provider = "nomad"
      port     = "70000"
      address_mode = "auto6"
    }
    service {
      name         = "driver"
      provider     = "nomad"
      port         = "htpt"
      address_mode = "driver"
    }
    service {
      name         = "six"
      provider     = "nomad"
      address_mode = "alloc_ipv6"
    }
    service {
      name         = "address"
      provider     = "nomad"
      address_mode = "host"
      address      = "a.example"
      on_update    = "hope"
      task         = "other"
    }
    service {
      name     = "twice"
      provider = "nomad"
      port     = "http"
      tags     = ["a\nb"]
    }
    service {
      name     = "twice"
      provider = "nomad"
      port     = "http"
    }

    task "t" {
      driver = "raw_exec"
      service {
        name     = "number"
        provider = "nomad"
        port     = "80"
        task     = "u"
      }
      service {
        name         = "alloc"
        provider     = "nomad"
        address_mode = "alloc"
        connect {}
        identity {
          aud = ["a"]
        }
      }
    }
  }
}
