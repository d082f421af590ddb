job "a" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
        args    = [{ limit = -1e400 }]
      }
    }
  }
}
