job "net" {
  group "g" {
    network {
      mode = "host"
      port "http" {
        static = 8080
      }
      port "admin" {
        to           = 9000
        host_network = "private"
      }
    }

    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
      }
      resources {
        network {
          mbits    = 10
          hostname = "web"
          port "old" {}
          port "ssh" {
            static = 22
          }
        }
      }
    }
  }
}
