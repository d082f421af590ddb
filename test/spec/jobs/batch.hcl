job "batch" {
  type        = "batch"
  datacenters = ["dc1", "dc2"]

  task "once" {
    driver = "raw_exec"
    config {
      command = "/bin/true"
    }
  }
}
