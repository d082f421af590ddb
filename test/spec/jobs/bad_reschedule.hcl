job "again" {
  group "both" {
    reschedule {
      attempts  = 3
      interval  = "1h"
      unlimited = true
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
    }
  }
  group "default" {
    reschedule {
      attempts = 3
      interval = "1h"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
    }
  }
  group "fine" {
    reschedule {
      attempts  = 3
      interval  = "1h"
      unlimited = false
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
    }
  }
}
