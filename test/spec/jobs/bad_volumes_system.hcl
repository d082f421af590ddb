job "vol" {
  type = "system"
  group "g" {
    volume "data" {
      type      = "host"
      source    = "data"
      per_alloc = true
      sticky    = true
    }
    task "t" {
      driver = "exec"
    }
  }
}
