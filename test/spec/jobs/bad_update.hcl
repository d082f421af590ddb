job "updates" {
  group "slow" {
    update {
      stagger           = "0s"
      min_healthy_time  = "10m"
      healthy_deadline  = "5m"
      progress_deadline = "5m"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
    }
  }
  group "odd" {
    update {
      health_check     = "luck"
      auto_promote     = true
      healthy_deadline = "0s"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
    }
  }
  group "fine" {
    update {
      canary            = 1
      auto_promote      = true
      healthy_deadline  = "5m"
      progress_deadline = "0"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
    }
  }
  group "tough" {
    update {
      healthy_deadline  = "5s"
      min_healthy_time  = "1s"
      progress_deadline = "9s"
    }
    task "just" {
      driver       = "raw_exec"
      kill_timeout = "9s"
      config {
        command = "/bin/true"
      }
    }
    task "longer" {
      driver       = "raw_exec"
      kill_timeout = "10s"
      config {
        command = "/bin/true"
      }
    }
  }
}
