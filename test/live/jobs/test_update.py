#!/usr/bin/env python3
"""Newer versions of a job on a real node: what need not be replaced goes on with the same process,
by the newer version, wherever the daemon dies."""
import os
import signal
import sys
import time
import urllib.error

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, Node, Refused, events, milliseconds, raw_exec,  # noqa: E402
                 restart_policy, start_ticks, tap, wait_for)

STUBBORN = 'trap "" TERM; exec sleep 1000'


def group(name, driver, script, kill_s, attempts, **fields):
    task = raw_exec('t', script, Driver=driver, KillTimeout=milliseconds(kill_s * 1000))
    return dict({'Name': name, 'Count': 1, 'Tasks': [task],
                 'RestartPolicy': restart_policy(attempts, 10),
                 'ReschedulePolicy': NO_RESCHEDULE}, **fields)


def job_of(kill_s, attempts, script=STUBBORN, **fields):
    return {'ID': 'job', 'Name': 'job', 'Type': 'service', 'Datacenters': ['dc1'],
            'TaskGroups': [group('raw', 'raw_exec', script, kill_s, attempts, **fields),
                           group('own', 'exec', script, kill_s, attempts, **fields)]}


def open_node():
    node = Node()
    os.chmod(node.dir, 0o711)  # tasks of nobody have to reach what is theirs
    node.start()
    return node


def processes(node):
    """Who runs: pids, and when each began."""
    return sorted((pid, start_ticks(pid)) for pid, line in node.payloads().items()
                  if line == 'sleep 1000')


def await_both(node):
    for name in ('raw', 'own'):
        wait_for('the task of ' + name, lambda: node.running(group=name))
    wait_for('what they run', lambda: len(processes(node)) == 2)


def name_of(pid):
    with open('/proc/%d/environ' % pid, 'rb') as environ:
        return dict(line.split(b'=', 1) for line in environ.read().split(b'\0') if b'=' in line)[
            b'NOMAD_JOB_NAME'].decode()


def version_of(node, name):
    """(version of the record, of its specification, kill timeout of that in s) of an alloc."""
    listed = node.alloc('job', name)
    alloc = node.get('/v1/allocation/%s' % listed['ID'])
    [tasks] = [one['Tasks'] for one in alloc['Job']['TaskGroups'] if one['Name'] == name]
    return listed['JobVersion'], alloc['Job']['Version'], tasks[0]['KillTimeout'] // 10 ** 9


def what_runs_goes_on_and_ends_as_the_newer_version_says():
    node = open_node()
    node.run_job(job_of(25, 0))
    await_both(node)
    before, allocs = processes(node), [node.alloc('job', name) for name in ('raw', 'own')]
    assert len(before) == 2, before
    node.run_job(job_of(1, 3))
    assert processes(node) == before
    for name, old in zip(('raw', 'own'), allocs):
        new = node.get('/v1/allocation/%s' % old['ID'])
        assert version_of(node, name) == (1, 1, 1), version_of(node, name)
        assert new['CreateIndex'] == old['CreateIndex'], (new['CreateIndex'], old['CreateIndex'])
        assert new['AllocModifyIndex'] > new['CreateIndex']
        assert new['ModifyIndex'] > old['ModifyIndex']
        assert new['EvalID'] != old['EvalID']
        lines = node.cli('alloc', 'status', old['ID']).stdout.splitlines()
        assert [line.split()[-1] for line in lines if line.startswith('Job Version')] == ['1']
    node.kill()
    node.start()
    assert processes(node) == before
    for pid, _ in before:  # the first version allowed no restart
        os.kill(pid, signal.SIGKILL)
    wait_for('both again', lambda: len(set(processes(node)) - set(before)) == 2)
    await_both(node)
    began = time.monotonic()
    for old in allocs:
        assert 'Restarting' in events(node.get('/v1/allocation/%s' % old['ID'])['TaskStates']['t'])
        node.put('/v1/allocation/%s/stop' % old['ID'])
    wait_for('their end', lambda: all(
        node.get('/v1/allocation/%s' % old['ID'])['ClientStatus'] == 'complete' for old in allocs))
    assert 1 <= time.monotonic() - began < 24  # the first version would have waited for 25 s
    timeline = node.cli('journal', 'timeline', '-dir', node.data).stdout
    assert timeline.count('goes on by version 1') == 2, timeline
    node.finish()


def other_counts_touch_nobody_and_a_plan_says_so():
    node = open_node()
    node.run_job(job_of(1, 3))
    await_both(node)
    before = processes(node)
    path = os.path.join(node.dir, 'job.hcl')
    with open(path, 'w') as out:
        out.write('job "job" {\n'
                  + ''.join('group "%s" {\n count = 2\n reschedule {\n attempts = 0\n '
                            'unlimited = false\n }\n task "t" {\n driver = "%s"\n '
                            'kill_timeout = "2s"\n config {\n command = "/bin/sh"\n '
                            'args = ["-c", "%s"]\n }\n resources {\n cpu = 50\n memory = 32\n '
                            '}\n }\n}\n' % (name, driver, STUBBORN.replace('"', '\\"'))
                            for name, driver in (('raw', 'raw_exec'), ('own', 'exec'))) + '}\n')
    plan = node.cli('job', 'plan', path, check=False).stdout
    assert plan.count('1 create, 1 in-place update') == 2, plan
    node.cli('job', 'run', '-detach', path)
    wait_for('two more', lambda: len(processes(node)) == 4)
    assert set(before) < set(processes(node))
    with open(path) as file:
        text = file.read()
    with open(path, 'w') as out:
        out.write(text.replace('"2s"', '"1s"'))
    assert node.cli('job', 'plan', path).stdout.count('2 in-place update') == 2
    told = node.cli('job', 'run', path).stdout
    assert told.count(' modified: ') == 4 and ' created: ' not in told, told
    assert set(before) < set(processes(node)) and len(processes(node)) == 4
    with open(path, 'w') as out:
        out.write(text.replace('job "job" {', 'job "job" {\n name = "other"'))
    node.cli('job', 'run', '-detach', path)
    assert set(before) < set(processes(node))
    os.kill(before[0][0], signal.SIGKILL)  # what it is called is in the environment of the next
    wait_for('another one', lambda: before[0] not in processes(node) and len(processes(node)) == 4)
    assert set(processes(node)) > set(before[1:])
    assert sum(name_of(pid) == 'other' for pid, _ in processes(node)) == 1
    node.finish()


def wherever_the_daemon_dies_one_version_is_there_whole():
    node = open_node()
    node.run_job(job_of(2, 3))
    await_both(node)
    before, granted = processes(node), 2
    node.kill()
    died = 0
    for point in range(1, 15):
        wanted = 3 + point % 2 if granted != 3 + point % 2 else 5
        node.start(crash_at=point, wait=False)
        try:
            wait_for('an answer or a death', lambda: not node.alive() or node.answers())
            node.run_job(job_of(wanted, 3))
            granted = wanted
        except (AssertionError, OSError, urllib.error.URLError, Refused):
            pass  # it died before it could answer
        died += not node.alive()
        node.kill()
        node.start()
        found = [version_of(node, name) for name in ('raw', 'own')]
        assert found[0] == found[1], found
        assert found[0][0] == found[0][1], found
        assert found[0][2] in (granted, wanted), (found, granted, wanted)
        assert node.get('/v1/job/job')['Version'] == found[0][0]
        granted = found[0][2]
        assert processes(node) == before
        node.kill()
    assert died >= 5, died
    node.start()
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it runs a node with real tasks')
        sys.exit(77)
    sys.exit(tap([
        what_runs_goes_on_and_ends_as_the_newer_version_says,
        other_counts_touch_nobody_and_a_plan_says_so,
        wherever_the_daemon_dies_one_version_is_there_whole,
    ]))
