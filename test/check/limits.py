#!/usr/bin/env python3
"""The table of limits in README.md says what fsm/limits.h says.

usage: test/check/limits.py [ROOT]

A row of the table is `| what | number | NAME |`, where NAME is a constant of fsm/limits.h; numbers
have commas, bytes may be in MiB.
"""
import os
import re
import sys

ROOT = sys.argv[1] if len(sys.argv) > 1 else '.'
ENTRY = re.compile(r'^    ([A-Z_]+) = ([^,]+),', re.M)
ROW = re.compile(r'^\| [^|]+ \| ([0-9,]+)( MiB)? \| `([A-Z_]+)` \|$', re.M)


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return file.read()


def constants(text):
    """Name -> value; an entry may use those before it."""
    found = {}
    for name, value in ENTRY.findall(text):
        value = re.sub(r'[A-Z_]+', lambda used: str(found[used.group()]), value)
        assert re.fullmatch(r'[0-9 +*/<]+', value), (name, value)
        found[name] = eval(value.replace('/', '//'))  # of digits and operators only
    return found


def main():
    known = constants(read('fsm/limits.h'))
    rows = ROW.findall(read('README.md'))
    wrong = [] if rows else ['README.md has no table of limits']
    for number, unit, name in rows:
        value = int(number.replace(',', '')) << (20 if unit else 0)
        if known.get(name) != value:
            wrong.append('README.md: %s is %s in fsm/limits.h' % (name, known.get(name, 'nothing')))
    for line in wrong:
        print(line)
    if not wrong:
        print('limits: %d as in fsm/limits.h' % len(rows))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
