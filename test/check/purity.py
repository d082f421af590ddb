#!/usr/bin/env python3
"""Proves that base and fsm are pure: what their objects need from outside is in a short list.

No clock, allocator, file, socket or random number can be linked into a decision.  The core may
allocate and print, but the world is handed in: it links no clock, chance, file, socket or process.
usage: test/check/purity.py LIB_DIR
"""
import os
import subprocess
import sys

ALLOWED = {'memcpy', 'memmove', 'memset', 'memcmp', 'memchr', 'strlen', 'strnlen', 'strcmp',
           'strncmp', 'strchr', 'strspn', 'strcspn', 'strstr', 'strerror', 'snprintf', 'vsnprintf',
           'abort', '__stack_chk_fail', '_GLOBAL_OFFSET_TABLE_', '__memcpy_chk', '__memset_chk',
           '__memmove_chk', '__snprintf_chk', '__vsnprintf_chk'}


WORLD = {'time', 'gettimeofday', 'clock_gettime', 'nanosleep', 'rand', 'random', 'getrandom', 'open',
         'open64', 'openat', 'fopen', 'fopen64', 'read', 'write', 'socket', 'connect', 'poll', 'fork',
         'execve', 'posix_spawn', 'kill', 'getenv', 'pthread_create'}


def symbols(library):
    defined, needed = set(), set()
    for line in subprocess.run(['nm', library], check=True, capture_output=True,
                               text=True).stdout.splitlines():
        parts = line.split()
        if len(parts) == 2 and parts[0] == 'U':
            needed.add(parts[1])
        elif len(parts) == 3:
            defined.add(parts[2])
    return defined, needed


def main():
    libraries = [os.path.join(sys.argv[1], 'libcairn-%s.a' % room) for room in ('base', 'fsm')]
    defined, needed = set(), set()
    for library in libraries:
        ours, theirs = symbols(library)
        defined |= ours
        needed |= theirs
    foreign = sorted(needed - defined - ALLOWED)
    if foreign:
        print('purity: base and fsm may not need: ' + ', '.join(foreign))
        sys.exit(1)
    _, core = symbols(os.path.join(sys.argv[1], 'libcairn-core.a'))
    if core & WORLD:
        print('purity: the core may not need: ' + ', '.join(sorted(core & WORLD)))
        sys.exit(1)
    print('purity: base and fsm need %d symbols from outside, all harmless; the core sees no world'
          % len(needed - defined))


main()
