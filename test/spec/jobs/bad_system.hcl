job "a" {
  type = "system"
  group "g" {
    task "t" {
      driver = "raw_exec"
    }
  }
}
