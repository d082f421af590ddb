job "a" {
  task "t" {
    driver = "raw_exec"
  }
}

job "b" {}
