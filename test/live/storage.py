"""A node with a storage plugin that runs on it as a task, mounts for real what it is asked to, and is
told by files what to do wrong (test/csi/plugin.py)."""
import contextlib
import json
import os
import shutil
import subprocess
import tempfile

from lib import (NO_RESCHEDULE, Node, Refused, milliseconds, raw_exec, restart_policy, service,
                 start_ticks, wait_for)

PLUGIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'csi', 'plugin.py')
NODE_ONLY = {'GetPluginCapabilities': {}, 'NodeGetInfo': {'node_id': 'here'}}


class Storage:
    """A node, and a storage plugin that runs on it."""

    def __init__(self, *disks, config=''):
        self.dir = tempfile.mkdtemp(prefix='cairn-storage-')
        os.chmod(self.dir, 0o755)
        self.node = Node(config='plugin "raw_exec" {\n  config {\n    enabled = true\n  }\n}\n'
                         + config.replace('DIRECTORY', self.dir))
        os.chmod(self.node.dir, 0o711)
        for disk in disks:
            os.makedirs(self.path(disk))
            os.chmod(self.path(disk), 0o777)
        with open(self.path('answers.json'), 'w') as out:
            json.dump(NODE_ONLY, out)
        self.node.start()

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def read(self, *names):
        try:
            with open(self.path(*names)) as file:
                return file.read()
        except FileNotFoundError:
            return ''

    def read_bytes(self, name, count):
        with open(self.path(name), 'rb') as file:
            return file.read(count)

    def run_plugin(self):
        task = raw_exec('plugin', '', Config={'command': '/usr/bin/python3',
                                              'args': [os.path.abspath(PLUGIN), '-', self.dir]},
                        CSIPluginConfig={'ID': 'test', 'Type': 'node'})
        task['Resources']['MemoryMB'] = 200
        self.node.run_job(dict(service(task), ID='plugin', Name='plugin'))
        wait_for('the plugin', lambda: self.plugin_pid())

    @contextlib.contextmanager
    def plugin_of_somebody_else(self):
        with subprocess.Popen(['/usr/bin/python3', PLUGIN, self.path('csi.sock'), self.dir],
                              stdout=subprocess.DEVNULL) as process:
            try:
                yield
            finally:
                process.kill()

    def plugin_pid(self):
        return next((pid for pid, line in self.node.payloads().items()
                     if line.startswith('/usr/bin/python3') and line.endswith('- ' + self.dir)),
                    None)

    def kill_plugin(self):
        before = self.plugin_pid()
        os.kill(before, 9)
        return before

    def register(self, disk, access='single-node-writer', attachment='file-system', **fields):
        volume = {'ID': disk, 'Name': disk, 'ExternalID': disk, 'PluginID': 'test',
                  'RequestedCapabilities': [{'AccessMode': access, 'AttachmentMode': attachment}]}
        volume.update(fields)

        def try_it():
            try:
                self.node.put('/v1/volume/csi/' + disk, {'Volumes': [volume]})
            except Refused as answer:  # it runs, but has not said yet who it is
                assert 'no CSI plugin named: test' in str(answer), answer
                return False
            return True

        wait_for('the registration of ' + disk, try_it)

    def next(self, method, *commands):
        with open(self.path('next.' + method), 'w') as out:
            out.write(''.join(command + '\n' for command in commands))

    def calls(self, *methods):
        """What the plugin was asked, and how that ended: "NodeStageVolume disk OK"."""
        found = []
        for line in self.read('calls').splitlines():
            words = line.split(' ')
            if words[0] == '<' and words[1].startswith(methods or 'Node') \
                    and words[1] not in ('NodeGetInfo', 'NodeGetCapabilities'):
                found.append(' '.join([words[1], words[2], words[-1]]))
        return found

    def directories(self):
        """What is below the plugin's root, but for what stays."""
        root = os.path.join(self.node.data, 'client', 'csi', 'node', 'test')
        return sorted(os.path.relpath(os.path.join(where, name), root)
                      for where, folders, files in os.walk(root) for name in folders + files
                      if os.path.relpath(os.path.join(where, name), root)
                      not in ('staging', 'per-alloc', 'staging/default'))

    def finish(self):
        # What a call that was given up may still do in the plugin is waited out for 45 s, before
        # it is undone and before the claim is given back.
        wait_for('nothing below the root of the plugin', lambda: not self.directories(),
                 limit_s=90)
        volumes = self.node.get('/v1/volumes?type=csi')
        wait_for('no claim to be left', lambda: not [
            volume for volume in self.node.get('/v1/volumes?type=csi')
            if volume['CurrentReaders'] + volume['CurrentWriters'] > 0], limit_s=90)
        for volume in volumes:
            self.node.call('DELETE', '/v1/volume/csi/' + volume['ID'])
        self.node.finish()
        shutil.rmtree(self.dir)


def with_a_disk():
    """One whose plugin runs and has the volume "disk", and its node."""
    storage = Storage('disk')
    storage.run_plugin()
    storage.register('disk')
    return storage, storage.node


def job(script, *disks, access='single-node-writer', name='job', count=1, read_only=False,
        attachment='file-system', destination='/srv/%s', **fields):
    task = raw_exec('t', script, Driver='exec', KillTimeout=milliseconds(5000), VolumeMounts=[
        {'Volume': disk, 'Destination': destination % disk} for disk in disks], **fields)
    made = service(task, restart=restart_policy(0), ReschedulePolicy=NO_RESCHEDULE, Count=count)
    made['TaskGroups'][0]['Volumes'] = {
        disk: {'Type': 'csi', 'Source': disk, 'AccessMode': access, 'ReadOnly': read_only,
               'AttachmentMode': attachment} for disk in disks}
    return dict(made, ID=name, Name=name)


def stop(node, name='job'):
    node.call('DELETE', '/v1/job/%s' % name)


def statuses(node, name='job'):
    return [alloc['ClientStatus'] for alloc in node.allocs(name)]


def await_statuses(node, *wanted, name='job'):
    wait_for('%s to be %r' % (name, wanted), lambda: sorted(statuses(node, name)) == sorted(wanted),
             limit_s=30)


def sleeper_pids(node):
    return {pid: start_ticks(pid) for pid, line in node.payloads().items()
            if line == 'sleep 1000'}


def await_sleepers(node, count=1):
    """Those processes, once their shells have become them."""
    return wait_for('%d payloads' % count,
                    lambda: len(sleeper_pids(node)) == count and sleeper_pids(node))


def node_events(node):
    own = node.get('/v1/node/' + node.get('/v1/nodes')[0]['ID'])
    return [(event['Message'], event['Details']['volume_id'], event['Details']['success'])
            for event in own['Events'] if event['Subsystem'] == 'Storage']


def waits_because(node, name, words):
    """What a user reads of an alloc that cannot start yet."""
    wait_for(words, lambda: any(words in alloc['ClientDescription'] for alloc in node.allocs(name)))
    assert words in node.cli('alloc', 'status', node.alloc(name, 'g')['ID']).stdout


def let_go(storage, name):
    stop(storage.node, name)
    wait_for('the end of ' + name, lambda: set(statuses(storage.node, name)) <= {'complete', 'failed'})
    assert not sleeper_pids(storage.node)
    wait_for('no claim', lambda: storage.node.get('/v1/volumes?type=csi')[0]['CurrentWriters'] == 0,
             limit_s=90)
    wait_for('nothing below the root', lambda: not storage.directories())
