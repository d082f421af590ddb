#!/usr/bin/env python3
"""The package on a machine with systemd: installed, managed, upgraded, downgraded, removed, purged,
while tasks run that must not notice.  Run on the machine of machine.py, which puts the packages there.

usage: test/vm/package.py DIRECTORY    with cairn_1.deb, cairn_2.deb, and cairn_3.deb, whose version
                                       cannot restore the node
"""
import contextlib
import functools
import glob
import grp
import http.client
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'live'))
import lib  # noqa: E402
from lib import sleeper, service, tap  # noqa: E402
from local import SOCKET, answers, ask  # noqa: E402

wait_for = functools.partial(lib.wait_for, pause_s=0.1)  # what is waited for wants the processors, too

PACKAGES = sys.argv[1]
# Where cairn looks for what runs (io/host/cgroup_path.c).
HIERARCHY = next(path for path in ('/sys/fs/cgroup', '/sys/fs/cgroup/unified', '/sys/fs/cgroup/freezer')
                 if os.path.exists(path + '/cgroup.procs'))
IS_V2 = HIERARCHY == '/sys/fs/cgroup'
TASKS = HIERARCHY + '/cairn.slice/cairn-tasks.service'
COUNT = 50
before = {}  # the payloads: pid -> start


def run(*command, check=True):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check and done.returncode != 0:
        raise AssertionError('%s: status %d\n%s' % (' '.join(command), done.returncode, done.stdout))
    return done.stdout


def install(number, check=True):
    return run('dpkg', '-i', os.path.join(PACKAGES, 'cairn_%d.deb' % number), check=check)


def shown(unit, name):
    return run('systemctl', 'show', '--value', '-p', name, unit).strip()


def payloads():
    """pid -> (start, command) of what runs in the cgroups of tasks, but shims."""
    found = {}
    for path in glob.glob(TASKS + '/*/*/cgroup.procs'):
        if '/shims/' in path:
            continue
        with contextlib.suppress(FileNotFoundError):  # what has just ended
            with open(path) as procs:
                pids = procs.read().split()
            for pid in pids:
                with open('/proc/%s/stat' % pid) as now:
                    found[int(pid)] = now.read().rpartition(')')[2].split()[19]
    return found


def assert_in_their_cgroups():
    """Where cairn looks for what runs, and nowhere in a cgroup of the daemon's: systemd may move, limit
    and end what it takes for that."""
    ours = 'freezer' if HIERARCHY.endswith('/freezer') else ''
    for pid in before:
        with open('/proc/%d/cgroup' % pid) as lines:
            places = dict(line.rstrip('\n').split(':', 2)[1:] for line in lines)
        for controllers, place in places.items():
            assert '/cairn.service' not in place, (pid, places)
            if ours in controllers.split(',') or controllers == 'name=systemd':
                assert place.startswith('/cairn.slice/cairn-tasks.service'), (pid, places)


def assert_untouched():
    """Each payload is the process that it was, and the daemon knows all of them."""
    assert payloads() == before
    assert_in_their_cgroups()
    wait_for('all tasks to be known', lambda: sum(
        alloc['ClientStatus'] == 'running' for alloc in ask('GET', '/v1/allocations')) == COUNT)
    assert payloads() == before


def being_installed_starts_nothing():
    install(1)
    assert run('systemctl', 'is-active', 'cairn', 'cairn-tasks', check=False).split() == ['inactive'] * 2
    assert run('systemctl', 'is-enabled', 'cairn', check=False).strip() == 'disabled'
    assert not os.path.exists('/var/lib/cairn')
    assert 'built from' in run('cairn', 'version')
    assert grp.getgrnam('cairn').gr_mem == []
    print('# ' + run('systemd-analyze', 'security', '--no-pager', 'cairn.service').splitlines()[-1])


def a_start_returns_when_the_api_answers():
    run('systemctl', 'start', 'cairn')
    assert ask('GET', '/v1/status/leader')
    assert shown('cairn', 'StatusText') == '0 tasks run; API at unix://' + SOCKET
    assert shown('cairn-tasks', 'ActiveState') == 'active'
    assert shown('cairn-tasks', 'Delegate') == 'yes'


def asks_as(*command):
    """What `cairn job status` says by the socket to who runs it after COMMAND."""
    return run(*command, 'cairn', 'job', 'status', '-address', 'unix://' + SOCKET, check=False)


def root_and_the_group_reach_the_socket_and_nobody_else_anything():
    found = os.stat(SOCKET)
    assert (found.st_uid, found.st_gid) == (0, grp.getgrnam('cairn').gr_gid)
    assert stat.S_IMODE(found.st_mode) == 0o660, oct(found.st_mode)
    nobody = ('setpriv', '--reuid=65534', '--regid=65534')
    for groups, said in (('--groups=cairn', 'No jobs'), ('--clear-groups', 'may not connect')):
        heard = asks_as(*nobody, groups)
        assert said in heard, heard
    try:
        ask('GET', '/v1/status/leader', to=http.client.HTTPConnection)
        raise AssertionError('it listens on the network')
    except ConnectionRefusedError:
        pass


def fifty_tasks_run_in_delegated_cgroups():
    ask('PUT', '/v1/jobs', {'Job': service(
        sleeper(Resources={'CPU': 10, 'MemoryMB': 10},
                LogConfig={'MaxFiles': 1, 'MaxFileSizeMB': 1}), Count=COUNT,
        EphemeralDisk={'SizeMB': 10})})
    wait_for('the tasks', lambda: len(payloads()) == COUNT, limit_s=120)
    before.update(payloads())
    assert_untouched()
    if IS_V2:
        task = glob.glob(TASKS + '/*/*.t.*')[0]
        with open(task + '/cgroup.controllers') as controllers:
            assert {'cpu', 'cpuset', 'memory', 'pids'} <= set(controllers.read().split())
    assert_in_their_cgroups()
    assert not glob.glob('/sys/fs/cgroup/cairn') + glob.glob('/sys/fs/cgroup/*/cairn')


def the_journal_has_fields():
    entries = [json.loads(line) for line in
               run('journalctl', '-u', 'cairn', '-o', 'json', 'CAIRN_ROOM=agent').splitlines()]
    started = [entry for entry in entries if entry['MESSAGE'].startswith('agent: started ')]
    assert started and started[0]['PRIORITY'] == '6' and 'CAIRN_DATA_DIR' in started[0], entries


def drop_in(unit, text):
    """Settings of UNIT, until they are taken away with "" again."""
    path = '/run/systemd/system/%s.d/test.conf' % unit
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as out:
        out.write(text)
    run('systemctl', 'daemon-reload')


def nothing_that_systemd_does_is_noticed():
    drop_in('work.service', '[Unit]\nIgnoreOnIsolate=yes\n')  # that is us
    for command in (['daemon-reload'], ['reload', 'cairn'], ['restart', 'cairn'], ['daemon-reexec'],
                    ['isolate', 'multi-user.target'], ['kill', '-s', 'KILL', 'cairn']):
        run('systemctl', *command)
        if command[0] == 'isolate':
            run('systemctl', 'start', 'cairn')  # nothing of that target wants it
        wait_for('the daemon after ' + command[0], answers)
        assert_untouched()
    run('systemctl', 'stop', 'cairn')
    assert payloads() == before
    run('systemctl', 'start', 'cairn')
    assert_untouched()
    assert 'refused' in run('systemctl', 'stop', 'cairn-tasks', check=False)
    assert payloads() == before


def a_stuck_loop_is_ended_by_the_watchdog():
    drop_in('cairn.service', '[Service]\nWatchdogSec=10\nTimeoutAbortSec=2\n')
    run('systemctl', 'restart', 'cairn')
    assert_untouched()
    stuck = int(shown('cairn', 'MainPID'))
    os.kill(stuck, signal.SIGSTOP)
    wait_for('another daemon', lambda: int(shown('cairn', 'MainPID')) not in (0, stuck), limit_s=60,
             pause_s=1)
    wait_for('it to answer', answers)
    assert_untouched()
    drop_in('cairn.service', '')


def credentials_reach_the_daemon_and_no_task():
    """It has no mounts of its own for them: what it mounts for tasks is the machine's."""
    secret, more = str(uuid.uuid4()), '/etc/cairn/tokens.hcl'
    with open('/root/first', 'w') as out:
        out.write(secret + '\n')
    with open(more, 'w') as out:
        out.write('acl {\n  enabled = true\n  bootstrap_secret_file = "credential:first"\n}\n')
    drop_in('cairn.service', '[Service]\nLoadCredential=first:/root/first\n')
    run('systemctl', 'restart', 'cairn')
    os.unlink('/root/first')
    asking = ('env', 'NOMAD_ADDR=unix://' + SOCKET, 'cairn', 'acl', 'token', 'self')
    assert 'management' in run(*asking, '-token', secret)
    assert 'management' not in run(*asking, check=False)
    assert os.readlink('/proc/%s/ns/mnt' % shown('cairn', 'MainPID')) == os.readlink('/proc/1/ns/mnt')
    assert payloads() == before
    os.unlink(more)
    drop_in('cairn.service', '')
    run('systemctl', 'restart', 'cairn')
    assert_untouched()


def a_daemon_that_the_kernel_ends_for_memory_comes_back():
    ended = int(shown('cairn', 'NRestarts'))
    run('systemctl', 'set-property', '--runtime', 'cairn.service', 'MemoryMax=1M')
    if not IS_V2:  # which takes no memory away from who has more: the next one gets no more
        run('systemctl', 'kill', '-s', 'KILL', 'cairn')
        ended += 1
    wait_for('a daemon to be ended', lambda: int(shown('cairn', 'NRestarts')) > ended, limit_s=60, pause_s=0.5)
    run('systemctl', 'set-property', '--runtime', 'cairn.service', 'MemoryMax=infinity')
    wait_for('it to answer', answers, limit_s=60)
    assert_untouched()


def upgraded(number):
    """How long the API was away, by asking all the time."""
    asking = subprocess.Popen(['dpkg', '-i', os.path.join(PACKAGES, 'cairn_%d.deb' % number)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    last, longest = time.monotonic(), 0
    while asking.poll() is None:
        if answers():
            longest = max(longest, time.monotonic() - last)
            last = time.monotonic()
        with contextlib.suppress(subprocess.TimeoutExpired):
            asking.wait(0.1)
    assert asking.returncode == 0, asking.stdout.read()
    wait_for('the API', answers)
    return max(longest, time.monotonic() - last)


def an_upgrade_and_a_downgrade_touch_no_task():
    for number in (2, 1):
        daemon = shown('cairn', 'MainPID')
        away_s = upgraded(number)
        assert shown('cairn', 'MainPID') != daemon
        assert_untouched()
        print('# %s: the API was away for %.1f s' % ('upgrade' if number == 2 else 'downgrade', away_s))


def a_version_that_could_not_restore_the_node_is_not_started():
    daemon = shown('cairn', 'MainPID')
    said = install(3, check=False)
    assert 'could not restore this node' in said and 'install that one again' in said, said
    assert shown('cairn', 'MainPID') == daemon
    assert_untouched()
    install(1)
    assert_untouched()


def a_socket_unit_starts_it_and_keeps_its_callers():
    with open('/run/systemd/system/cairn.socket', 'w') as out:
        out.write('[Socket]\nListenStream=127.0.0.1:4646\n')
    run('systemctl', 'daemon-reload')
    run('systemctl', 'stop', 'cairn')
    run('systemctl', 'start', 'cairn.socket')
    # Who is let in waits until there is an agent.
    assert ask('GET', '/v1/status/leader', to=http.client.HTTPConnection)
    assert shown('cairn', 'ActiveState') == 'active'
    assert_untouched()
    run('systemctl', 'stop', 'cairn', 'cairn.socket')
    os.unlink('/run/systemd/system/cairn.socket')
    run('systemctl', 'daemon-reload')
    run('systemctl', 'start', 'cairn')


def a_removed_package_leaves_what_runs():
    run('dpkg', '-r', 'cairn')
    assert not os.path.exists('/usr/bin/cairn') and not answers()
    assert payloads() == before
    install(1)
    run('systemctl', 'start', 'cairn')
    assert_untouched()


def purging_leaves_nothing():
    run('dpkg', '-P', 'cairn')
    left = [path for path in ('/var/lib/cairn', '/etc/cairn', '/run/cairn', '/usr/bin/cairn')
            if os.path.exists(path)]
    assert not left, left
    assert 'cairn' not in [group.gr_name for group in grp.getgrall()]
    wait_for('the cgroups to be gone', lambda: not glob.glob(TASKS + '/*/') +
             glob.glob('/sys/fs/cgroup/*/cairn.slice/'))
    assert not [line for line in run('ps', '-e', '-o', 'args').splitlines()
                if re.search('cairn-shim|sleep 1000', line)]


sys.exit(tap([
    being_installed_starts_nothing,
    a_start_returns_when_the_api_answers,
    root_and_the_group_reach_the_socket_and_nobody_else_anything,
    fifty_tasks_run_in_delegated_cgroups,
    the_journal_has_fields,
    nothing_that_systemd_does_is_noticed,
    a_stuck_loop_is_ended_by_the_watchdog,
    credentials_reach_the_daemon_and_no_task,
    a_daemon_that_the_kernel_ends_for_memory_comes_back,
    an_upgrade_and_a_downgrade_touch_no_task,
    a_version_that_could_not_restore_the_node_is_not_started,
    a_socket_unit_starts_it_and_keeps_its_callers,
    a_removed_package_leaves_what_runs,
    purging_leaves_nothing,
], each_needs_the_last=True))
