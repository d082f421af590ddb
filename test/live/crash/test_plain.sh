#!/usr/bin/env bash
# Each second crash point of the plain scenario in crash.py, on a node of its own; `./dev crash`
# tries the others, too.
# In a whole run it keeps a core busy for 150 s.
exec python3 "$(dirname "$0")/crash.py" --every 2
