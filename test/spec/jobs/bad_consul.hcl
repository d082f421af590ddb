job "bad" {
  group "g" {
    network {
      port "http" {}
    }
    service {
      name = "web"
      port = "http"
      meta {
        kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk = "v"
      }
      check {
        name     = "nobody's"
        type     = "script"
        interval = "10s"
        timeout  = "1s"
      }
      check {
        name                     = "counts"
        type                     = "script"
        task                     = "t"
        command                  = "/bin/true"
        interval                 = "10s"
        timeout                  = "1s"
        failures_before_critical = 2
      }
      check {
        name           = "status"
        type           = "grpc"
        initial_status = "well"
        interval       = "10s"
        timeout        = "1s"
      }
      check {
        name     = "type"
        type     = "ttl"
        interval = "10s"
        timeout  = "1s"
      }
      check {
        name      = "warnings"
        type      = "tcp"
        on_update = "ignore_warnings"
        interval  = "10s"
        timeout   = "1s"
        check_restart {
          limit = 2
        }
      }
    }
    service {
      name = "portless"
      check {
        type     = "tcp"
        interval = "10s"
        timeout  = "1s"
      }
    }
    task "t" {
      driver = "raw_exec"
    }
  }
}
