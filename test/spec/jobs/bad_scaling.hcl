job "a" {
  group "none" {
    scaling {
      enabled = false
    }
    task "t" {
      driver = "mock_driver"
    }
  }

  group "other" {
    scaling {
      type = "vertical_cpu"
      min  = 4
      max  = 3
    }
    task "t" {
      driver = "mock_driver"
    }
  }

  group "below" {
    count = 1
    scaling {
      min = 2
      max = 3
    }
    task "t" {
      driver = "mock_driver"
    }
  }

  group "wrong" {
    count = 9
    scaling {
      min = -1
      max = "many"
    }
    scaling {
      max = 3
    }
    task "t" {
      driver = "mock_driver"
    }
  }
}
