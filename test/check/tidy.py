#!/usr/bin/env python3
"""Reports what no compiler does: banned calls, leftovers, headers that do not stand alone.

Violations fail; length outliers are only told, with the reason left to the file's head comment.
"""
import os
import re
import subprocess
import sys

BANNED = r'\b(strcpy|strcat|sprintf|vsprintf|gets|atoi|atol|strtok|system|popen|usleep|tmpnam)\s*\('
BANNED_FSM = r'\b(malloc|calloc|realloc|free|time|rand|printf|open|read|write|clock_gettime)\s*\('
LEFTOVERS = r'\b(XXX|FIXME|TODO|HACK)\b'
LINES_TOLD, COLUMNS_MAX = 600, 100


def strip(text):
    """TEXT without comments and strings, line numbers kept."""
    def blank(match):
        return re.sub(r'[^\n]', ' ', match.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def check_text(path, text):
    bad = []
    bare = strip(text)
    patterns = [(BANNED, 'banned call')]
    if path.startswith(('fsm/', 'base/')) and path != 'base/list.h':  # header only, see there
        patterns.append((BANNED_FSM, 'impure call'))
    for pattern, what in patterns:
        for match in re.finditer(pattern, bare):
            bad.append('%s:%d: %s %s' % (path, bare.count('\n', 0, match.start()) + 1, what,
                                         match.group(1)))
    for match in re.finditer(LEFTOVERS, text):
        bad.append('%s:%d: leftover %s' % (path, text.count('\n', 0, match.start()) + 1,
                                           match.group(1)))
    if '_table.c' not in path:
        for number, line in enumerate(text.split('\n'), 1):
            if len(line) > COLUMNS_MAX and 'http' not in line:
                bad.append('%s:%d: %d columns' % (path, number, len(line)))
    return bad


def check_header(path):
    done = subprocess.run(['gcc', '-std=gnu11', '-D_GNU_SOURCE', '-I.', '-fsyntax-only', '-x', 'c',
                           path], capture_output=True, text=True)
    if done.returncode != 0:
        return ['%s: does not stand alone: %s' % (path, done.stderr.strip().split('\n')[0])]
    return []


def main():
    files = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '*.c', '*.h', '*.cc'],
                           check=True, capture_output=True, text=True).stdout.split()
    bad = []
    for path in sorted(files):
        if not os.path.exists(path):
            continue
        text = open(path).read()
        bad += check_text(path, text)
        if path.endswith('.h'):
            bad += check_header(path)
        lines = text.count('\n')
        if lines > LINES_TOLD and not path.startswith('test/'):
            print('tidy: %s has %d lines: is a second subject hiding?' % (path, lines))
    for line in bad:
        print('tidy: ' + line)
    if bad:
        sys.exit(1)
    print('tidy: %d files' % len(files))


main()
