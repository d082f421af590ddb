# Services of a group and of its task, with what is said and what is left out.
job "shop" {
  group "web" {
    network {
      port "http" {
        to = 8080
      }
      port "admin" {}
    }
    service {
      name        = "web"
      provider    = "nomad"
      port        = "http"
      tags        = ["a", "b"]
      canary_tags = ["c"]
      check_restart {
        limit = 3
        grace = "30s"
      }
      check {
        type     = "http"
        path     = "/health"
        interval = "10s"
        timeout  = "2s"
        header {
          Host  = ["a.example"]
          X-Two = ["1", "2"]
        }
        check_restart {
          limit = 5
        }
      }
      check {
        name     = "alive"
        type     = "tcp"
        port     = "admin"
        interval = "5s"
        timeout  = "1s"
        task     = "server"
      }
    }
    service {
      provider = "nomad"
      port     = "admin"
      meta {
        x = "y"
      }
    }
    task "server" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
      service {
        provider = "nomad"
        port     = "admin"
        check {
          type      = "tcp"
          interval  = "10s"
          timeout   = "2s"
          on_update = "ignore"
        }
      }
      service {
        name      = "${JOB}-${TASKGROUP}-${TASK}-x"
        provider  = "nomad"
        port      = "http"
        on_update = "ignore"
      }
    }
  }
}
