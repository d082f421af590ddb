#!/usr/bin/env bash
# The demo is a test: it fails if anything it shows is not so.
exec "$(dirname "$0")/demo.sh"
