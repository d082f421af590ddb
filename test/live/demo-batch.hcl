# The batch half of `./dev demo`: works until it is told that it is done, then ends with code 42.
job "demo-batch" {
  datacenters = ["dc1"]
  type        = "batch"

  group "once" {
    restart {
      attempts = 0
      mode     = "fail"
    }

    task "count" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "while [ ! -e ${NOMAD_ALLOC_DIR}/data/done ]; do sleep 0.1; done; echo counted; exit 42"]
      }
    }
  }
}
