job "away" {
  type = "system"
  group "system" {
    disconnect {
      stop_on_client_after = "0s"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
    }
  }
  group "both" {
    disconnect {
      lost_after           = "1m"
      stop_on_client_after = "1m"
      reconcile            = "keep_calm"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
    }
  }
  group "fine" {
    disconnect {
      lost_after = "1m"
      reconcile  = "keep_original"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
    }
  }
}
