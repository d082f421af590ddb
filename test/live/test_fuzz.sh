#!/bin/sh
# Every fuzz target for a few seconds: what was found before, and the first of what is drawn.
# In a whole run it keeps a core busy for 185 s.
cd "$(dirname "$0")/../.." || exit 1
exec python3 test/fuzz.py --short
