#!/usr/bin/env python3
"""Proves the floor plan of SConstruct (ROOMS) from every #include and from what every object links.

usage: test/check/layers.py BUILD_DIR

  includes  a file includes headers of its own room and doors of the rooms below it.  In a room with
            rooms inside, a file also includes headers at its house's root and of the rooms beside it
            that its row names; the root may look into all of them.
  symbols   an object needs functions of the same rooms only, whatever it includes; and files do not
            need each other in circles, but for those in ROUND.
  libraries which only one file may know.
"""
import ast
import glob
import os
import re
import subprocess
import sys

ONLY = {'lmdb.h': {'journal'},
        'msgpack/pack.h': {'io/rpc/msgpack.c'}, 'msgpack/unpack_template.h': {'io/rpc/msgpack.c'}, 'ev.h': {'io/loop/loop.c'},
        'curl/curl.h': {'io/net/curl_library.h', 'hooks/fetch/check.c', 'hooks/fetch/download.c',
                       'hooks/fetch/source.c'},
        'archive.h': {'hooks/fetch/pack.c', 'hooks/fetch/unpack.c'},
        'flatbuffers/flatbuffers.h': {'journal/codec.cc'}, 'pcre2.h': {'spec/regex.c'},
        'csi/client/csi.pb-c.h': {'csi/client/decode.c', 'csi/client/encode.c'}}

# Circles of files that are honest, with the reason.
ROUND = {
    'spec/hcl/expression.c spec/hcl/template.c':
        'a grammar is round: text holds expressions, and expressions hold text',
    'spec/hcl/call.c spec/hcl/context.c spec/hcl/eval.c spec/hcl/operator.c spec/hcl/variable.c':
        'the value of a tree is made of the values of its branches',
    'drivers/docker/container.c drivers/docker/image.c drivers/docker/network.c drivers/ending.c '
    'drivers/external/life.c drivers/found.c drivers/held.c drivers/run.c':
        'a payload that ends under one shim may be found under the next',
}


class Plan:
    def __init__(self):
        tree = ast.parse(open('SConstruct').read())
        rows = [node.value for node in tree.body if isinstance(node, ast.Assign)
                and getattr(node.targets[0], 'id', '') == 'ROOMS']
        if not rows:
            sys.exit('layers: no ROOMS in SConstruct')
        rooms = eval(compile(ast.Expression(rows[0]), 'SConstruct', 'eval'), {'dict': dict})
        self.uses = {room: row.get('uses', '').split() for room, row in rooms.items()}
        self.doors = {room: row.get('doors', '').split() for room, row in rooms.items()}
        self.inside = {room: {name: beside.split() for name, beside in row.get('inside', {}).items()}
                       for room, row in rooms.items()}
        order = list(rooms)
        for room in order:
            for used in self.uses[room]:
                if order.index(used) > order.index(room):
                    sys.exit('layers: %s uses %s, which stands above it' % (room, used))

    def place(self, path):
        """(room, room inside it or '') of a file."""
        parts = path.split('/')
        return parts[0], parts[1] if len(parts) > 2 else ''

    def may_know(self, path, other):
        """What is wrong with PATH knowing OTHER, or None; both are files of the plan."""
        room, inner = self.place(path)
        their, place = self.place(other)
        if room != their:
            return None if their in self.uses[room] else '%s may not know %s' % (room, their)
        if not inner or not place or inner == place or place in self.inside[room].get(inner, []):
            return None
        return '%s/%s may not know %s/%s' % (room, inner, their, place)

    def is_door(self, header):
        room, _, rest = header.partition('/')
        return rest[:-len('.h')] in self.doors[room]


def check_includes(plan, path):
    for number, line in enumerate(open(path), 1):
        match = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
        if not match:
            continue
        target, where = match.group(1), '%s:%d' % (path, number)
        if target in ONLY and not any(path == ok or path.startswith(ok + '/')
                                      for ok in ONLY[target]):
            yield '%s: %s belongs to %s' % (where, target, ', '.join(sorted(ONLY[target])))
        if target.split('/')[0] not in plan.uses or '/' not in target:
            continue
        wrong = plan.may_know(path, target)
        if wrong is not None:
            yield '%s: %s' % (where, wrong)
        elif plan.place(path)[0] != plan.place(target)[0] and not plan.is_door(target):
            yield '%s: %s is no door' % (where, target)


def objects(plan, build):
    """(source, object) of each file of the plan, once."""
    for room in plan.uses:
        for path in sorted(glob.glob(os.path.join(build, room, '**/*.o'), recursive=True)):
            source = os.path.relpath(path, build)[:-len('.o')]
            source = re.sub(r'/cairn-shim-(?!old-)', '/', source) # the shim's own objects
            for ending in ('.c', '.cc'):
                if os.path.exists(source + ending):
                    yield source + ending, path


def symbols(paths):
    """{object: (names it defines, names it needs)}; one nm for all of them."""
    found = {}
    for line in subprocess.run(['nm', '--print-file-name', *paths], check=True, capture_output=True,
                               text=True).stdout.splitlines():
        path, _, rest = line.rpartition(':')
        defined, needed = found.setdefault(path, (set(), set()))
        parts = rest.split()
        if parts[-2] == 'U':
            needed.add(parts[-1])
        elif parts[-2] in 'TDBRVWC':
            defined.add(parts[-1])
    return found


def read_arrows(plan, build):
    """{file: {file it needs: by which function}}."""
    home, needs = {}, {}
    sources = {path: source for source, path in objects(plan, build)}
    if not sources:
        sys.exit('layers: no objects in %s' % build)
    for path, (defined, needed) in symbols(sources).items():
        source = sources[path]
        home.update({name: source for name in defined if name != 'main'})
        needs.setdefault(source, set()).update(needed)
    return {source: {home[name]: name for name in sorted(needed)
                     if name in home and home[name] != source}
            for source, needed in needs.items()}


def circles(arrows):
    """Sets of files that all reach each other (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(file):
        index[file] = low[file] = len(index)
        stack.append(file)
        for other in arrows[file]:
            if other not in index:
                visit(other)
                low[file] = min(low[file], low[other])
            elif other in stack:
                low[file] = min(low[file], index[other])
        if low[file] == index[file]:
            circle = set(stack[stack.index(file):])
            del stack[stack.index(file):]
            if len(circle) > 1:
                found.append(circle)

    sys.setrecursionlimit(10000)
    for file in sorted(arrows):
        if file not in index:
            visit(file)
    return found


def check_symbols(plan, arrows):
    for source, others in sorted(arrows.items()):
        for other, name in sorted(others.items()):
            wrong = plan.may_know(source, other)
            if wrong is not None:
                yield '%s needs %s of %s: %s' % (source, name, other, wrong)
    for circle in circles(arrows):
        if not any(circle <= set(known.split()) for known in ROUND):
            yield 'a circle of files: %s' % ' '.join(sorted(circle))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    plan, bad, files = Plan(), [], 0
    for room in plan.uses:
        for folder, _, names in os.walk(room):
            for name in sorted(names):
                if name.endswith(('.c', '.h', '.cc')):
                    files += 1
                    bad += check_includes(plan, os.path.join(folder, name))
    bad += check_symbols(plan, read_arrows(plan, sys.argv[1]))
    for line in bad:
        print('layers: ' + line)
    if bad:
        sys.exit(1)
    print('layers: %d files keep to the floor plan, %d circles have their reason'
          % (files, len(ROUND)))


main()
