#!/usr/bin/env python3
"""Proves the floor plan: reads ROOMS from SConstruct and every #include, reports forbidden arrows.

A file may include headers of its own room and the doors of the rooms in its row.  The doors of a
room are <room>/<room>.h, or the list below where a room has several (style page 3.3).  Libraries
that only one file may know are checked too.
"""
import ast
import os
import re
import sys

DOORS = {
    'base': {'base.h'} | {'check.h', 'err.h', 'hash.h', 'rng.h', 'text.h', 'uuid.h'},
    'fsm': {'fsm.h', 'alloc.h', 'task.h', 'volume.h', 'plugin.h', 'policy.h', 'limits.h',
            'results.h', 'fields.h'},
    'io': {'loop.h', 'proc.h', 'http.h', 'host.h', 'log.h'},
    'core': {'core.h', 'clock.h', 'lost.h', 'machines.h', 'replay.h', 'retention.h'},
    'agent': {'daemon.h', 'part.h', 'perform.h', 'node.h',
              'cli/cli.h'},
    'server': {'alone/alone.h'},
    'sim': {'sim.h', 'cover.h', 'script/words.h', 'script/start.h', 'script/script.h', 'pool.h',
            'world/world.h', 'search/search.h', 'script/started.h'},
    'inspect': {'inspect.h', 'fields.h', 'verify.h', 'part.h', 'timeline.h', 'step.h'},
    'spec': {'spec.h', 'job.h', 'hcl.h'},
}
ONLY = {'lmdb.h': {'journal'}, 'ev.h': {'io/loop/loop.c'}, 'curl/curl.h': {'io/net/curl_library.h'},
        'flatbuffers/flatbuffers.h': {'journal/codec.cc'}}


def rooms():
    tree = ast.parse(open('SConstruct').read())
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == 'ROOMS':
            return {room: set(row[0]) for room, row in ast.literal_eval(node.value).items()}
    sys.exit('layers: no ROOMS in SConstruct')


def check_file(path, room, uses, all_rooms):
    bad = []
    for number, line in enumerate(open(path), 1):
        match = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
        if not match:
            continue
        target = match.group(1)
        where = '%s:%d' % (path, number)
        if target in ONLY and not any(path == ok or path.startswith(ok + '/')
                                      for ok in ONLY[target]):
            bad.append('%s: %s belongs to %s' % (where, target, ', '.join(sorted(ONLY[target]))))
        other, _, header = target.partition('/')
        if not header or other not in all_rooms or other == room:
            continue
        if other not in uses:
            bad.append('%s: %s may not know %s' % (where, room, other))
        elif header not in DOORS.get(other, {other + '.h'}):
            bad.append('%s: %s is no door of %s' % (where, target, other))
    return bad


def main():
    all_rooms, bad, files = rooms(), [], 0
    for room, uses in all_rooms.items():
        for folder, _, names in os.walk(room):
            for name in sorted(names):
                if name.endswith(('.c', '.h', '.cc')):
                    files += 1
                    bad += check_file(os.path.join(folder, name), room, uses, all_rooms)
    for line in bad:
        print('layers: ' + line)
    if bad:
        sys.exit(1)
    print('layers: %d files keep to the floor plan' % files)


main()
