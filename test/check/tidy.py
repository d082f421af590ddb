#!/usr/bin/env python3
"""Reports what no compiler does: banned calls, leftovers, headers that do not stand alone, tests that
cannot be run.

Violations fail; long files and functions are only told, with the reason left to their comments.
"""
import os
import re
import subprocess
import sys

BANNED = r'\b(strcpy|strcat|sprintf|vsprintf|gets|atoi|atol|strtok|system|popen|usleep|tmpnam)\s*\('
BANNED_FSM = r'\b(malloc|calloc|realloc|free|time|rand|printf|open|read|write|clock_gettime)\s*\('
LEFTOVERS = r'\b(XXX|FIXME|TODO|HACK)\b'
LINES_TOLD, FUNCTION_LINES_TOLD, COLUMNS_MAX = 600, 70, 100


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
    if not re.fullmatch('fsm/.*/table.c|agent/api/routes.c', path):
        for number, line in enumerate(text.split('\n'), 1):
            if len(line) > COLUMNS_MAX and 'http' not in line:
                bad.append('%s:%d: %d columns' % (path, number, len(line)))
    return bad


def long_functions(text):
    """(number of the first line, name, lines between the braces) of functions that fill no one's
    screen; clang-format puts their braces, and no others, alone at the margin."""
    lines, begin = text.split('\n'), None
    for number, line in enumerate(lines):
        if line == '{':
            begin = number
        elif line == '}' and begin is not None:
            length = number - begin - 1
            if length > FUNCTION_LINES_TOLD:
                head = begin - 1
                while head > 0 and lines[head][:1] in (' ', '\t'):
                    head -= 1
                name = re.search(r'(\w+)\(', lines[head])
                yield head + 1, name.group(1) if name else '?', length
            begin = None


def check_header(path):
    done = subprocess.run(['gcc', '-std=gnu11', '-D_GNU_SOURCE', '-I.', '-fsyntax-only', '-x', 'c',
                           path], capture_output=True, text=True)
    if done.returncode != 0:
        return ['%s: does not stand alone: %s' % (path, done.stderr.strip().split('\n')[0])]
    return []


def check_modes():
    """Tests that are programs are run by their names."""
    tests = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', 'test/live/*/test_*', 'test/live/test_*'],
                           check=True, capture_output=True, text=True).stdout.split()
    return ['%s: cannot be run: chmod +x' % path for path in sorted(set(tests)) if not os.access(path, os.X_OK)]


def main():
    files = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '*.c', '*.h', '*.cc'],
                           check=True, capture_output=True, text=True).stdout.split()
    bad = check_modes()
    for path in sorted(files):
        if not os.path.exists(path):
            continue
        text = open(path).read()
        bad += check_text(path, text)
        if path.endswith('.h'):
            bad += check_header(path)
        for number, name, length in long_functions(text):
            if not path.startswith('test/') and not re.fullmatch('fsm/.*/table.c', path):
                print('tidy: %s:%d: %s has %d lines: does it fit a screen?'
                      % (path, number, name, length))
        lines = text.count('\n')
        if lines > LINES_TOLD and not path.startswith('test/'):
            print('tidy: %s has %d lines: is a second subject hiding?' % (path, lines))
    for line in bad:
        print('tidy: ' + line)
    if bad:
        sys.exit(1)
    print('tidy: %d files' % len(files))


main()
