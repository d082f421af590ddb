# nothing but a variable
variable "x" {
  default = 1
}
