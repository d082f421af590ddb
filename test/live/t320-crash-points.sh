#!/usr/bin/env bash
# Every crash point of the scenario in crash.py, each on a node of its own.
# In a whole run it keeps a core busy for 180 s.
exec python3 "$(dirname "$0")/crash.py" --all
