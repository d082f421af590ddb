# A service group with two tasks and a batch group, with nothing but coreutils and bash.
#
# A job has one type for all its groups.  In a batch job a task that succeeds stays finished, one
# that fails is restarted by policy, and one that never ends is simply a service.
job "demo" {
  type = "batch"

  group "web" {
    count = 1

    restart {
      attempts = 3
      interval = "5m"
      delay    = "1s"
      mode     = "delay"
    }

    task "server" {
      driver = "raw_exec"

      config {
        command = "/bin/bash"
        args    = ["-c", "while sleep 1; do echo \"tick $SECONDS in ${NOMAD_TASK_DIR}\"; done"]
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }

    task "sidekick" {
      driver = "raw_exec"

      config {
        command = "/bin/sleep"
        args    = ["infinity"]
      }

      kill_timeout = "2s"
    }
  }

  group "work" {
    task "count" {
      driver = "raw_exec"

      config {
        command = "/bin/bash"
        args = ["-c", <<-EOF
          for i in 1 2 3; do
            echo "step $i of alloc $${NOMAD_ALLOC_INDEX:-0}"
            sleep 1
          done
          exit 7
        EOF
        ]
      }

      restart {
        attempts = 0
        mode     = "fail"
      }
    }
  }
}
