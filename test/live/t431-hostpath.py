#!/usr/bin/env python3
"""The Kubernetes hostpath driver, unmodified, as a task: volumes are created, shared, used as devices
and deleted, and outlive daemon and driver.  CAIRN_HOSTPATH names its program."""
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import (Node, Refused, milliseconds, raw_exec, restart_policy, service,  # noqa: E402
                 tap, wait_for)

DRIVER = os.environ.get('CAIRN_HOSTPATH', '')
SHARED = {'AccessMode': 'multi-node-multi-writer', 'AttachmentMode': 'file-system'}
NO_DRIVER = 'CAIRN_HOSTPATH names no hostpath driver'
DEVICE = {'AccessMode': 'single-node-writer', 'AttachmentMode': 'block-device'}


class Hostpath:
    """A node with the driver on it."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix='cairn-hostpath-')
        os.chmod(self.dir, 0o711)
        self.node = Node()
        os.chmod(self.node.dir, 0o711)
        self.node.start()
        task = raw_exec('plugin', '', CSIPluginConfig={'ID': 'hostpath', 'Type': 'monolith'},
                        Config={'command': DRIVER, 'args': [
                            '-endpoint', '${CSI_ENDPOINT}', '-nodeid', 'here', '-drivername',
                            'hostpath.csi.k8s.io', '-statedir', self.dir]})
        task['Resources']['MemoryMB'] = 200
        self.node.run_job(dict(service(task, restart=restart_policy(100, 10)), ID='plugin',
                               Name='plugin'))

    def pid(self):
        return next((pid for pid, line in self.node.payloads().items()
                     if line.startswith(DRIVER)), None)

    def create(self, name, terms):
        def try_it():
            try:
                self.node.put('/v1/volume/csi/%s/create' % name, {'Volumes': [{
                    'ID': name, 'Name': name, 'PluginID': 'hostpath',
                    'RequestedCapacityMin': 1 << 20, 'RequestedCapabilities': [terms]}]})
            except Refused as answer:  # it runs, but has not said yet who it is
                assert 'plugin' in str(answer), answer
                return False
            return True

        wait_for('the volume ' + name, try_it)

    def delete(self, name):
        def try_it():
            try:
                self.node.call('DELETE', '/v1/volume/csi/%s/delete' % name)
            except Refused as answer:  # it is let go a moment after its alloc has ended
                assert 'in use' in str(answer), answer
                return False
            return True

        wait_for('%s to be deleted' % name, try_it)

    def finish(self):
        root = os.path.join(self.node.data, 'client', 'csi', 'node', 'hostpath')
        for name in ('per-alloc', 'staging/default'):
            assert not os.path.exists(os.path.join(root, name)) \
                or not os.listdir(os.path.join(root, name))
        self.node.finish()
        left = [name for name in os.listdir(self.dir) if not name.endswith('.json')]
        assert not left, left
        shutil.rmtree(self.dir)


def job(name, script, terms, volume):
    task = raw_exec('t', script, Driver='exec', KillTimeout=milliseconds(200),
                    VolumeMounts=[{'Volume': 'v', 'Destination': '/srv/v'}])
    made = service(task, restart=restart_policy(0))
    made['TaskGroups'][0]['Volumes'] = {'v': dict(terms, Type='csi', Source=volume)}
    return dict(made, ID=name, Name=name)


def is_running(node, name):
    state = node.task(name, 'g', 't')
    return state and state['State'] == 'running'


def stop(node, name):
    node.call('DELETE', '/v1/job/%s' % name)
    wait_for(name + ' to end', lambda: [alloc['ClientStatus'] for alloc in node.allocs(name)]
             == ['complete'])


def two_share_a_volume_that_was_created():
    if not os.access(DRIVER, os.X_OK):
        return NO_DRIVER
    hostpath = Hostpath()
    node = hostpath.node
    hostpath.create('data', SHARED)
    for name in ('one', 'two'):
        node.run_job(job(name, 'exec sleep 1000', SHARED, 'data'))
    for name in ('one', 'two'):
        wait_for(name, lambda name=name: is_running(node, name))
    before = wait_for('both payloads', lambda: (lambda pids: len(pids) == 2 and pids)(
        {pid for pid, line in node.payloads().items() if line == 'sleep 1000'}))
    node.kill()
    driver = hostpath.pid()
    os.kill(driver, 9)
    node.start()
    wait_for('the driver again', lambda: hostpath.pid() not in (None, driver))
    stop(node, 'one')
    assert is_running(node, 'two')
    assert [pid for pid, line in node.payloads().items() if line == 'sleep 1000'][0] in before
    stop(node, 'two')
    hostpath.delete('data')
    hostpath.finish()
    return None


def device_is_written_and_let_go():
    if not os.access(DRIVER, os.X_OK):
        return NO_DRIVER
    hostpath = Hostpath()
    node = hostpath.node
    hostpath.create('raw', DEVICE)
    node.run_job(job('dev', 'test -b /srv/v && exec sleep 1000', DEVICE, 'raw'))
    wait_for('it', lambda: is_running(node, 'dev'))
    node.kill()
    node.start()
    stop(node, 'dev')
    hostpath.delete('raw')
    hostpath.finish()
    return None


sys.exit(tap([
    two_share_a_volume_that_was_created,
    device_is_written_and_let_go,
]))
