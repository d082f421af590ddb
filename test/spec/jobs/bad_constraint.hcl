job "a" {
  constraint {
    attribute = "${attr.kernel.name}"
    value     = "windows"
  }

  group "g" {
    constraint {
      distinct_hosts = true
    }
    task "t" {
      driver = "raw_exec"
      constraint {
        attribute = "${attr.kernel.name}"
        operator  = "!="
        value     = "darwin"
      }
      constraint {
        attribute = "${meta.rack}"
        value     = "r1"
      }
    }
  }
}
