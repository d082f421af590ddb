#!/usr/bin/env python3
"""Keeps the diagrams in fsm/README.md equal to the tables.

usage: test/check/diagrams.py --check|--write CAIRN

Between <!-- diagram NAME --> and <!-- end --> stands what `CAIRN fsm mermaid NAME` prints.
"""
import re
import subprocess
import sys


README = 'fsm/README.md'


def main():
    mode, program = sys.argv[1:]
    text = open(README).read()

    def drawn(match):
        diagram = subprocess.run([program, 'fsm', 'mermaid', match.group(1)], check=True,
                                 capture_output=True, text=True).stdout
        return '<!-- diagram %s -->\n```mermaid\n%s```\n<!-- end -->' % (match.group(1), diagram)

    fresh, count = re.subn(r'<!-- diagram (\w+) -->.*?<!-- end -->', drawn, text, flags=re.S)
    if count == 0:
        sys.exit('diagrams: %s has no markers' % README)
    if mode == '--write':
        open(README, 'w').write(fresh)
    elif fresh != text:
        sys.exit('diagrams: %s is stale; run ./dev golden' % README)
    print('diagrams: %d are up to date' % count)


main()
