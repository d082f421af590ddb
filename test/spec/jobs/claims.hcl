job "claims" {
  group "g" {
    count = 2
    volume "data" {
      type            = "csi"
      source          = "database"
      per_alloc       = true
      access_mode     = "single-node-writer"
      attachment_mode = "file-system"
      mount_options {
        fs_type     = "ext4"
        mount_flags = ["noatime", "discard"]
      }
    }
    volume "disk" {
      type            = "csi"
      source          = "disk"
      read_only       = true
      access_mode     = "multi-node-reader-only"
      attachment_mode = "block-device"
    }

    task "t" {
      driver = "exec"
      config {
        command = "/bin/sleep"
      }
      volume_mount {
        volume      = "data"
        destination = "/var/lib/data"
      }
      volume_mount {
        volume      = "disk"
        destination = "/dev/xvdf"
      }
    }
  }
}
