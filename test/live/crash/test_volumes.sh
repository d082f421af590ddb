#!/usr/bin/env bash
# Each sixth crash point of the scenario of volumes (crash.py), then some at which the plugin dies, too,
# or alone: all wait most of their time, for calls that are given up.
# In a whole run it keeps a core busy for 110 s.
python3 "$(dirname "$0")/crash.py" --volumes --every 6 --workers 8 || exit 1
python3 "$(dirname "$0")/crash.py" --both --every 17 --workers 8 || exit 1
exec python3 "$(dirname "$0")/crash.py" --plugin --every 31 --workers 8
