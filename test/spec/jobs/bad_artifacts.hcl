job "j" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      artifact {}
      artifact {
        source      = "s3::https://example.com/bucket/x"
        destination = "local/../../../other"
        mode        = "tree"
        options {
          checksum = "sha256:12"
        }
      }
      artifact {
        source = "github.com/example/x"
        options {
          checksum = "crc:00"
        }
      }
      artifact {
        source      = "${meta.mirror}/x.tgz"
        destination = "../../other/data"
        options {
          checksum = "md5:${meta.sum}"
        }
      }
    }
  }
}
