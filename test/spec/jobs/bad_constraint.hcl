job "a" {
  constraint {
    attribute = "${attr.kernel.name}"
    operator  = "=~"
    value     = "lin.*"
  }

  group "g" {
    constraint {
      attribute = "${node.region}"
      value     = "global"
    }
    task "t" {
      driver = "raw_exec"
      constraint {
        distinct_hosts = true
      }
      constraint {
        attribute = "${meta.rack}"
        regexp    = "r(?=1)"
      }
      constraint {
        attribute = "${attr.os.version}"
        version   = ">= 12, < x"
      }
      constraint {
        attribute = "${meta.rack}"
      }
      constraint {
        attribute = "${meta.rack}"
        operator  = "is_set"
        value     = "r1"
      }
      constraint {
        value = "r1"
      }
      constraint {
        distinct_property = "${meta.rack}"
        value             = "none"
      }
    }
  }
}
