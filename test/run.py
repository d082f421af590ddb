#!/usr/bin/env python3
"""Runs test programs one by one, each under a time limit, and says what came of them.

usage: test/run.py [--live] BUILD_DIR...

For each build directory the program of every test/**/test_*.c is run; with --live the scripts of
test/live/t*.{sh,py} too, against the first directory.  Programs print cmocka's or TAP lines; exit
status 77 means skipped, and the last line of output says why.  The last line printed here counts.
"""
import argparse
import os
import re
import subprocess
import sys
import time

UNIT_LIMIT_S, LIVE_LIMIT_S = 300, 900
PASSED = re.compile(r'^\[       OK \] ', re.M)
FAILED = re.compile(r'^\[  FAILED  \] (\S+)$', re.M)
SKIPPED = re.compile(r'^\[  SKIPPED \] (\S+)$', re.M)
TAP = re.compile(r'^(not )?ok \d+(?: - (.*?))?( # SKIP.*)?$', re.M)


class Totals:
    passed = failed = skipped = 0


def count(output, status, totals):
    """Counts the results in OUTPUT; False if anything failed."""
    before = totals.failed
    taps = TAP.findall(output)
    if taps:
        for bad, _, skip in taps:
            if skip:
                totals.skipped += 1
            elif bad:
                totals.failed += 1
            else:
                totals.passed += 1
    else:
        totals.passed += len(PASSED.findall(output))
        totals.skipped += len(set(SKIPPED.findall(output)))
        totals.failed += len(set(FAILED.findall(output)))
    if status == 77 and not taps:
        totals.skipped += 1
        return True
    if status != 0 and totals.failed == before:
        totals.failed += 1
    return totals.failed == before


def run(command, limit_s, env, totals):
    name = ' '.join(command)
    start = time.monotonic()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=limit_s, env=env,
                              start_new_session=True)
        output, status = done.stdout.decode(errors='replace'), done.returncode
    except subprocess.TimeoutExpired as late:
        output = (late.stdout or b'').decode(errors='replace') + '\ntimed out after %d s\n' % limit_s
        status = -1
    good = count(output, status, totals)
    print('%-4s %6.1fs  %s' % ('ok' if good else 'FAIL', time.monotonic() - start, name),
          flush=True)
    if status == 77:
        print('       skipped: ' + output.strip().splitlines()[-1])
    if not good:
        print('       | ' + '\n       | '.join(output.splitlines()[-120:]), flush=True)


def programs(build):
    """The program of each test's source: one that a moved test has left behind is not run."""
    for folder, rooms, names in os.walk('test'):
        rooms.sort()
        for name in sorted(names):
            if name.startswith('test_') and name.endswith('.c'):
                yield os.path.join(build, folder, name[:-2])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--live', action='store_true')
    parser.add_argument('builds', nargs='+')
    options = parser.parse_args()
    totals = Totals()
    env = dict(os.environ, ASAN_OPTIONS='detect_leaks=1:abort_on_error=1',
               UBSAN_OPTIONS='print_stacktrace=1')
    for build in options.builds:
        for path in programs(build):
            run([path], UNIT_LIMIT_S, env, totals)
    if options.live:
        for name in sorted(os.listdir('test/live')):
            if re.match(r't\d{3}-.*\.(sh|py)$', name):
                run([os.path.join('test/live', name)], LIVE_LIMIT_S,
                    dict(env, CAIRN_BUILD=os.path.abspath(options.builds[0])), totals)
    print('%d passed, %d failed, %d skipped' % (totals.passed, totals.failed, totals.skipped))
    sys.exit(1 if totals.failed or not totals.passed else 0)


main()
