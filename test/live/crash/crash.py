#!/usr/bin/env python3
"""Kills the daemon at every crash point of a scenario and audits what comes of it.

Crash points are before and after each journal commit and before each effect (agent/crash.h).  The
scenario "plain": a service group whose one task is restarted by policy, a batch group that
finishes, a job that is dispatched with a payload, by whoever asks until he is answered, a periodic
one that is launched by hand, a command that is run in a task, a user's restart, a stop, a purge.  "group": one of the driver exec with a prestart task,
a sidecar, a leader and a poststop task, a volume of the node and a sticky disk, whose sidecar has
an artifact and three templates that change, one to be told by a signal, one by a script and one by
another start, in whose leader a command is run, beside which a job is dispatched with a payload, and which is updated,
stopped and purged.  "volumes": a storage plugin that runs as a task and two jobs that share a volume
of it, of which one stops, then the plugin is killed, then the other stops; with --both the plugin
dies whenever the daemon does, with --plugin in its place, while it is stopped.  Where there are CNI plugins, the groups of services have networks of their own
with a mapped port.  For each point n the whole scenario runs on a node of its own; when
the daemon dies it is started again and the scenario goes on.  Audited each time: at most one
payload of a task at a time, no more starts than attempts, true exit codes, no volume let go under
a user and none missing where a payload starts, nothing left behind.

usage: test/live/crash/crash.py [--all | --every K] [--group | --volumes [--both | --plugin]] [--workers N] [POINT...]
"""
import argparse
import base64
import concurrent.futures
import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, Node, Refused, exit_codes, has_bridges, milliseconds,  # noqa: E402
                 raw_exec, remove_bridge, restart_policy, wait_for)
from storage import PLUGIN  # noqa: E402

# Every payload says that it started, and holds a lock while it lives: a second one says DOUBLE.
STARTED = ('exec 9>>{dir}/$NOMAD_ALLOC_ID.$NOMAD_TASK_NAME.lock; '
           'flock -n 9 || echo "DOUBLE $NOMAD_ALLOC_ID $NOMAD_TASK_NAME" >> {dir}/doubles; '
           'echo "$NOMAD_ALLOC_ID $NOMAD_TASK_NAME" >> {dir}/starts; ')

MEMORY, MEMORY_BYTES = '/dev/shm', 1 << 30
BRIDGE = 'crash%d' % (os.getpid() % 100000)
SUBNET = '10.214.%d.0/24' % (os.getpid() % 250)
CONFIG = '''client {
  bridge_network_name   = "%s"
  bridge_network_subnet = "%s"
  min_dynamic_port      = 29000
  max_dynamic_port      = 31999
  options {
    "driver.denylist" = "java" # which is asked for its version at each start, for long
  }
}
''' % (BRIDGE, SUBNET)


def networks():
    return [{'Mode': 'bridge' if has_bridges() else 'host',
             'DynamicPorts': [{'Label': 'www', 'To': 80}]}]


def scenario_job(directory):
    started = STARTED.format(dir=directory)
    flaky = started + ('n=$(grep -c "$NOMAD_ALLOC_ID flaky" {dir}/starts); '
                       '[ "$n" -ge 2 ] || exit 7; exec sleep 1000').format(dir=directory)
    return {
        'ID': 'crash', 'Name': 'crash', 'Type': 'service', 'Datacenters': ['dc1'],
        'TaskGroups': [
            {'Name': 'web', 'Count': 1, 'RestartPolicy': restart_policy(5, 20),
             'Networks': networks(),
             'Tasks': [raw_exec('steady', started + 'exec sleep 1000',
                                KillTimeout=milliseconds(2000)),
                       raw_exec('flaky', flaky, KillTimeout=milliseconds(2000))]},
        ],
    }


def batch_job(directory):
    return {
        'ID': 'batch', 'Name': 'batch', 'Type': 'batch', 'Datacenters': ['dc1'],
        'TaskGroups': [{'Name': 'once', 'Count': 1, 'RestartPolicy': restart_policy(0),
                        'ReschedulePolicy': NO_RESCHEDULE,
                        'Tasks': [raw_exec('work', STARTED.format(dir=directory)
                                           + 'sleep 0.05; exit 3')]}],
    }


def parameterized_job(directory):
    script = ('grep -qx asked local/in/data || exit 8; [ "$NOMAD_META_who" = me ] || exit 9; '
              'rm local/in/data; exit 5')
    return {
        'ID': 'asked', 'Name': 'asked', 'Type': 'batch', 'Datacenters': ['dc1'],
        'ParameterizedJob': {'Payload': 'required', 'MetaRequired': ['who']},
        'TaskGroups': [{'Name': 'once', 'Count': 1, 'RestartPolicy': restart_policy(0),
                        'ReschedulePolicy': NO_RESCHEDULE,
                        'Tasks': [raw_exec('work', STARTED.format(dir=directory) + script,
                                           DispatchPayload={'File': 'in/data'})]}],
    }


def periodic_job(directory):
    job = batch_job(directory)
    job.update(ID='timed', Name='timed', Periodic={'Spec': '0 0 1 1 * 2099', 'ProhibitOverlap': True})
    return job


class Run:
    """One scenario on one node, the daemon dying at point N."""
    silent = ()  # tasks that leave no trail
    entrance = 'steady'  # the task in which a command is run

    def __init__(self, point):
        self.point = point
        self.node = Node(config=CONFIG)
        self.trail = self.node.dir  # where payloads say that they started
        self.died = 0
        self.mark = None
        self.session = None  # the command line that runs something in a task

    def step(self, what, action, limit_s=30):
        """Does ACTION until it is true, starting the daemon again when it has died."""
        def attempt():
            if not self.node.alive():
                self.died += 1
                self.node.start(wait=False)
            try:
                return action()
            except (OSError, Refused):
                return False
        return wait_for(what, attempt, limit_s, pause_s=0.03)  # a third of the work is to ask

    def tasks(self):
        """What became of each task, for the report of a failure."""
        try:
            return '\n'.join('%s/%s %s: %s' % (
                alloc['ID'][:8], name, state['State'],
                ', '.join('%s (%s)' % (event['Type'], event['DisplayMessage'])
                          for event in state['Events']))
                for alloc in self.node.allocs() for name, state in alloc['TaskStates'].items())
        except (OSError, Refused) as error:
            return 'the daemon does not answer: %s' % error

    def running(self, task):
        state = self.node.task('crash', 'web', task)
        return state is not None and state['State'] == 'running' and state

    def submitted(self, job):
        """Submits once: if the answer was lost, looks whether the job is known."""
        if any(known['ID'] == job['ID'] for known in self.node.get('/v1/jobs')):
            return True
        self.node.run_job(job)
        return True

    def pids(self):
        return sorted(pid for pid, line in self.node.payloads().items() if 'sleep 1000' in line)

    def dispatched(self):
        """Asks until there is an answer, by the same token: then there is one job."""
        made = self.node.put('/v1/job/asked/dispatch?idempotency_token=once',
                             {'Payload': base64.b64encode(b'asked\n').decode(),
                              'Meta': {'who': 'me'}})
        children = [job['ID'] for job in self.node.get('/v1/jobs') if job['ParentID'] == 'asked']
        assert children == [made['DispatchedJobID']], (children, made)
        return children[0]

    def launched(self):
        """Launched by hand, once: who was not answered looks whether it was."""
        children = [job['ID'] for job in self.node.get('/v1/jobs') if job['ParentID'] == 'timed']
        if not children:
            self.node.put('/v1/job/timed/periodic/force', {})
        assert len(children) < 2, children
        return children and children[0]

    def ended_once(self, job):
        state = self.node.task(job, 'once', 'work')
        return state is not None and state['State'] == 'dead' and state

    def entered(self):
        """A command runs in a task; it ends with the daemon, and is begun again."""
        if self.session is None or self.session.poll() is not None:
            self.session = subprocess.Popen(
                [os.path.join(self.node.build, 'cairn'), 'alloc', 'exec', '-task', self.entrance,
                 self.node.alloc('crash', 'web')['ID'], 'sleep', '998'],
                env=dict(os.environ, NOMAD_ADDR='http://127.0.0.1:%d' % self.node.port),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self.inside()

    def inside(self):
        return [pid for pid, line in self.node.payloads().items() if 'sleep 998' in line]

    def restarted(self):
        state = self.node.task('crash', 'web', 'steady')
        if state and 'Restart Signaled' in [event['Type'] for event in state['Events']]:
            return state['State'] == 'running' and state['Restarts'] >= 1
        self.node.put('/v1/client/allocation/%s/restart' % self.node.alloc('crash', 'web')['ID'],
                      {'TaskName': 'steady'})
        return False

    def ended(self):
        states = [alloc['ClientStatus'] for alloc in self.node.allocs('crash')]
        return states and all(state in ('complete', 'failed') for state in states)

    def stopped(self):
        job = self.node.get('/v1/job/crash')
        if not job['Stop']:
            self.node.call('DELETE', '/v1/job/crash')
        return self.ended()

    def purged(self):
        for job in self.node.get('/v1/jobs'):
            self.node.call('DELETE', '/v1/job/%s?purge=true' % job['ID'])
        return not self.node.get('/v1/allocations')

    def scenario(self):
        node = self.node
        node.start(crash_at=self.point, wait=False)
        self.step('the daemon', lambda: node.get('/v1/agent/self'))
        self.mark = node.node_mark() if node.alive() else self.step('the mark', node.node_mark)
        self.step('the jobs', lambda: self.submitted(scenario_job(node.dir)))
        self.step('the batch job', lambda: self.submitted(batch_job(node.dir)))
        self.step('steady to run', lambda: self.running('steady'))
        flaky = self.step('flaky to run again', lambda: (self.running('flaky') or {}).get(
            'Restarts') and self.running('flaky'))
        assert exit_codes(flaky) == [7], 'flaky ended with %r' % exit_codes(flaky)
        batch = self.step('the batch task to end', lambda: self.ended_once('batch'))
        assert exit_codes(batch) == [3], 'the batch task ended with %r' % exit_codes(batch)
        assert batch['Failed'], 'exit code 3 is a failure'
        self.step('the parameterized job', lambda: self.submitted(parameterized_job(node.dir)))
        child = self.step('the dispatch', self.dispatched)
        asked = self.step('what was dispatched to end', lambda: self.ended_once(child))
        assert exit_codes(asked) == [5], 'what was dispatched ended with %r' % exit_codes(asked)
        self.step('the periodic job', lambda: self.submitted(periodic_job(node.dir)))
        child = self.step('the launch', self.launched)
        timed = self.step('what was launched to end', lambda: self.ended_once(child))
        assert exit_codes(timed) == [3], 'what was launched ended with %r' % exit_codes(timed)
        self.step('a command in steady', self.entered)
        self.step('the restart', self.restarted)
        self.step('the end of the command', lambda: not self.inside())
        self.session.wait(10)
        self.step('the stop', self.stopped)
        self.check_starts()
        self.step('the purge', self.purged)
        node.audit(self.mark)

    def starts(self):
        with open(os.path.join(self.trail, 'starts')) as starts:
            return starts.read().split('\n')[:-1]

    def check_starts(self):
        doubles = os.path.join(self.trail, 'doubles')
        assert not os.path.exists(doubles), open(doubles).read()
        # A task starts once, and once more for each restart that its record tells of.  What is told
        # after the trail was read tells of all in it; a trail of what is told may be a little later.
        lines = self.starts()
        for alloc in self.step('what became of them', self.node.allocs):
            for name, state in alloc['TaskStates'].items():
                if name in self.silent:
                    continue
                line = '%s %s' % (alloc['ID'], name)
                count, allowed = lines.count(line), 1 + state['Restarts']
                assert count <= allowed, '%s started %d times in %d attempts' % (name, count,
                                                                                allowed)
                if state['State'] != 'pending':
                    wait_for('%s to have started' % name, lambda line=line: line in self.starts())


VOLUME = '/srv/trail'  # where tasks have the volume of the node in which they leave their trail


def exec_task(name, script, **fields):
    task = raw_exec(name, STARTED.format(dir=VOLUME) + script, **fields)
    task.update(Driver='exec', VolumeMounts=[{'Volume': 'trail', 'Destination': VOLUME}],
                KillTimeout=milliseconds(100))  # the first process of a namespace ignores signals
    return task


# The sidecar counts the signals that it gets.
COUNTING = "trap 'echo told >> %s/told' USR1; : > local/ready; while :; do sleep 1000 & wait; done" % VOLUME


def changing(directory):
    """A directory of files, and a template that reads each.  The script takes its time, once, so that
    the daemon may die with it."""
    script = {'Command': '/bin/sh', 'Args': ['-c', 'echo ran >> %s/acted; [ -e local/acting ] || '
                                             '{ : > local/acting; sleep 0.2; }; '
                                             ': > local/acted' % VOLUME]}
    return {
        'Artifacts': [{'GetterSource': 'file://%s/given.tar' % directory, 'RelativeDest': 'local/given'}],
        'Templates': [{'EmbeddedTmpl': '{{ file "local/given/%s" }}' % name, 'DestPath': 'local/' + name,
                       'ChangeMode': mode, 'ChangeSignal': signal, 'Splay': 0, 'ChangeScript': script}
                      for name, mode, signal in (('word', 'signal', 'SIGUSR1'), ('act', 'script', ''),
                                                 ('again', 'restart', ''))],
    }


def group_job(version, directory):
    say = 'echo %s-{0} >> $NOMAD_ALLOC_DIR/data/said; '.format(version)
    note = 'echo $NOMAD_ALLOC_ID >> %s/%%s; ' % VOLUME
    return {
        'ID': 'crash', 'Name': 'crash', 'Type': 'service', 'Datacenters': ['dc1'],
        'TaskGroups': [{
            'Name': 'web', 'Count': 1, 'RestartPolicy': restart_policy(0),
            'EphemeralDisk': {'SizeMB': 300, 'Sticky': True},
            'Volumes': {'trail': {'Name': 'trail', 'Type': 'host', 'Source': 'trail'}},
            'Networks': networks(),
            'Tasks': [
                exec_task('init', say % 'init', Lifecycle={'Hook': 'prestart'}),
                exec_task('side', COUNTING, Lifecycle={'Hook': 'prestart', 'Sidecar': True},
                          **changing(directory)),
                exec_task('main', 'echo $NOMAD_PORT_www > %s/port; ' % VOLUME + say % 'main'
                          + 'exec sleep 1000', Leader=True),
                exec_task('last', note % 'last', Lifecycle={'Hook': 'poststop'}),
            ]}],
    }


class GroupRun(Run):
    """A group with everything: its prestart and poststop tasks run once for each alloc, and what the
    first alloc wrote to its disk is there for the second."""
    entrance = 'main'

    def __init__(self, point):
        super().__init__(point)
        self.trail = os.path.join(self.node.dir, 'trail')
        os.mkdir(self.trail)
        os.chmod(self.trail, 0o777)
        os.chmod(self.node.dir, 0o711)
        with open(self.node.config, 'a') as out:
            out.write('client {\n  host_volume "trail" {\n    path = "%s"\n  }\n}\n' % self.trail)
        with tarfile.open(os.path.join(self.node.dir, 'given.tar'), 'w') as archive:
            for name in ('word', 'act', 'again'):
                entry = tarfile.TarInfo(name)
                entry.size = 3
                archive.addfile(entry, io.BytesIO(b'one'))
        os.chmod(os.path.join(self.node.dir, 'given.tar'), 0o644)

    def lines(self, path):
        try:
            with open(os.path.join(self.node.dir, path)) as file:
                return file.read().split()
        except FileNotFoundError:
            return []

    def version_runs(self, version):
        """The alloc of that version, once its main task and its sidecar run."""
        for alloc in self.node.allocs('crash'):
            states = alloc['TaskStates'] or {}
            if (alloc['JobVersion'] == version and alloc['DesiredStatus'] == 'run'
                    and all(states.get(task, {}).get('State') == 'running'
                            for task in ('side', 'main'))):
                return alloc['ID']
        return False

    def updated(self):
        if self.node.get('/v1/job/crash')['Version'] == 0:
            self.node.run_job(group_job(1, self.node.dir))
        return self.version_runs(1)

    def side(self, alloc, *names):
        return os.path.join(self.node.data, 'alloc', alloc, 'side', 'local', *names)

    def change(self, alloc, name):
        """What a template reads, replaced; the daemon may be there or not."""
        path = self.side(alloc, 'given', name)
        with open(path + '.new', 'w') as out:
            out.write('two')
        os.rename(path + '.new', path)

    def side_started(self, times):
        state = self.node.task('crash', 'web', 'side') or {}
        return state.get('State') == 'running' and state['Restarts'] == times - 1

    def changes_are_told(self, alloc):
        """Once each, whenever the daemon dies; a script as often as it dies with it, too."""
        wait_for('its trap', lambda: os.path.exists(self.side(alloc, 'ready')))
        os.unlink(self.side(alloc, 'ready'))
        self.change(alloc, 'word')
        self.step('the signal', lambda: self.node.get('/v1/jobs') and self.lines('trail/told'))
        self.change(alloc, 'act')
        self.step('the script', lambda: self.node.get('/v1/jobs')
                  and os.path.exists(self.side(alloc, 'acted')))
        # Once for each life of the daemon that it might have ended with, and never for nothing.
        assert 1 <= len(self.lines('trail/acted')) <= 1 + self.died, self.lines('trail/acted')
        self.change(alloc, 'again')
        self.step('another start', lambda: self.side_started(2))
        wait_for('its trap', lambda: os.path.exists(self.side(alloc, 'ready')))
        assert [self.lines(self.side(alloc, name)) for name in ('word', 'act', 'again')] == [['two']] * 3

    def said(self, alloc):
        return self.lines('data/alloc/%s/alloc/data/said' % alloc)

    def scenario(self):
        node = self.node
        node.start(crash_at=self.point, wait=False)
        self.step('the daemon', lambda: node.get('/v1/agent/self'))
        self.mark = node.node_mark() if node.alive() else self.step('the mark', node.node_mark)
        self.step('the job', lambda: self.submitted(group_job(0, node.dir)))
        first = self.step('the group to run', lambda: self.version_runs(0))
        wait_for('its words', lambda: self.said(first) == ['init-0', 'main-0'])
        assert self.lines('trail/port') == ['80'], self.lines('trail/port')
        self.changes_are_told(first)
        self.step('the parameterized job', lambda: self.submitted(parameterized_job(self.trail)))
        child = self.step('the dispatch', self.dispatched)
        asked = self.step('what was dispatched to end', lambda: self.ended_once(child))
        assert exit_codes(asked) == [5], 'what was dispatched ended with %r' % exit_codes(asked)
        self.step('a command in main', self.entered)
        second = self.step('the update', self.updated)
        self.step('the end of the command', lambda: not self.inside())
        self.session.wait(10)
        wait_for('its words', lambda: self.said(second) == [
            'init-0', 'main-0', 'init-1', 'main-1'])
        assert self.lines('trail/last') == [first], (self.lines('trail/last'), first)
        self.step('the stop', self.stopped)
        assert self.lines('trail/last') == [first, second], self.lines('trail/last')
        self.check_starts()
        assert self.lines('trail/told') == ['told'], self.lines('trail/told')
        self.step('the purge', self.purged)
        node.audit(self.mark)


SHARED = {'AccessMode': 'multi-node-multi-writer', 'AttachmentMode': 'file-system'}


def plugin_job(directory):
    return {
        'ID': 'plugin', 'Name': 'plugin', 'Type': 'service', 'Datacenters': ['dc1'],
        'TaskGroups': [{
            'Name': 'p', 'Count': 1, 'RestartPolicy': restart_policy(1000, 10),
            'Tasks': [{
                'Name': 'plugin', 'Driver': 'raw_exec',
                'Config': {'command': '/usr/bin/python3',
                           'args': [os.path.abspath(PLUGIN), '-', directory]},
                'CSIPluginConfig': {'ID': 'test', 'Type': 'node'},
                'Resources': {'CPU': 50, 'MemoryMB': 200}}]}],
    }


def volume_job(name):
    task = raw_exec('t', STARTED.format(dir='/srv/disk') + 'exec sleep 1000', Driver='exec',
                    VolumeMounts=[{'Volume': 'v', 'Destination': '/srv/disk'}],
                    KillTimeout=milliseconds(100))
    return {
        'ID': name, 'Name': name, 'Type': 'service', 'Datacenters': ['dc1'],
        'TaskGroups': [{'Name': 'g', 'Count': 1, 'RestartPolicy': restart_policy(0),
                        'Volumes': {'v': dict(SHARED, Type='csi', Source='disk')},
                        'Tasks': [task]}],
    }


class VolumesRun(Run):
    """Two users of a volume that a plugin, a task of the same node, stages and publishes."""
    silent = ('plugin',)
    kills_plugin = False

    def __init__(self, point):
        super().__init__(point)
        self.storage = os.path.join(self.node.dir, 'storage')
        self.trail = os.path.join(self.storage, 'disk')
        os.makedirs(self.trail)
        os.chmod(self.trail, 0o777)
        os.chmod(self.node.dir, 0o711)
        with open(os.path.join(self.storage, 'answers.json'), 'w') as out:
            out.write('{"GetPluginCapabilities": {}}')

    def step(self, what, action, limit_s=60):
        if self.kills_plugin and not self.node.alive() and self.node.process is not None:
            self.kill_plugin()
        return super().step(what, action, limit_s)

    def plugin(self):
        return next((pid for pid, line in self.node.payloads().items()
                     if line.endswith('plugin.py - ' + self.storage)
                     and line.startswith('/usr/bin/python3')), None)

    def kill_plugin(self):
        pid = self.plugin()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):  # it was about to end by itself
                os.kill(pid, 9)

    def registered(self):
        self.node.put('/v1/volume/csi/disk', {'Volumes': [{
            'ID': 'disk', 'Name': 'disk', 'ExternalID': 'disk', 'PluginID': 'test',
            'RequestedCapabilities': [SHARED]}]})
        return True

    def is_up(self, name):
        """It runs, and has said so on the volume."""
        alloc, state = self.node.alloc(name, 'g'), self.node.task(name, 'g', 't')
        starts = os.path.join(self.trail, 'starts')
        if alloc is None or state is None or not os.path.exists(starts):
            return False
        with open(starts) as lines:
            return state['State'] == 'running' and alloc['ID'] in lines.read()

    def stopped_one(self, name):
        if not self.node.get('/v1/job/' + name)['Stop']:
            self.node.call('DELETE', '/v1/job/' + name)
        states = [alloc['ClientStatus'] for alloc in self.node.allocs(name)]
        return states and all(state in ('complete', 'failed') for state in states)

    def purged(self):
        """The plugin goes last: who uses it could not let go of what it has without it."""
        jobs = {job['ID'] for job in self.node.get('/v1/jobs')}
        used = [alloc for alloc in self.node.allocs() if alloc['JobID'] != 'plugin']
        for job in jobs - {'plugin'} or (set() if used else jobs):
            self.node.call('DELETE', '/v1/job/%s?purge=true' % job)
        return not self.node.get('/v1/allocations')

    def left(self):
        """What is mounted of volumes, and what is left of where they were."""
        root = os.path.join(self.node.data, 'client', 'csi', 'node', 'test')
        stay = [os.path.join(root, name) for name in ('per-alloc', 'staging', 'staging/default')]
        return [path for path in self.node.mounts() if path.startswith(root)] + [
            os.path.join(where, name) for where, folders, _ in os.walk(root) for name in folders
            if os.path.join(where, name) not in stay]

    def unclaimed(self):
        [volume] = self.node.get('/v1/volumes?type=csi')
        return volume['CurrentReaders'] + volume['CurrentWriters'] == 0

    def check_calls(self):
        """No volume is unstaged while it is published."""
        published = set()
        with open(os.path.join(self.storage, 'calls')) as calls:
            for line in calls.read().splitlines():
                words = line.split(' ')
                if words[1] == 'NodePublishVolume' and words[0] == '<' and words[-1] == 'OK':
                    published.add(words[4])
                elif words[1] == 'NodeUnpublishVolume' and words[0] == '<' and words[-1] == 'OK':
                    published.discard(words[3])
                elif words[1] == 'NodeUnstageVolume' and words[0] == '>':
                    assert not published, 'unstaged under %r' % published

    def begin(self):
        self.node.start(crash_at=self.point, wait=False)

    def scenario(self):
        node = self.node
        self.begin()
        self.step('the daemon', lambda: node.get('/v1/agent/self'))
        self.mark = node.node_mark() if node.alive() else self.step('the mark', node.node_mark)
        self.step('the plugin', lambda: self.submitted(plugin_job(self.storage)))
        self.step('the volume', self.registered)
        for name in ('one', 'two'):
            self.step('the job', lambda name=name: self.submitted(volume_job(name)))
        for name in ('one', 'two'):
            self.step(name + ' to run', lambda name=name: self.is_up(name))
        self.step('one to stop', lambda: self.stopped_one('one'))
        self.step('two to go on', lambda: self.is_up('two'))
        self.kill_plugin()
        self.step('two to stop', lambda: self.stopped_one('two'))
        self.check_starts()
        self.step('nothing to be mounted', lambda: not self.left())
        self.check_calls()
        self.step('no claim to be left', self.unclaimed)
        self.step('the purge', self.purged)
        node.audit(self.mark)


class BothRun(VolumesRun):
    kills_plugin = True


class PluginRun(VolumesRun):
    """The daemon waits at that point until the plugin is dead, and lives."""

    def begin(self):
        self.node.start(stop_at=self.point, wait=False)
        threading.Thread(target=self.await_stop, daemon=True).start()

    def await_stop(self):
        pid = self.node.process.pid
        while state_of(pid) not in (None, 'T'):
            time.sleep(0.005)
        if state_of(pid) == 'T':
            self.kill_plugin()
            os.kill(pid, signal.SIGCONT)
            self.died = 1


def state_of(pid):
    """The letter of its state; None: it is gone."""
    try:
        with open('/proc/%d/stat' % pid) as stat:
            return stat.read().rpartition(')')[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def run_point(point, kind):
    run = kind(point)
    try:
        run.scenario()
        return point, run.died, None
    except Exception as error:  # whatever it was: told with its point, and the next one runs
        return point, run.died, '%s: %s\n%s\n%s' % (type(error).__name__, error, run.tasks(),
                                                    run.node.log())
    finally:
        run.node.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--all', action='store_true', help='every point')
    parser.add_argument('--every', type=int, default=1, help='only each K-th point')
    parser.add_argument('--group', action='store_true', help='the scenario of one with everything')
    parser.add_argument('--volumes', action='store_true', help='the one of a storage plugin')
    parser.add_argument('--both', action='store_true', help='which dies with the daemon')
    parser.add_argument('--plugin', action='store_true', help='which dies alone')
    parser.add_argument('--workers', type=int, default=4)
    parser.add_argument('points', nargs='*', type=int)
    options = parser.parse_args()
    points = options.points or range(1, 100000, options.every)
    # Who is killed keeps what it wrote, synced or not: no disk has to be waited for.
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MEMORY_BYTES:
        tempfile.tempdir = MEMORY
    kind = (GroupRun if options.group else BothRun if options.both else PluginRun if options.plugin
            else VolumesRun if options.volumes else Run)
    failed, done, beyond, start = [], 0, 0, time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(options.workers) as pool:
        waiting, source = set(), iter(points)
        while True:
            while len(waiting) < options.workers and beyond < options.workers:
                point = next(source, None)
                if point is None:
                    break
                waiting.add(pool.submit(run_point, point, kind))
            if not waiting:
                break
            ready, waiting = concurrent.futures.wait(
                waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in ready:
                point, died, error = future.result()
                done += died > 0
                beyond += died == 0 and error is None  # the scenario has fewer points than this
                if error:
                    failed.append(point)
                    print('not ok %d - crash point %d\n# %s' % (
                        point, point, error.replace('\n', '\n# ')), flush=True)
                elif died:
                    print('ok %d - crash point %d' % (point, point), flush=True)
    if has_bridges():
        remove_bridge(BRIDGE, SUBNET)
    print('# %d crash points in %.0f s, %d failed %s' % (
        done, time.monotonic() - start, len(failed), failed or ''))
    sys.exit(1 if failed or not done else 0)


if __name__ == '__main__':
    main()
