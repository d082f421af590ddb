job "two words" {
  namespace = "team/web"
  group "a/b" {
    task "alloc" {
      driver = "raw_exec"
    }
    task ".web" {
      driver = "raw_exec"
    }
    task "a/b" {
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
  group "a\u0007b" {
    task "a" {
      driver = "raw_exec"
    }
  }
}
