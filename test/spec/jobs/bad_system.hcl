job "a" {
  type = "system"
  group "g" {
    count = 2
    reschedule {
      attempts = 1
    }
    task "t" {
      driver = "raw_exec"
    }
  }
}
