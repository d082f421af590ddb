#!/usr/bin/env python3
"""The mutation check: seeded faults in tables, rules and restore, and what finds each of them.

A mutant is one small fault, written down in test/mutants/*.mutants:

    mutant NAME
    breaks I-2 R-09                     what it violates, as restore-failures.md counts
    because ONE LINE                    why that matters
    in FILE
     a line of the file                 as in a diff, without numbers: lines that stay,
    -the line that goes                 lines that go, lines that come; "@@" between two
    +the line that comes                places of one file

The lines that stay and go must be in FILE exactly once: a mutant that no longer applies is stale
and fails the check, in `run.py --check` (part of ./dev check) without building anything.

A run builds a private copy of the sources and then, for each mutant, that copy with this one
fault, and asks the finders, cheapest first.  A finder is believed when it finds nothing in the copy
without a fault.  None of them compares with golden files: what counts is a static check, a violated
invariant, a broken expectation, an assertion, a crash or a hang.  A mutant that nobody finds is a
hole in the simulator's checkers or worlds, or no fault at all; either way the run fails.

usage: test/mutants/run.py [-j WORKERS] [NAME...]    names may end in *
       test/mutants/run.py --check | --list
"""
import argparse
import fnmatch
import glob
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = 'build/release'
BUILD_LIMIT_S = 600

# What finds faults, cheapest first: name, commands, time limit of one of them (reached: it hangs).
# Of the unit tests only those of what no world does: there, records that can be read are true, and
# a node has room for all.
CAIRN = OUT + '/cairn'
FINDERS = [
    ('checks', [[OUT + '/test/fsm/test_tables', 'checks']], 10),
    ('units', [[OUT + '/test/core/test_aside'], [OUT + '/test/core/test_lanes'],
               [OUT + '/test/core/test_restore'], [OUT + '/test/fsm/test_csi'],
               [OUT + '/test/plugins/test_driver'], [OUT + '/test/drivers/external/test_ask'],
               [OUT + '/test/fsm/test_plugin'], [OUT + '/test/fsm/test_volumes'],
               [OUT + '/test/fsm/test_rollout'], [OUT + '/test/server/alone/test_rollout'],
               [OUT + '/test/server/storage/test_claims'], [OUT + '/test/server/storage/test_provision'],
               [OUT + '/test/server/storage/test_hosted'], [OUT + '/test/hooks/hosted/test_hosted'],
               [OUT + '/test/server/alone/test_wait'], [OUT + '/test/server/alone/test_update'],
               [OUT + '/test/server/alone/test_stop'], [OUT + '/test/server/alone/test_drain'],
               [OUT + '/test/fsm/test_servers'], [OUT + '/test/server/nomad/test_nomad'],
               [OUT + '/test/server/nomad/test_claims'], [OUT + '/test/server/nomad/test_seeds'],
               [OUT + '/test/server/nomad/test_awaiting'], [OUT + '/test/server/nomad/test_moving'],
               [OUT + '/test/hooks/disk/test_migrate_disk'], [OUT + '/test/server/acl/test_lent'],
               [OUT + '/test/server/nomad/test_facts'], [OUT + '/test/spec/template/test_variables'],
               [OUT + '/test/spec/test_fate'], [OUT + '/test/hooks/test_run'],
               [OUT + '/test/hooks/network/test_network'], [OUT + '/test/hooks/test_artifacts'],
               [OUT + '/test/hooks/render/test_render'], [OUT + '/test/hooks/test_identity'],
               [OUT + '/test/hooks/env/test_env'], [OUT + '/test/spec/served/test_served'],
               [OUT + '/test/hooks/test_signing'], [OUT + '/test/server/nomad/test_signing'],
               [OUT + '/test/fsm/test_policy'],
               [OUT + '/test/drivers/docker/test_answers'],
               [OUT + '/test/drivers/docker/test_images'], [OUT + '/test/inspect/test_words'],
               [OUT + '/test/fsm/test_consul'], [OUT + '/test/hooks/consul/test_consul'],
               [OUT + '/test/hooks/connect/test_connect'], [OUT + '/test/io/net/test_relay'],
               [OUT + '/test/io/net/test_room'], [OUT + '/test/io/net/test_grpc']], 30),
    ('mounts', [[OUT + '/test/csi/test_volume_steps']], 90),
    ('stories', [[CAIRN, 'sim', '-story', os.path.basename(path)[:-len('.story')]]
                 for path in sorted(glob.glob(os.path.join(ROOT, 'sim/stories/*.story')))], 20),
    ('seeds', [[CAIRN, 'sim', '-base', '1', '-seeds', '20000'],
               [CAIRN, 'sim', '-base', '1', '-seeds', '2000', '-large'],
               [CAIRN, 'sim', '-base', '1', '-seeds', '2000', '-control']], 120),
    ('crashes', [[CAIRN, 'sim', '-exhaustive', 'all']], 900),
    ('search', [[CAIRN, 'sim', '-search', 'mains,faults=1,crashes=1']], 900),
]
# What finders run besides: without it they would find something in the copy without a fault.
HELPERS = [OUT + '/cairn-fetch', OUT + '/cairn-parse']
TARGETS = sorted({command[0] for _, commands, _ in FINDERS for command in commands}) + HELPERS
# What a finder says is wrong, and how to see it again.
SHOWN = re.compile(r'^(?:cairn: (.*)|(\w+: check \d+: .*)|(.+)\n\nfailed: .*)$', re.M)
AGAIN = re.compile(r'^  show it: +cairn sim (.*)$', re.M)


class Mutant:
    def __init__(self, name, place):
        self.name, self.place = name, place
        self.breaks = self.because = ''
        self.changes = []  # (file, old, new)

    def texts(self, root):
        """Of each file below ROOT that it changes: what is in it, and what comes of that."""
        before, after = {}, {}
        for name, old, new in self.changes:
            path = os.path.join(root, name)
            if path not in before:
                with open(path) as file:
                    before[path] = after[path] = file.read()
            count = after[path].count(old)
            if count != 1:
                raise Stale('%s: stale mutant: its lines are there %d times in %s'
                            % (self.place, count, name))
            after[path] = after[path].replace(old, new)
        return before, after


class Stale(Exception):
    """A mutant that does not fit the sources, or a list that cannot be read."""


def write(texts):
    for path, text in texts.items():
        with open(path, 'w') as file:
            file.write(text)


def hunk(lines, place):
    """The text that LINES expect and the one they leave."""
    while lines and not lines[-1]:
        lines.pop()
    for line in lines:
        if line and line[0] not in ' -+':
            raise Stale('%s: neither " ", "-" nor "+": %s' % (place, line))
    old = [line[1:] for line in lines if line[:1] != '+']
    new = [line[1:] for line in lines if line[:1] != '-']
    if old == new or not old:
        raise Stale('%s: changes nothing' % place)
    return ['\n' + '\n'.join(part + ['']) if part else '\n' for part in (old, new)]


def read_list(path):
    mutants, lines, file = [], [], None

    def end_hunk():
        if file is not None:
            mutants[-1].changes.append((file, *hunk(lines, mutants[-1].place)))
        lines.clear()

    with open(path) as source:
        for number, line in enumerate(source.read().split('\n'), 1):
            word, _, rest = line.partition(' ')
            place = '%s:%d' % (os.path.relpath(path, ROOT), number)
            if word == 'mutant':
                end_hunk()
                file = None
                mutants.append(Mutant(rest, place))
            elif word == 'in':
                end_hunk()
                file = rest
            elif word == '@@':
                end_hunk()
            elif file is not None:
                lines.append(line)
            elif word == 'breaks':
                mutants[-1].breaks = rest
            elif word == 'because':
                mutants[-1].because = rest
            elif line and not line.startswith('#'):
                raise Stale('%s: what is "%s"?' % (place, line))
    end_hunk()
    for mutant in mutants:
        if not (mutant.breaks and mutant.because and mutant.changes):
            raise Stale('%s: %s lacks a part' % (mutant.place, mutant.name))
    return mutants


def read_mutants():
    mutants = []
    for path in sorted(glob.glob(os.path.join(ROOT, 'test/mutants/*.mutants'))):
        mutants += read_list(path)
    names = [mutant.name for mutant in mutants]
    for mutant in mutants:
        if names.count(mutant.name) > 1:
            raise Stale('%s: %s is there twice' % (mutant.place, mutant.name))
    return mutants


def check(mutants):
    """True if each mutant fits the sources as they are."""
    stale = 0
    for mutant in mutants:
        try:
            mutant.texts(ROOT)
        except (Stale, OSError) as error:
            print('mutants: %s' % error)
            stale += 1
    if not stale:
        print('mutants: %d fit the sources' % len(mutants))
    return stale == 0


class Children:
    """The processes under way, so that an interrupted run leaves none."""

    def __init__(self):
        self.lock, self.running, self.closed = threading.Lock(), set(), False

    def run(self, command, cwd, limit_s):
        """Status (None: out of time) and output of COMMAND."""
        with self.lock:
            if self.closed:
                raise KeyboardInterrupt
            child = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     errors='replace', start_new_session=True)
            self.running.add(child)
        try:
            output = child.communicate(timeout=limit_s)[0]
            status = child.returncode
        except subprocess.TimeoutExpired:
            self.end(child)
            output, status = child.communicate()[0], None
        with self.lock:
            self.running.discard(child)
            if self.closed:
                raise KeyboardInterrupt
        return status, output

    @staticmethod
    def end(child):
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)

    def close(self):
        with self.lock:
            self.closed = True
            for child in self.running:
                self.end(child)


def compile_in(tree, children):
    status, output = children.run(['scons', '-Q', '-s', '-j', '2', 'variant=release'] + TARGETS,
                                  tree, BUILD_LIMIT_S)
    return None if status == 0 else output.strip()


def shown(command, status, output, limit_s):
    """What a run of COMMAND says of a fault, in one line."""
    match, again = SHOWN.search(output), AGAIN.search(output)
    if status is None:
        text = 'hangs: no end within %d s' % limit_s
    elif match:
        text = next(part for part in match.groups() if part)
    elif status < 0:
        text = 'ended by signal %d' % -status
    else:
        text = 'status %d: %s' % (status, output.strip().split('\n')[-1])
    if again:
        return '%s: %s' % (again.group(1), text)
    return '%s: %s' % (' '.join(command[2:4]) if command[0] == CAIRN
                       else os.path.basename(command[0]), text)


def ask(finder, tree, children):
    """What FINDER, one of FINDERS, finds in TREE, or None."""
    _, commands, limit_s = finder
    for command in commands:
        own = ['-j', '1'] if command[0] == CAIRN else []
        status, output = children.run(command + own, tree, limit_s)
        if status != 0:
            return shown(command, status, output, limit_s)
    return None


def copy_sources(to):
    """What git knows and what it would add, as it is in the working tree."""
    names = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '-z'], cwd=ROOT,
                           check=True, capture_output=True, text=True).stdout.split('\0')
    for name in names:
        source = os.path.join(ROOT, name)
        if name and os.path.isfile(source):
            os.makedirs(os.path.dirname(os.path.join(to, name)), exist_ok=True)
            shutil.copy2(source, os.path.join(to, name))
    # A mutant may leave a function without a caller.
    path = os.path.join(to, 'SConstruct')
    with open(path) as file:
        text = file.read()
    write({path: text.replace("'-Werror', ", '')})


class Run:
    """One run over MUTANTS by several workers, each with a tree of its own."""

    def __init__(self, mutants):
        self.mutants, self.results = mutants, {}
        self.plain, self.proofs, self.proof_lock = None, {}, threading.Lock()
        self.todo, self.lock, self.children = queue.Queue(), threading.Lock(), Children()
        for mutant in mutants:
            self.todo.put(mutant)

    def proof(self, finder):
        """What FINDER finds without any mutant, or None; asked when it first finds something."""
        with self.proof_lock:
            if finder[0] not in self.proofs:
                self.proofs[finder[0]] = ask(finder, self.plain, self.children)
            return self.proofs[finder[0]]

    def judge(self, mutant, tree):
        """Finder and what it says; finder None: survived, '': the mutant is no good."""
        before, after = mutant.texts(tree)
        write(after)
        try:
            error = compile_in(tree, self.children)
            if error is not None:
                lines = [line for line in error.split('\n') if 'error' in line] or [error]
                return '', 'does not compile: ' + lines[0]
            for finder in FINDERS:
                text = ask(finder, tree, self.children)
                if text and self.proof(finder):
                    return '', 'without any mutant, too: ' + self.proof(finder)
                if text:
                    return finder[0], text
            return None, 'SURVIVED'
        finally:
            write(before)

    def work(self, tree):
        try:
            while True:
                mutant = self.todo.get_nowait()
                begun = time.monotonic()
                finder, text = self.judge(mutant, tree)
                with self.lock:
                    self.results[mutant.name] = finder, text
                    print('[%*d/%d] %-40s %-8s %5.1fs  %s'
                          % (len(str(len(self.mutants))), len(self.results), len(self.mutants),
                             mutant.name, finder or '-', time.monotonic() - begun, text),
                          flush=True)
        except (queue.Empty, KeyboardInterrupt):
            pass

    def go(self, workers):
        top, threads = tempfile.mkdtemp(prefix='cairn-mutants.'), []
        try:
            first = os.path.join(top, '0')
            copy_sources(first)
            print('building', flush=True)
            error = compile_in(first, self.children)
            if error is not None:
                sys.exit('mutants: the sources do not compile:\n' + error)
            self.plain = os.path.join(top, 'plain')
            for target in TARGETS:
                os.makedirs(os.path.dirname(os.path.join(self.plain, target)), exist_ok=True)
                shutil.copy2(os.path.join(first, target), os.path.join(self.plain, target))
            trees = [first] + [os.path.join(top, str(number)) for number in range(1, workers)]
            for tree in trees[1:]:
                shutil.copytree(first, tree, symlinks=True)
            for tree in trees:
                threads.append(threading.Thread(target=self.work, args=[tree]))
                threads[-1].start()
            for thread in threads:
                thread.join()
        finally:
            self.children.close()
            for thread in threads:
                thread.join()
            shutil.rmtree(top, ignore_errors=True)

    def report(self, seconds):
        width = max(len(mutant.name) for mutant in self.mutants)
        print('\n%-*s  %-14s %-8s %s' % (width, 'mutant', 'breaks', 'found by', 'shown by'))
        for mutant in self.mutants:
            finder, text = self.results[mutant.name]
            print('%-*s  %-14s %-8s %s' % (width, mutant.name, mutant.breaks, finder or '-', text))
        finders = [finder for finder, _ in self.results.values()]
        by = ', '.join('%d by %s' % (finders.count(name), name)
                       for name in dict.fromkeys(name for name, _, _ in FINDERS))
        print('\n%d mutants: %s; %d survived, %d are no good; %d min %d s'
              % (len(finders), by, finders.count(None), finders.count(''), seconds // 60,
                 seconds % 60))
        return None not in finders and '' not in finders


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split('usage: ')[1])
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('-j', type=int, default=os.cpu_count(), metavar='WORKERS')
    parser.add_argument('names', nargs='*', metavar='NAME')
    options = parser.parse_args()
    try:
        mutants = read_mutants()
    except Stale as error:
        sys.exit('mutants: %s' % error)
    if options.names:
        mutants = [mutant for mutant in mutants
                   if any(fnmatch.fnmatch(mutant.name, name) for name in options.names)]
    if not mutants:
        sys.exit('mutants: none of that name')
    if options.list:
        for mutant in mutants:
            print('%-40s %-14s %s' % (mutant.name, mutant.breaks, mutant.because))
        return
    if not check(mutants):
        sys.exit(1)
    if options.check:
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    begun = time.monotonic()
    run = Run(mutants)
    try:
        run.go(min(options.j, len(mutants)))
    except KeyboardInterrupt:
        sys.exit('mutants: interrupted')
    if not run.report(int(time.monotonic() - begun)):
        sys.exit(1)


if __name__ == '__main__':
    main()
