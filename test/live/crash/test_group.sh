#!/usr/bin/env bash
# Each fourth crash point of the scenario of a group with everything (crash.py).
# In a whole run it keeps a core busy for 180 s.
exec python3 "$(dirname "$0")/crash.py" --group --every 4
