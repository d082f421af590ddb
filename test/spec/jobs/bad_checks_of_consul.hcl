job "bad" {
  group "g" {
    service {
      name     = "web"
      provider = "nomad"
      port     = "80"
      check_restart {
        limit           = -1
        ignore_warnings = true
      }
      check {
        type                     = "http"
        path                     = "/"
        interval                 = "10s"
        timeout                  = "1s"
        expose                   = true
        tls_server_name          = "a.example"
        success_before_passing   = 2
        failures_before_critical = 2
        failures_before_warning  = 1
        header {
          Host = "a.example"
          part {}
        }
      }
    }
    task "t" {
      driver = "raw_exec"
    }
  }
}
