#!/usr/bin/env python3
"""The same seeds are the same worlds, whichever compiler built the program and however it optimised.

usage: test/check/same_worlds.py PROGRAM...
"""
import concurrent.futures
import os
import re
import subprocess
import sys

WORLDS = {'small': ['-seeds', '400', '-base', '1'], 'large': ['-seeds', '40', '-base', '1', '-large'],
          'control': ['-seeds', '100', '-base', '1', '-control']}


def hash_of(program, flags):
    done = subprocess.run([program, 'sim'] + flags, capture_output=True, text=True)
    found = re.search(r'hash ([0-9a-f]{16})', done.stdout)
    if done.returncode != 0 or not found:
        raise SystemExit('same_worlds: %s: %s' % (program, done.stderr.strip() or done.stdout.strip()))
    return found.group(1)


def main():
    programs = sys.argv[1:]
    if len(programs) < 2:
        sys.exit(__doc__.strip())
    for name, flags in WORLDS.items():
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            hashes = dict(zip(programs, pool.map(lambda each: hash_of(each, flags), programs)))
        if len(set(hashes.values())) > 1:
            sys.exit('same_worlds: %s worlds differ: %s' % (
                name, ', '.join('%s %s' % pair for pair in hashes.items())))
    print('same worlds: %d builds agree' % len(programs))


if __name__ == '__main__':
    main()
