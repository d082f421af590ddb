#!/usr/bin/env python3
"""Proves that nodes share nothing that changes: what the rooms keep for the whole process is in a
short list, each with its reason.

Looks at every object of the rooms for variables that live as long as the process (sections .data,
.bss and their thread-local kin; constant tables are elsewhere).  The shim is a process for each
payload and may keep what it likes.
usage: test/check/globals.py LIB_DIR
"""
import os
import re
import subprocess
import sys

# (room, file, variable): why a process may have it once, however many nodes live in it.
ALLOWED = {
    ('base', 'check.c', 'innermost'):
        'of the thread: an assertion has nothing that could carry its guards',
    ('io', 'log.c', 'log_state'): 'a process has one log, as it has one standard error',
    ('io', 'log.c', 'listeners'): 'who hears that log, of the thread',
    ('io', 'mount.c', 'table'): 'a process sees one mount table',
    ('io', 'work.c', 'unmasked'): 'of the thread, as its umask is',
    ('io', 'curl_library.c', 'curl_library'): 'a library is loaded once',
    ('journal', 'journal.c', 'opened'):
        "LMDB's locks belong to the process: a journal is opened once in it",
    ('agent', 'table.c', 'texts'): 'cells of the table that a command prints, which is its process',
    ('agent', 'table.c', 'next'): 'the next of them',
}

SYMBOL = re.compile(r'^[0-9a-f]+ (.{7}) (\S+)\t[0-9a-f]+\s+(?:\.hidden )?(.+)$')
LASTING = re.compile(r'^\.(data|bss|tdata|tbss)(?!\.rel\.ro)')


def plain(name):
    """The name in the source: without the number of a local one, C++ unmangled."""
    return re.sub(r'\.\d+$', '', name.split('::')[-1])


def source(member):
    """The source file of a member of an archive."""
    return re.sub(r'\.o$', '.cc' if member == 'codec.o' else '.c', member)


def lasting(text):
    """(file, variable) of each variable that OBJDUMP's symbol table shows in a lasting section."""
    file = None
    for line in text.splitlines():
        if line.endswith(('file format elf64-x86-64', 'file format elf64-littleaarch64')):
            file = source(line.split(':')[0])
        symbol = SYMBOL.match(line)
        if symbol and LASTING.match(symbol.group(2)) and symbol.group(1)[6] in 'O ' \
                and not symbol.group(3).startswith('.'):
            yield file, plain(symbol.group(3))


def prove():
    """It would see what it is here for."""
    table = ('\nlocal.o:     file format elf64-x86-64\n\nSYMBOL TABLE:\n'
             '0000000000000000 l    d  .bss\t0000000000000000 .bss\n'
             '0000000000000000 l     O .bss\t0000000000000008 next.3\n'
             '0000000000000000 l     O .data.rel.local\t0000000000000008 at\n'
             '0000000000000000 g     O .data.rel.ro.local\t0000000000000008 table\n'
             '0000000000000000 l     O .rodata\t0000000000000008 names.0\n'
             '0000000000000000 l       .tbss\t0000000000000008 innermost\n'
             '0000000000000000 l     O .bss\t0000000000000008 open(void const*, int)::scratch\n'
             '0000000000000000 g     F .text\t0000000000000008 main\n')
    found = list(lasting(table))
    assert [variable for _, variable in found] == ['next', 'at', 'innermost', 'scratch'], found


def main():
    prove()
    found = set()
    for name in sorted(os.listdir(sys.argv[1])):
        room = re.fullmatch(r'libcairn-(\w+)\.a', name)
        if not room:
            continue
        text = subprocess.run(['objdump', '--syms', '--demangle', os.path.join(sys.argv[1], name)],
                              check=True, capture_output=True, text=True).stdout
        found |= {(room.group(1), *variable) for variable in lasting(text)}
    wrong = ['%s/.../%s: "%s" lives as long as the process, and nodes would share it' % at
             for at in sorted(found - set(ALLOWED))]
    wrong += ['%s/.../%s: "%s" is gone: take it out of the list' % at
              for at in sorted(set(ALLOWED) - found)]
    for line in wrong:
        print('globals: ' + line)
    if wrong:
        sys.exit(1)
    print('globals: a process has %d variables, each with its reason' % len(found))


main()
