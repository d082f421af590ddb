job "bad" {
  group "g" {
    network {
      port "http" {}
    }
    service {
      name     = "web"
      provider = "nomad"
      check {
        name     = "portless"
        type     = "tcp"
        interval = "10s"
        timeout  = "1s"
      }
      check {
        type     = "script"
        port     = "http"
        interval = "500ms"
      }
      check {
        name     = "pathless"
        type     = "http"
        port     = "htpt"
        interval = "10s"
        timeout  = "0s"
      }
      check {
        name         = "absolute"
        type         = "http"
        path         = "http://a.example/"
        method       = "FETCH"
        protocol     = "file"
        port         = "http"
        interval     = "10s"
        timeout      = "1s"
        address_mode = "auto"
        on_update    = "ignore_warnings"
        task         = "other"
        header {
          Z = ["b\r\nHost: c"]
        }
      }
      check {
        name         = "restarts"
        type         = "http"
        path         = "/%zz"
        port         = "http"
        interval     = "10s"
        timeout      = "1s"
        address_mode = "sideways"
        on_update    = "ignore"
        check_restart {
          limit = 2
        }
      }
    }
    task "t" {
      driver = "raw_exec"
      service {
        name     = "own"
        provider = "nomad"
        port     = "http"
        check {
          name         = "alive"
          type         = "tcp"
          interval     = "10s"
          timeout      = "1s"
          address_mode = "alloc"
        }
        check {
          name     = "alive"
          type     = "tcp"
          interval = "10s"
          timeout  = "1s"
          task     = "other"
        }
      }
    }
  }
}
