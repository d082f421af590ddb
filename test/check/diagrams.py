#!/usr/bin/env python3
"""Keeps the diagrams in README.md equal to the tables.

usage: test/check/diagrams.py --check|--write CAIRN

Between <!-- diagram NAME --> and <!-- end --> stands what `CAIRN fsm mermaid NAME` prints.
"""
import re
import subprocess
import sys


def main():
    mode, program = sys.argv[1:]
    text = open('README.md').read()

    def drawn(match):
        diagram = subprocess.run([program, 'fsm', 'mermaid', match.group(1)], check=True,
                                 capture_output=True, text=True).stdout
        return '<!-- diagram %s -->\n```mermaid\n%s```\n<!-- end -->' % (match.group(1), diagram)

    fresh, count = re.subn(r'<!-- diagram (\w+) -->.*?<!-- end -->', drawn, text, flags=re.S)
    if count == 0:
        sys.exit('diagrams: README.md has no markers')
    if mode == '--write':
        open('README.md', 'w').write(fresh)
    elif fresh != text:
        sys.exit('diagrams: README.md is stale; run ./dev golden')
    print('diagrams: %d are up to date' % count)


main()
