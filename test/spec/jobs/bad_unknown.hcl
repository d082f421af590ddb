variabel "x" {}

job "a" {
  typ = "service"

  group "g" {
    driver = "raw_exec"
    tsak "t" {}

    task "t" {
      dirver    = "raw_exec"
      count     = 2
      resources = { cpu = 100 }
      driver {
        name = "raw_exec"
      }
      config "x" {
        command = "/bin/true"
      }
      frobnicate {}
    }
  }
}
