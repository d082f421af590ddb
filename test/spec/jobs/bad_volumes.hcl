job "vol" {
  group "g" {
    volume "data" {
      type   = "host"
      source = "data"
    }
    volume "data" {
      type   = "host"
      source = "other"
    }
    volume "typeless" {
      source = "data"
    }
    volume "nowhere" {
      type = "host"
    }
    volume "shared" {
      type        = "host"
      source      = "a/b"
      access_mode = "multi-node-multi-writer"
    }
    volume "read" {
      type        = "host"
      source      = "data"
      access_mode = "single-node-reader-only"
    }

    task "t" {
      driver = "exec"
      volume_mount {
        volume      = "other"
        destination = "/srv"
      }
      volume_mount {
        volume      = "data"
        destination = "//srv/."
      }
      volume_mount {
        volume      = "data"
        destination = "/srv/../../etc"
      }
      volume_mount {
        volume      = "data"
        destination = "/alloc/"
      }
      volume_mount {
        volume      = "data"
        destination = "/proc/sys"
      }
      volume_mount {
        volume           = "data"
        destination      = "/one"
        propagation_mode = "shared"
        selinux_label    = "x"
      }
      volume_mount {
        volume = "data"
      }
    }
  }

  group "mounted" {
    volume "data" {
      type          = "host"
      source        = "data"
      mount_options {
        fs_type = "ext4"
      }
    }
    task "t" {
      driver = "exec"
    }
  }
}
