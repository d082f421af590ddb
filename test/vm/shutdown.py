#!/usr/bin/env python3
"""A machine that its systemd shuts down and boots again, and what a node makes of it: no task has lost
an attempt or failed for it, nothing that had finished runs again, and until the last payload has ended
there is what payloads need.  Run on the machine of machine.py, where the package is not installed.

usage: test/vm/shutdown.py begin PACKAGE.deb    then the machine is to be shut down
       test/vm/shutdown.py look                 in the boot after that
"""
import functools
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'live'))
import lib  # noqa: E402
from lib import events, milliseconds, raw_exec, restart_policy, service, tap  # noqa: E402
from local import answers, ask  # noqa: E402

wait_for = functools.partial(lib.wait_for, pause_s=0.2)  # what is waited for wants the processors, too

PLACE = '/var/lib/cairn-shutdown'  # kept by the disk, as is all that cairn has
LINK = '''[Unit]
Wants=network.target
Before=network.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=touch /run/link
ExecStop=rm /run/link
'''
BEGUN = 'echo run >> %s/$NOMAD_JOB_ID; sync; ' % PLACE
FOREVER = 'while :; do sleep 0.2; done'
LAST_WORDS = "trap 'mountpoint %s/mount > %s/said; sync; exit 0' TERM; " % (PLACE, PLACE)
AGAIN = '[ $(wc -l < %s/$NOMAD_JOB_ID) -gt 1 ] && exec sleep 100000; ' % PLACE
# name -> kind, script, attempts and the delay of each: one that was used up would be seen for an hour.
JOBS = {
    'plain': ('service', BEGUN + 'exec sleep 100000', 0),
    'refuses': ('service', BEGUN + "trap 'exit 3' TERM; " + FOREVER, 1),
    'needs-a-link': ('service', BEGUN + AGAIN + 'while [ -e /run/link ]; do sleep 0.2; done; exit 4', 0),
    'needs-a-mount': ('service', BEGUN + LAST_WORDS + FOREVER, 0),
    'works': ('batch', BEGUN + 'exec sleep 100000', 0),
    'had-ended': ('batch', BEGUN, 0),
}


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def job(name, kind, script, attempts):
    task = raw_exec('t', script, KillTimeout=milliseconds(1000), LogConfig={'MaxFiles': 1, 'MaxFileSizeMB': 1})
    made = service(task, restart=restart_policy(attempts, delay_ms=3600000),
                   ReschedulePolicy={'Attempts': 0, 'Unlimited': False}, EphemeralDisk={'SizeMB': 10})
    made.update(ID=name, Name=name, Type=kind)
    return made


def allocs():
    return {alloc['JobID']: alloc for alloc in ask('GET', '/v1/allocations')}


def runs(name):
    """How often the payload of job NAME has begun."""
    with open(os.path.join(PLACE, name)) as lines:
        return len(lines.read().splitlines())


def as_wanted():
    now = allocs()
    return len(now) == len(JOBS) and all(
        now[name]['ClientStatus'] == ('complete' if name == 'had-ended' else 'running') for name in JOBS)


def begin(package):
    os.makedirs(os.path.join(PLACE, 'mount'))
    run('mount', '-t', 'tmpfs', 'tmpfs', os.path.join(PLACE, 'mount'))
    os.makedirs('/run/systemd/system', exist_ok=True)
    with open('/run/systemd/system/link.service', 'w') as out:
        out.write(LINK)
    run('dpkg', '-i', package)
    run('systemctl', 'daemon-reload')
    run('systemctl', 'start', 'link')
    run('systemctl', 'enable', '--now', 'cairn')
    wait_for('the API', answers)
    for name, (kind, script, attempts) in JOBS.items():
        ask('PUT', '/v1/jobs', {'Job': job(name, kind, script, attempts)})
    wait_for('the jobs', as_wanted, limit_s=60)
    with open(os.path.join(PLACE, 'asked'), 'w') as out:
        out.write('%f' % time.time())
    os.sync()


def it_was_shut_down_and_booted():
    with open('/proc/uptime') as now, open(os.path.join(PLACE, 'asked')) as asked:
        print('# from the order to the next kernel: %.1f s'
              % (time.time() - float(now.read().split()[0]) - float(asked.read())))
    wait_for('the API', answers, limit_s=60)
    wait_for('what ran to run again', lambda: as_wanted() and all(
        runs(name) == 2 for name in JOBS if name != 'had-ended'), limit_s=60)


def no_task_has_lost_an_attempt():
    for name, alloc in allocs().items():
        state = alloc['TaskStates']['t']
        assert not state['Failed'] and state['Restarts'] == 0, (name, events(state))


def events_say_why_it_runs_again():
    for name, alloc in allocs().items():
        assert ('Failed Restoring Task' in events(alloc['TaskStates']['t'])) == (name != 'had-ended'), name


def what_had_ended_does_not_run_again():
    assert runs('had-ended') == 1


def a_payload_ends_before_the_mounts_go():
    with open(os.path.join(PLACE, 'said')) as said:
        assert 'is a mountpoint' in said.read()


if __name__ == '__main__':
    if sys.argv[1] == 'begin':
        begin(sys.argv[2])
    else:
        sys.exit(tap([
            it_was_shut_down_and_booted,
            no_task_has_lost_an_attempt,
            events_say_why_it_runs_again,
            what_had_ended_does_not_run_again,
            a_payload_ends_before_the_mounts_go,
        ]))
