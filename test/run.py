#!/usr/bin/env python3
"""Runs test programs, each under a time limit, and says what came of them, which took longest, and
which wanted most of the processors.

usage: test/run.py [--live] [-j N] BUILD_DIR...

For each build directory the program of every test/**/test_*.c is run, N at a time (as many as there
are cores).  With --live each test/live/**/test_*.{sh,py} too, beside them and against the first
directory.  Each has nodes, ports, directories and cgroups of its own.  Most wait nearly all of their
time, some keep a core busy for minutes: two of either kind at a time, longest first, so that none is
left alone at the end, and what would be so nevertheless has more of the processors; all wait three
times as long as one that is alone before they give up.  One that takes long says so in a line of its
head: "In a whole run it keeps a core busy for 180 s." or "In a whole run it waits for 100 s."
Programs print cmocka's or TAP lines; exit status 77 means skipped, and the last line of output says
why.  The last line printed here counts.

A test that works for long and proves in fewer builds what it would prove in all says so in a line of
its head comment, "Built as debug, clang-asan: ...", and is run in those only, when several are asked for.
"""
import argparse
import concurrent.futures
import contextlib
import glob
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

UNIT_LIMIT_S, LIVE_LIMIT_S, LIVE_AT_ONCE, LIVE_PATIENCE = 1200, 2700, 2, '3'
LONG_S, LONG_NICENESS = 600, -5
PLIGHT_LINES, LAST_LINES = 25, 5
TAKES = re.compile(r'^(?:# )?In a whole run it (keeps a core busy|waits) for (\d+) s\.$', re.M)
PASSED = re.compile(r'^\[       OK \] ', re.M)
FAILED = re.compile(r'^\[  FAILED  \] (\S+)$', re.M)
SKIPPED = re.compile(r'^\[  SKIPPED \] (\S+)$', re.M)
COMPLAINS = re.compile(r'^not ok|[Ee]rror:|ERROR: |left behind|^Traceback| != ')
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


class Done:
    """One program that has been run, how long it took, and for how long processors were busy with it
    and all that it has waited for: not with what has outlived its parents."""

    def __init__(self, command, limit_s, env, is_long=False):
        self.name = ' '.join(command)
        start = time.monotonic()
        with tempfile.TemporaryFile() as said:
            try:
                child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said,
                                         stderr=subprocess.STDOUT, env=env, start_new_session=True)
            except OSError as error:
                self.status, self.took_s, self.busy_s, self.output = 126, 0, 0, 'cannot be run: %s\n' % error
                return
            if is_long:
                prefer(child.pid)
            late = threading.Timer(limit_s, child.kill)
            late.start()
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = self.status = os.waitstatus_to_exitcode(status)
            late.cancel()
            self.took_s, self.busy_s = time.monotonic() - start, used.ru_utime + used.ru_stime
            said.seek(0)
            self.output = said.read().decode(errors='replace')
        if self.took_s >= limit_s:
            self.output += '\ntimed out after %d s\n' % limit_s


def prefer(pid):
    """PID, which leads a session, gets more of the processors than others, and what it starts, too."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, LONG_NICENESS)
        with open('/proc/%d/autogroup' % pid, 'w') as group:  # where sessions share the processors
            group.write(str(LONG_NICENESS))


def report(done, totals):
    """Says what came of DONE; False if anything of it failed."""
    good = count(done.output, done.status, totals)
    print('%-4s %6.1fs %6.1fs busy  %s' % ('ok' if good else 'FAIL', done.took_s, done.busy_s,
                                           done.name), flush=True)
    if done.status == 77:
        print('       skipped: ' + done.output.strip().splitlines()[-1])
    if not good:
        print(last_words(done, 120), flush=True)
    return good


def last_words(done, lines):
    """What DONE has said in its last LINES."""
    return '       | ' + '\n       | '.join(done.output.splitlines()[-lines:])


def plight(done):
    """What DONE has said from its first complaint on, and in the end."""
    lines = done.output.splitlines()
    first = next((at for at, line in enumerate(lines) if COMPLAINS.search(line)), len(lines))
    return ''.join('       | %s\n' % line[:200] for line in
                   lines[first:first + PLIGHT_LINES] + lines[max(first + PLIGHT_LINES, len(lines) - LAST_LINES):])


def complaint(done):
    """The line in which DONE says first that something is not as it should be, or its last."""
    lines = done.output.strip().splitlines() or ['it said nothing']
    return next(filter(COMPLAINS.search, lines), lines[-1]).strip()[:200]


def builds_of(source):
    """The names of the builds that SOURCE is run in; None: in all."""
    with open(source) as text:
        head = text.read().partition('*/')[0]
    match = re.search(r'^ \* Built as ([\w, -]+):', head, re.M)
    return match and re.split(', *', match.group(1))


def programs(builds):
    """The program of each test's source: one that a moved test has left behind is not run."""
    for build in builds:
        for folder, rooms, names in os.walk('test'):
            rooms.sort()
            for name in sorted(names):
                if not (name.startswith('test_') and name.endswith('.c')):
                    continue
                own = builds_of(os.path.join(folder, name))
                if len(builds) == 1 or own is None or os.path.basename(build) in own:
                    yield os.path.join(build, folder, name[:-2])


def takes(path):
    """Whether the live test PATH keeps a core busy, and for how many seconds it says it goes on."""
    with open(path) as text:
        match = TAKES.search(text.read())
    return (match[1] != 'waits', int(match[2])) if match else (False, 0)


def live_tests():
    """Those that keep a core busy, and those that wait; longest first."""
    paths = sorted(path for path in glob.glob('test/live/**/test_*', recursive=True)
                   if path.endswith(('.sh', '.py')))
    paths.sort(key=lambda path: -takes(path)[1])
    return [[path for path in paths if takes(path)[0] == busy] for busy in (True, False)]


def most(ended, of):
    """The ten of ENDED that have the most of the figure OF."""
    return ', '.join('%s %.0f s' % (done.name, of(done))
                     for done in sorted(ended, key=of, reverse=True)[:10])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--live', action='store_true')
    parser.add_argument('-j', type=int, default=os.cpu_count(), metavar='N')
    parser.add_argument('builds', nargs='+')
    options = parser.parse_args()
    totals = Totals()
    ended = []
    env = dict(os.environ, ASAN_OPTIONS='detect_leaks=1:abort_on_error=1',
               UBSAN_OPTIONS='print_stacktrace=1')
    live_env = dict({'CAIRN_PATIENCE': LIVE_PATIENCE}, **env,
                    CAIRN_BUILD=os.path.abspath(options.builds[0]))

    def lanes(paths, at_once, limit_s, env):
        """Begins to run PATHS in their order, AT_ONCE at a time."""
        pool = concurrent.futures.ThreadPoolExecutor(at_once)
        return [pool.submit(Done, [path], limit_s, env, path in longest) for path in paths]

    running, longest, failed = [], set(), []
    if options.live:
        longest = {path for paths in live_tests() for path in paths if takes(path)[1] >= LONG_S}
        for paths in live_tests():
            running += lanes(paths, LIVE_AT_ONCE, LIVE_LIMIT_S, live_env)
    running += lanes(programs(options.builds), options.j, UNIT_LIMIT_S, env)
    for each in concurrent.futures.as_completed(running):
        ended.append(each.result())
        if not report(ended[-1], totals):
            failed.append(ended[-1])
    for each in failed:  # once more, where the end of a log is all that is kept
        print('failed: %s\n%s' % (each.name, plight(each)), end='')
    print('slowest: ' + most(ended, lambda done: done.took_s))
    print('busiest: ' + most(ended, lambda done: done.busy_s))
    print('busy for %.0f s in all' % sum(done.busy_s for done in ended))
    for each in failed:
        print('failed: %s: %s' % (each.name, complaint(each)))
    print('%d passed, %d failed, %d skipped' % (totals.passed, totals.failed, totals.skipped))
    sys.exit(1 if totals.failed or not totals.passed else 0)


main()
