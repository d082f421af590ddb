job "a" {
  type = "batch"

  update {
    max_parallel = 1
  }

  group "g" {
    restart {
      attempts = 10
      interval = "30s"
      delay    = "15s"
    }
    ephemeral_disk {
      size = 50
    }

    task "one" {
      driver      = "raw_exec"
      leader      = true
      kill_signal = "SIGFOO"
      restart {
        attempts = 0
        mode     = "delay"
      }
    }

    task "two" {
      leader = true
      lifecycle {
        hook = "sometime"
      }
      resources {
        cpu        = 100
        cores      = 1
        memory     = 5
        memory_max = 4
      }
      logs {
        max_files = 1
      }
      restart {
        mode     = "never"
        interval = "1s"
      }
      env {
        OK = "1"
      }
    }
  }

  group "empty" {}
}
