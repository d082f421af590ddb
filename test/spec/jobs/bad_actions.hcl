job "j" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      config { command = "/bin/true" }
      action "flush" { command = "/bin/true" }
      action "flush" { command = "/bin/false" }
      action "a name" { command = "/bin/true" }
      action "" { command = "/bin/true" }
      action "nothing" {}
      action "args" {
        command = "/bin/true"
        args    = "x"
      }
      action "user" {
        command = "/bin/true"
        user    = "nobody"
      }
    }
  }
}
