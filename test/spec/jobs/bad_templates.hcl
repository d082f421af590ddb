job "j" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      template {}
      template {
        data        = <<EOF
{{ env "HOME" }}
{{ with secret "kv/data/x" }}{{ .Data }}{{ end }}
EOF
        destination = "../../etc/passwd"
        perms       = "4755"
        change_mode = "script"
      }
      template {
        data          = "x"
        source        = "local/x"
        destination   = "local/a"
        env           = true
        change_mode   = "signal"
      }
      template {
        data        = "{{ range loop 3 }}"
        destination = "local/a"
        change_mode = "script"
        change_script {
          run_on_first_render = true
        }
      }
      template {
        data        = "{{ if false }}{{ $x }}{{ end }}"
        destination = "local/b"
      }
      template {
        data        = "\n{{ break }}"
        destination = "local/c"
      }
    }
  }
}
