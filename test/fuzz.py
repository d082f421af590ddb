#!/usr/bin/env python3
"""Runs fuzz targets, each in namespaces of its own.

usage: test/fuzz.py [--short] [TARGET...] [SECONDS]

A target is a program test/<room>/fuzz_<name>.c.  It starts from test/fuzz/<name>/ and from files of
the tree that are such inputs (SEEDS), and goes on from what it found in earlier runs, which is kept
in build/fuzz/<name>/corpus; --short begins anew and draws the same number of the same inputs each
time, so that a test of one tree answers the same twice.  An input that breaks something is kept
beside that; it becomes a test by lying in test/fuzz/<name>/, since each run begins with all that is
there.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys

BUILD = 'build/clang-asan'
LONG_S = 60  # for each target
SHORT_RUNS = {  # inputs of each target when --short: about two seconds of a quiet core
    'http': 250, 'from_shim': 250, 'pages': 200, 'import': 1000, 'story': 750, 'hcl': 12000,
    'job': 15000, 'tokens': 1200, 'volumes': 800, 'answers': 7000,
    'msgpack': 12000}
SHORT_RUNS_OTHERS = 25000
SEEDS = {  # what there is already of such inputs
    'hcl': ['test/spec/jobs/*.hcl', 'test/live/*.hcl'],
    'hcl_json': ['test/spec/jobs/*.json'],
    'job': ['test/spec/jobs/*.hcl', 'test/spec/jobs/*.json', 'test/live/*.hcl'],
    'json_job': ['test/spec/jobs/*.json'],
    'story': ['sim/stories/*.story'],
}
LENGTH_MAX = {'answers': 16384, 'pages': 256, 'task_file': 1536, 'launch': 16384,
              'yamux': 2048}
# The addresses of a program are among the values that libFuzzer takes from comparisons.
SAME_ADDRESSES = ['setarch', '-R']
NAMESPACES = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', '--mount', '--net',
              'sh', '-c', 'ip link set lo up; exec "$@"', 'fuzz']


def find_targets():
    found = {}
    for path in sorted(glob.glob('test/**/fuzz_*.c', recursive=True)):
        name = os.path.basename(path)[len('fuzz_'):-len('.c')]
        found[name] = os.path.join(BUILD, path[:-len('.c')])
    return found


def plant(name, folder):
    """Puts every seed of target NAME into FOLDER, each as a file."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for pattern in ['test/fuzz/%s/*' % name] + SEEDS.get(name, []):
        for path in sorted(glob.glob(pattern)):
            shutil.copy(path, os.path.join(folder, path.replace('/', '-')))
    if name in ('hcl', 'job'):
        for number, row in enumerate(open('test/spec/fuzz_expressions.txt')):
            with open('%s/row-%d' % (folder, number), 'w') as to:
                to.write('v = ' + row)


def run(name, program, seconds, short):
    """(whether nothing broke, a line about it)."""
    work = os.path.join('build/fuzz', name)
    corpus, seeds, scratch = (os.path.join(work, folder)
                              for folder in ('short' if short else 'corpus', 'seeds', 'scratch'))
    if short:
        shutil.rmtree(corpus, ignore_errors=True)
    os.makedirs(corpus, exist_ok=True)
    plant(name, seeds)
    # In memory where that is possible: some targets sync with every input.
    scratch = '/dev/shm/cairn-fuzz-%d' % os.getpid() if os.path.isdir('/dev/shm') else scratch
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    command = (SAME_ADDRESSES if short else []) + NAMESPACES + [
        program, '-timeout=20', '-rss_limit_mb=2048',
        '-max_len=%d' % LENGTH_MAX.get(name, 8192), '-artifact_prefix=%s/' % os.path.abspath(work),
        '-print_final_stats=1', os.path.abspath(corpus), os.path.abspath(seeds)]
    if short:
        command += ['-seed=1', '-reload=0', '-runs=%d' % SHORT_RUNS.get(name, SHORT_RUNS_OTHERS)]
    else:
        command.append('-max_total_time=%d' % seconds)
    words = 'test/fuzz/%s.words' % name
    if os.path.exists(words):
        command.append('-dict=' + os.path.abspath(words))
    env = dict(os.environ, FUZZ_DIRECTORY=scratch, ASAN_OPTIONS='detect_leaks=1',
               UBSAN_OPTIONS='print_stacktrace=1')
    with open(os.path.join(work, 'log'), 'w+', errors='replace') as log:
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log,
                                stderr=subprocess.STDOUT, env=env).returncode
        log.seek(0)
        said = log.read()
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.rmtree(seeds)
    units = re.search(r'stat::number_of_executed_units:\s*(\d+)', said)
    covered = re.findall(r'cov: (\d+)', said)
    if status == 0 and units and int(units.group(1)) > 0:
        return True, '%s: %s inputs, %s edges' % (name, units.group(1), covered[-1] if covered else '?')
    kept = re.search(r'Test unit written to (\S+)', said)
    print('\n'.join('# ' + line for line in said.splitlines()[-60:]))
    if kept:
        path = os.path.relpath(kept.group(1))
        print('# kept in %s\n# again: FUZZ_DIRECTORY=$(mktemp -d) %s %s\n'
              '# once it is mended: git mv it to test/fuzz/%s/, with a name that says what it was'
              % (path, program, path, name))
    return False, '%s: broken (status %d; whole log: %s/log)' % (name, status, work)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[2][len('usage: '):])
    parser.add_argument('--short', action='store_true')
    parser.add_argument('targets', nargs='*')
    options = parser.parse_args()
    known = find_targets()
    seconds = LONG_S
    if options.targets and options.targets[-1].isdigit():
        seconds = int(options.targets.pop())
    for name in options.targets:
        if name not in known:
            sys.exit('fuzz: no target %s; there are: %s' % (name, ' '.join(known)))
    for name in options.targets or known:
        if not os.path.exists(known[name]):
            sys.exit('fuzz: %s is not built; ./dev fuzz builds it' % known[name])
    bad = 0
    for number, name in enumerate(options.targets or known, 1):
        good, line = run(name, known[name], seconds, options.short)
        print('%sok %d - fuzz %s' % ('' if good else 'not ', number, line), flush=True)
        bad += not good
    sys.exit(1 if bad else 0)


main()
