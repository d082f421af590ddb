#!/usr/bin/env python3
"""Host volumes on a real node: tasks have what the configuration names, over crashes and a reboot,
and wait where it names nothing."""
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, Node, events, raw_exec, restart_policy, service,  # noqa: E402
                 start_ticks, tap, wait_for)

BLOCK = '''  host_volume "%s" {
    path      = "%s"
    read_only = %s
  }
'''


class Volumes:
    """Directories of the host, and a node that knows some of them."""

    def __init__(self, *names, read_only=()):
        self.dir = tempfile.mkdtemp(prefix='cairn-volumes-')
        os.chmod(self.dir, 0o755)
        self.node = Node(config='client {\n}\n')
        os.chmod(self.node.dir, 0o711)
        for name in names:
            os.makedirs(self.path(name), exist_ok=True)
            os.chmod(self.path(name), 0o777)
        self.configure(*names, read_only=read_only)

    def path(self, name, *below):
        return os.path.join(self.dir, name, *below)

    def configure(self, *names, read_only=()):
        with open(self.node.config, 'w') as out:
            out.write('client {\n%s}\n' % ''.join(
                BLOCK % (name, self.path(name), 'true' if name in read_only else 'false')
                for name in names))

    def finish(self):
        self.node.finish()
        shutil.rmtree(self.dir)


def job(script, volumes, mounts, count=1, name='job', driver='exec'):
    task = raw_exec('t', script, Driver=driver, VolumeMounts=mounts)
    made = service(task, restart=restart_policy(0))
    made['TaskGroups'][0].update(
        Count=count, Volumes={key: dict(value, Type='host') for key, value in volumes.items()},
        ReschedulePolicy=NO_RESCHEDULE)
    return dict(made, ID=name, Name=name)


def has(path, text=''):
    if not os.path.exists(path):
        return False
    with open(path) as file:
        return text in file.read()


def allocs_are(node, status, count=1, name='job'):
    wait_for('%d %s' % (count, status), lambda: count == len(
        [alloc for alloc in node.allocs(name) if alloc['ClientStatus'] == status]))


def payloads_of(node):
    return {pid: start_ticks(pid) for pid, line in node.payloads().items()
            if 'cairn-shim' not in line}


def a_task_keeps_its_volume_over_crashes_and_a_reboot():
    volumes = Volumes('data', 'certs', read_only=['certs'])
    node = volumes.node
    with open(volumes.path('certs', 'key'), 'w') as out:
        out.write('secret\n')
    node.start()
    node.run_job(job(
        'set -e; cat /local/certs/key >> /srv/data/seen; ! touch /local/certs/x 2>/dev/null; '
        'echo start >> /srv/data/starts; exec sleep 1000',
        {'d': {'Source': 'data'}, 'c': {'Source': 'certs', 'ReadOnly': True}},
        [{'Volume': 'd', 'Destination': '/srv/data'},
         {'Volume': 'c', 'Destination': '${NOMAD_TASK_DIR}/certs'}]))
    wait_for('its only process', lambda: has(volumes.path('data', 'starts'), 'start'))
    assert has(volumes.path('data', 'seen'), 'secret')
    allocs_are(node, 'running')
    before = payloads_of(node)
    node.kill()
    node.start()
    assert payloads_of(node) == before
    node.reboot('11111111-2222-3333-4444-555555555555')
    node.start()
    wait_for('the second start', lambda: has(volumes.path('data', 'starts'), 'start\nstart\n'))
    assert not has(volumes.path('certs', 'x'))
    facts = node.get('/v1/node/%s' % node.get('/v1/nodes')[0]['ID'])
    assert facts['HostVolumes']['certs'] == {'ID': '', 'Name': 'certs', 'ReadOnly': True,
                                             'Path': volumes.path('certs')}, facts['HostVolumes']
    told = node.cli('node', 'status', '-self', '-verbose').stdout
    assert 'Host Volumes' in told and volumes.path('data') in told, told
    told = node.cli('alloc', 'status', node.alloc('job', 'g')['ID'][:8]).stdout
    assert 'Host Volumes:' in told, told
    volumes.finish()


def who_asks_for_what_is_not_there_waits_for_it():
    volumes = Volumes('other')
    node = volumes.node
    os.makedirs(volumes.path('late'))
    os.chmod(volumes.path('late'), 0o777)
    node.start()
    node.run_job(job('echo here > /srv/it; exec sleep 1000', {'v': {'Source': 'late'}},
                     [{'Volume': 'v', 'Destination': '/srv'}]))
    why = 'missing compatible host volumes: there is no "late"'
    assert why in node.cli('job', 'status', 'job').stdout
    node.terminate()
    volumes.configure('other', 'late', read_only=['late'])
    node.start()
    why = 'missing compatible host volumes: "late" is read-only'
    wait_for('the other reason', lambda: why in node.cli('job', 'status', 'job').stdout)
    assert node.allocs() == []
    node.terminate()
    volumes.configure('other', 'late')
    node.start()
    wait_for('its words', lambda: has(volumes.path('late', 'it'), 'here'))
    allocs_are(node, 'running')
    # The node loses it: what runs runs on, and what starts again fails by its name.
    node.terminate()
    volumes.configure('other')
    node.start()
    allocs_are(node, 'running')
    node.call('PUT', '/v1/client/allocation/%s/restart' % node.alloc('job', 'g')['ID'], {})
    allocs_are(node, 'failed')
    state = node.alloc('job', 'g')['TaskStates']['t']
    assert 'host volume validation error: missing late' in json.dumps(state), state
    volumes.finish()


def each_alloc_has_a_volume_of_its_own():
    volumes = Volumes('own[0]', 'own[1]')
    node = volumes.node
    node.start()
    node.run_job(job('echo $NOMAD_ALLOC_INDEX > /srv/mine; exec sleep 1000',
                     {'v': {'Source': 'own', 'PerAlloc': True}},
                     [{'Volume': 'v', 'Destination': '/srv'}], count=3))
    for index in ('0', '1'):
        wait_for('alloc ' + index, lambda: has(volumes.path('own[%s]' % index, 'mine'), index))  # noqa: B023
    allocs_are(node, 'running', count=2)
    assert 'there is no "own[2]"' in node.cli('job', 'status', 'job').stdout
    volumes.finish()


def what_cannot_be_is_refused_when_it_is_asked_for():
    volumes = Volumes('data')
    node = volumes.node
    node.start()
    one = {'v': {'Source': 'data'}}
    for mounts, driver, why in (
            ([{'Volume': 'w', 'Destination': '/srv'}], 'exec', 'undefined volume'),
            ([{'Volume': 'v', 'Destination': '/alloc'}], 'exec', 'every task has'),
            ([{'Volume': 'v', 'Destination': '/srv/../..'}], 'exec', 'leads out'),
            ([{'Volume': 'v', 'Destination': '/srv'}], 'raw_exec', 'does not support host volumes')):
        try:
            node.run_job(job('true', one, mounts, driver=driver))
            raise AssertionError('accepted: %r' % mounts)
        except Exception as answer:  # noqa: B902
            assert why in str(answer), answer
    node.terminate()
    volumes.configure('data', 'nowhere')
    node.start(wait=False)
    assert node.process.wait(timeout=60) != 0
    assert 'failed to validate volume nowhere' in node.log(), node.log()
    volumes.configure('data')
    node.start()
    volumes.finish()


def what_cannot_be_mounted_fails_the_start_and_leaves_nothing():
    volumes = Volumes('data')
    node = volumes.node
    node.start()
    node.run_job(job('exec sleep 1000', {'v': {'Source': 'data'}},
                     [{'Volume': 'v', 'Destination': '/usr/no/such/place'}]))
    allocs_are(node, 'failed')
    state = node.alloc('job', 'g')['TaskStates']['t']
    assert 'Driver Failure' in events(state), state
    assert 'could not mount /usr/no/such/place' in json.dumps(state), state
    assert not os.path.exists('/usr/no')
    assert node.payloads() == {}
    volumes.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it mounts')
        sys.exit(77)
    sys.exit(tap([
        a_task_keeps_its_volume_over_crashes_and_a_reboot,
        who_asks_for_what_is_not_there_waits_for_it,
        each_alloc_has_a_volume_of_its_own,
        what_cannot_be_is_refused_when_it_is_asked_for,
        what_cannot_be_mounted_fails_the_start_and_leaves_nothing,
    ]))
