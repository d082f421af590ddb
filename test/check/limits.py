#!/usr/bin/env python3
"""The table of limits in README.md says what fsm/limits.h and four other headers say.

usage: test/check/limits.py [ROOT]

A row of the table is `| what | number | NAME |`, where NAME is a constant of one of them; numbers
have commas, bytes may be in KiB or MiB.
"""
import os
import re
import sys

ROOT = sys.argv[1] if len(sys.argv) > 1 else '.'
HEADERS = ('fsm/limits.h', 'agent/api/part.h', 'agent/tasks/tasks.h', 'server/nomad/nomad.h',
           'io/rpc.h')
ENTRY = re.compile(r'^    ([A-Z_]+) = ([^,]+),', re.M)
ROW = re.compile(r'^\| [^|]+ \| ([0-9,]+)( KiB| MiB)? \| `([A-Z_]+)` \|$', re.M)


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return file.read()


def constants(text):
    """Name -> value; an entry may use those before it."""
    found = {}
    for name, value in ENTRY.findall(text):
        value = re.sub(r'[A-Z_]+', lambda used: str(found[used.group()]), value)
        assert re.fullmatch(r'[0-9 +*/<|]+', value), (name, value)
        found[name] = eval(value.replace('/', '//'))  # of digits and operators only
    return found


def main():
    known = constants(''.join(read(path) for path in HEADERS))
    rows = ROW.findall(read('README.md'))
    wrong = [] if rows else ['README.md has no table of limits']
    for number, unit, name in rows:
        value = int(number.replace(',', '')) << {'': 0, ' KiB': 10, ' MiB': 20}[unit]
        if known.get(name) != value:
            wrong.append('README.md: %s is %s in the headers' % (name, known.get(name, 'nothing')))
    for line in wrong:
        print(line)
    if not wrong:
        print('limits: %d as in the headers' % len(rows))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
