job "a" {
  group "g" {
    count = lenght(["x"])
    task "t" {
      driver = "raw_exec"
      config {
        args = [file("/etc/passwd"), var.missing]
      }
      env {
        A = 1 / 0
      }
      template {
        data        = file("/etc/passwd")
        destination = 1 / 0
      }
    }
  }
}
