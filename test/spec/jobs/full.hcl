variable "replicas" {
  type    = number
  default = 2
}

variable "environment" {
  description = "goes into each task"
  type        = map(string)
  default = {
    STAGE = "test"
    DEPTH = 3
  }
}

locals {
  sleepers = { a = 10, b = 20 }
  owner    = upper("ops")
}

job "full" {
  name        = "full-name"
  region      = "eu"
  namespace   = "apps"
  datacenters = ["dc1"]
  priority    = 70
  all_at_once = true
  node_pool   = "default"

  meta {
    owner = local.owner
    level = "job"
  }

  constraint {
    attribute = "${attr.kernel.name}"
    value     = "linux"
  }

  affinity {
    attribute = "${meta.rack}"
    regexp    = "r[12]"
    weight    = 30
  }

  spread {
    attribute = "${node.datacenter}"
    target "dc1" {
      percent = 100
    }
  }

  update {
    max_parallel = 2
    stagger      = "1m"
  }

  reschedule {
    attempts  = 2
    interval  = "1h"
    unlimited = false
  }

  migrate {
    max_parallel = 3
  }

  ui {
    description = "everything that is kept"
    link {
      label = "docs"
      url   = "https://example.com"
    }
  }

  group "g" {
    count          = var.replicas
    shutdown_delay = "1.5s"

    meta = {
      "with.dot" = "yes"
      level      = "group"
    }

    ephemeral_disk {
      size = 500
    }

    restart {
      attempts = 1
    }

    update {
      canary = 1
    }

    disconnect {
      lost_after = "1h"
    }

    task "main" {
      driver         = "raw_exec"
      user           = "nobody"
      leader         = true
      kill_timeout   = "22s"
      kill_signal    = "SIGINT"
      shutdown_delay = "100us"

      config {
        command = "/bin/sleep"
        args    = ["${NOMAD_META_level}", "${env["HOME"]}", local.sleepers.a, true]
        nested {
          x = 1
        }
        nested {
          x = 2
        }
        object = { k = "v" }
      }

      env = merge(var.environment, { PORT = 80 })

      meta {
        level = "task"
      }

      resources {
        cpu        = 200
        memory     = 64
        memory_max = 128
      }

      logs {
        max_files     = 2
        max_file_size = 5
      }

      restart {
        interval = "10m"
        mode     = "delay"
      }
    }

    dynamic "task" {
      for_each = local.sleepers
      labels   = ["sleeper-${task.key}"]
      content {
        driver = "raw_exec"
        config {
          command = "/bin/sleep"
          args    = [task.value]
        }
        lifecycle {
          hook    = "prestart"
          sidecar = true
        }
        resources {
          cores = 1
        }
        logs {
          disabled = true
        }
      }
    }
  }
}
