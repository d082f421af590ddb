job "two words" {
  group "a/b" {
    task "alloc" {
      driver = "raw_exec"
    }
    task ".." {
      driver = "raw_exec"
    }
    task "twice" {
      driver = "raw_exec"
    }
    task "twice" {
      driver = "raw_exec"
    }
  }
  group "a/b" {
    task "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" {
      driver = "raw_exec"
    }
  }
}
