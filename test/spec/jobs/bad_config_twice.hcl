job "j" {
  group "g" {
    task "t" {
      driver = "raw_exec"

      config {
        labels = { a = "1" }
        labels {
          b = "2"
        }
      }
    }
  }
}
