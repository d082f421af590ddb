job "claims" {
  group "g" {
    count = 2
    volume "plain" {
      type   = "csi"
      source = "v"
    }
    volume "odd" {
      type            = "csi"
      source          = "../v"
      access_mode     = "single-node-multi-writer"
      attachment_mode = "share"
    }
    volume "dots" {
      type            = "csi"
      source          = ".."
      access_mode     = "multi-node-multi-writer"
      attachment_mode = "file-system"
    }
    volume "block" {
      type            = "csi"
      source          = "v"
      access_mode     = "single-node-writer"
      attachment_mode = "block-device"
      mount_options {
        fs_type = "ext4"
      }
    }
    volume "reader" {
      type            = "csi"
      source          = "v"
      access_mode     = "single-node-reader-only"
      attachment_mode = "file-system"
    }
    volume "readers" {
      type            = "csi"
      access_mode     = "multi-node-reader-only"
      attachment_mode = "file-system"
    }
    volume "writer" {
      type            = "csi"
      source          = "v"
      access_mode     = "multi-node-single-writer"
      attachment_mode = "file-system"
    }
    volume "fine" {
      type            = "csi"
      source          = "v"
      read_only       = true
      access_mode     = "multi-node-single-writer"
      attachment_mode = "file-system"
    }
    task "t" {
      driver = "exec"
    }
  }
}
