#!/bin/sh
# Every fuzz target for a few seconds: what was found before, and the first of what is drawn.
cd "$(dirname "$0")/../.." || exit 1
exec python3 test/fuzz.py --short
