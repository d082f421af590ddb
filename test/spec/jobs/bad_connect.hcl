job "bad" {
  group "Sidecars" {
    consul {
      cluster   = "west"
      namespace = "prod"
    }
    network {
      mode = "bridge"
      port "health" {}
    }
    service {
      name = "api"
      port = "9001"
      connect {
        sidecar_service {
          proxy {
            upstreams {
              local_bind_port = 5000
            }
            upstreams {
              destination_name = "db"
            }
            upstreams {
              destination_name      = "db"
              local_bind_port       = 5000
              destination_partition = "p"
              mesh_gateway {
                mode = "far"
              }
            }
            expose {
              path {
                path          = "health"
                protocol      = "grpc"
                listener_port = "none"
              }
            }
            transparent_proxy {}
          }
        }
      }
    }
    service {
      name = "gate"
      connect {
        gateway {
          mesh {}
        }
      }
    }
    task "t" {
      driver = "raw_exec"
      kind   = "connect-ingress:gate"
      service {
        name = "own"
        connect {
          native = true
        }
      }
    }
  }
}
