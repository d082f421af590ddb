#!/usr/bin/env python3
"""The Kubernetes hostpath driver, unmodified, as a task: volumes are created, shared, copied, grown, used
as devices and deleted, and outlive daemon, driver and machine.  CAIRN_HOSTPATH names its program."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (MountedNode, Node, Refused, milliseconds, raw_exec, restart_policy, service,  # noqa: E402
                 tap, wait_for)

DRIVER = os.environ.get('CAIRN_HOSTPATH', '')
SHARED = {'AccessMode': 'multi-node-multi-writer', 'AttachmentMode': 'file-system'}
NO_DRIVER = 'CAIRN_HOSTPATH names no hostpath driver'
DEVICE = {'AccessMode': 'single-node-writer', 'AttachmentMode': 'block-device'}


class Hostpath:
    """A node with the driver on it."""

    def __init__(self, *arguments, node=None, config=None, **task):
        self.dir = tempfile.mkdtemp(prefix='cairn-hostpath-')
        os.chmod(self.dir, 0o711)
        self.node = node or Node()
        os.chmod(self.node.dir, 0o711)
        self.node.start()
        task = raw_exec('plugin', '', CSIPluginConfig={'ID': 'hostpath', 'Type': 'monolith'},
                        Config={'command': DRIVER, **(config or {}), 'args': [
                            '-endpoint', '${CSI_ENDPOINT}', '-nodeid', 'here', '-drivername',
                            'hostpath.csi.k8s.io', '-statedir', self.dir, *arguments]}, **task)
        task['Resources']['MemoryMB'] = 200
        self.node.run_job(dict(service(task, restart=restart_policy(100, 10)), ID='plugin',
                               Name='plugin'))
        wait_for('the driver', self.is_ready, 30)

    def is_ready(self):
        found = self.node.get('/v1/plugin/csi/hostpath')
        assert 'version' not in found['CairnFailure'], \
            'the driver says nothing of who it is: ' + found['CairnFailure']
        return found['NodesHealthy'] == found['ControllersHealthy'] == 1

    def await_controller(self):
        def answers():
            try:
                return self.node.get('/v1/volumes/external?plugin_id=hostpath')
            except Refused as answer:
                assert answer.status in (404, 503), answer  # between two runs there is none
                return False

        wait_for('the driver', answers, 30)

    def kill(self):
        """The driver; its task starts it again."""
        before = self.pid()
        os.kill(before, 9)
        return before

    def await_again(self, before):
        wait_for('the driver again', lambda: self.pid() not in (None, before))

    def pid(self):
        return next((pid for pid, line in self.node.payloads().items()
                     if line.startswith(DRIVER)), None)

    def create(self, name, terms, size=1 << 20, **more):
        """Made, or changed."""
        self.node.put('/v1/volume/csi/%s/create' % name, {'Volumes': [dict({
            'ID': name, 'Name': name, 'PluginID': 'hostpath', 'RequestedCapacityMin': size,
            'RequestedCapabilities': [terms]}, **more)]})
        return self.get(name)

    def get(self, name):
        return self.node.get('/v1/volume/csi/' + name)

    def snapshots(self):
        """What the driver lists, one on each page."""
        token, found = '', []
        while True:
            page = self.node.get('/v1/volumes/snapshot?plugin_id=hostpath&per_page=1&next_token='
                                 + token)
            assert len(page['Snapshots']) <= 1, page
            found += page['Snapshots']
            token = page['NextToken']
            if not token:
                return found

    def volumes(self):
        """What the driver lists; it has no pages of them."""
        return self.node.get('/v1/volumes/external?plugin_id=hostpath')['Volumes']

    def has_grown(self, volume):
        """What the driver itself knows of its size."""
        with open(os.path.join(self.dir, 'state.json')) as file:
            return next(known['VolSize'] for known in json.load(file)['Volumes']
                        if known['VolID'] == volume['ExternalID'])

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


def await_both(node):
    return wait_for('both payloads', lambda: (lambda pids: len(pids) == 2 and pids)(
        [pid for pid, line in node.payloads().items() if line == 'sleep 1000']))


def share(hostpath):
    """Two jobs have a volume; the pids of their payloads."""
    hostpath.create('data', SHARED)
    for name in ('one', 'two'):
        hostpath.node.run_job(job(name, 'exec sleep 1000', SHARED, 'data'))
    for name in ('one', 'two'):
        wait_for(name, lambda name=name: is_running(hostpath.node, name))
    return await_both(hostpath.node)


def two_share_a_volume_that_was_created():
    if not os.access(DRIVER, os.X_OK):
        return NO_DRIVER
    hostpath = Hostpath()
    node, before = hostpath.node, share(hostpath)
    node.kill()
    driver = hostpath.kill()
    node.start()
    hostpath.await_again(driver)
    stop(node, 'one')
    assert is_running(node, 'two')
    assert [pid for pid, line in node.payloads().items() if line == 'sleep 1000'][0] in before
    stop(node, 'two')
    hostpath.delete('data')
    hostpath.finish()
    return None


def two_share_a_volume_over_a_reboot_and_one_of_them_loses_it():
    """The driver counts on its disk what it has published."""
    if not os.access(DRIVER, os.X_OK):
        return NO_DRIVER
    hostpath = Hostpath()
    node = hostpath.node
    share(hostpath)
    node.reboot('11111111-2222-4333-8444-555555555555')
    node.start()
    before = await_both(node)
    for name in ('one', 'two'):
        wait_for(name, lambda name=name: is_running(node, name))
    alloc = node.alloc('one', 'g')['ID']
    target = next(mount for mount in node.mounts() if '/per-alloc/%s/' % alloc in mount)
    subprocess.run(['nsenter', '-m', '-t', str(node.process.pid), 'umount', '-l', target], check=True)
    node.cli('alloc', 'restart', alloc)
    wait_for('the first once more', lambda: len(set(await_both(node)) - set(before)) == 1)
    wait_for('one', lambda: is_running(node, 'one'))
    stop(node, 'one')
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


def device_is_shared_over_deaths_of_daemon_and_driver():
    if not os.access(DRIVER, os.X_OK):
        return NO_DRIVER
    hostpath = Hostpath()
    node = hostpath.node
    terms = dict(DEVICE, AccessMode='multi-node-multi-writer')
    hostpath.create('raw', terms)
    node.run_job(job('first', 'test -b /srv/v && exec sleep 1000', terms, 'raw'))
    first = node.await_pid('sleep 1000')
    with open('/proc/%d/root/srv/v' % first, 'wb') as device:
        device.write(b'stone')
        device.flush()
        os.fsync(device.fileno())
    node.kill()
    driver = hostpath.kill()
    node.start()
    hostpath.await_again(driver)
    node.run_job(job('second', 'test -b /srv/v && exec sleep 1001', terms, 'raw'))
    second = node.await_pid('sleep 1001')
    with open('/proc/%d/root/srv/v' % second, 'rb') as device:
        assert device.read(5) == b'stone', 'it is another device'
    hostpath.await_again(hostpath.kill())
    stop(node, 'second')
    with open('/proc/%d/root/srv/v' % first, 'rb') as device:
        assert device.read(5) == b'stone', 'it was taken from who has it still'
    stop(node, 'first')
    hostpath.delete('raw')
    hostpath.finish()
    return None


def snapshot_of_a_volume_in_use_becomes_another():
    if not os.access(DRIVER, os.X_OK):
        return NO_DRIVER
    hostpath = Hostpath()
    node = hostpath.node
    source = hostpath.create('data', SHARED)
    os.chmod(os.path.join(hostpath.dir, source['ExternalID']), 0o777)  # the task is nobody's
    node.run_job(job('writes', 'echo stone >/srv/v/word && exec sleep 1000', SHARED, 'data'))
    node.await_pid('sleep 1000')
    made = [node.put('/v1/volumes/snapshot', {'Snapshots': [
        {'SourceVolumeID': 'data', 'Name': name}]})['Snapshots'][0] for name in ('one', 'two')]
    assert all(snapshot['IsReady'] and snapshot['ExternalSourceVolumeID'] == source['ExternalID']
               for snapshot in made), made
    again = node.put('/v1/volumes/snapshot', {'Snapshots': [
        {'SourceVolumeID': 'data', 'Name': 'one'}]})['Snapshots'][0]
    assert again['ID'] == made[0]['ID'], 'made twice'
    listed = hostpath.snapshots()
    assert sorted(snapshot['ID'] for snapshot in listed) \
        == sorted(snapshot['ID'] for snapshot in made), listed
    stop(node, 'writes')
    hostpath.delete('data')  # what was copied of it stays
    node.kill()
    driver = hostpath.kill()
    node.start()
    hostpath.await_again(driver)
    hostpath.await_controller()
    copy = hostpath.create('copy', SHARED, SnapshotID=made[0]['ID'])
    assert copy['SnapshotID'] == made[0]['ID'] and copy['ExternalID'] != source['ExternalID'], copy
    node.run_job(job('reads', 'test "$(cat /srv/v/word)" = stone && exec sleep 1000', SHARED, 'copy'))
    node.await_pid('sleep 1000')
    for snapshot in made:
        path = '/v1/volumes/snapshot?plugin_id=hostpath&snapshot_id=' + snapshot['ID']
        node.call('DELETE', path)
        node.call('DELETE', path)  # and so is one that is gone
    assert hostpath.snapshots() == []
    try:
        hostpath.create('none', SHARED, SnapshotID=made[0]['ID'])
        raise AssertionError('it was made of nothing')
    except Refused as answer:
        assert made[0]['ID'] in str(answer), answer
    stop(node, 'reads')
    hostpath.delete('copy')
    assert hostpath.volumes() == []
    hostpath.finish()
    return None


def volume_is_made_of_another_and_what_room_is_left_is_told():
    if not os.access(DRIVER, os.X_OK):
        return NO_DRIVER
    hostpath = Hostpath('-capacity', 'fast=8Mi')
    node = hostpath.node
    source = hostpath.create('data', SHARED, 2 << 20, Parameters={'kind': 'fast'})
    with open(os.path.join(hostpath.dir, source['ExternalID'], 'word'), 'w') as file:
        file.write('stone')
    twin = hostpath.create('twin', SHARED, 2 << 20, CloneID=source['ExternalID'], Parameters={'kind': 'fast'})
    assert twin['CloneID'] == source['ExternalID'] != twin['ExternalID'], twin
    node.run_job(job('reads', 'test "$(cat /srv/v/word)" = stone && exec sleep 1000', SHARED, 'twin'))
    node.await_pid('sleep 1000')
    assert 'Available' in node.cli('plugin', 'status', 'hostpath').stdout
    try:
        hostpath.create('none', SHARED, CloneID='nobody', Parameters={'kind': 'fast'})
        raise AssertionError('it was made of nothing')
    except Refused as answer:
        assert 'nobody' in str(answer), answer
    stop(node, 'reads')
    for name in ('data', 'twin'):
        hostpath.delete(name)
    hostpath.finish()
    return None


CAPABILITIES = ('audit_write chown dac_override fowner fsetid kill mknod net_bind_service setfcap setgid setpcap '
                'setuid sys_chroot sys_admin').split()


def driver_with_a_root_of_its_own_mounts_for_all():
    """As a task of exec: what it mounts in its own root is where tasks have their volumes."""
    if not os.access(DRIVER, os.X_OK):
        return NO_DRIVER
    roots = ['/bin', '/etc', '/lib', '/lib64', '/sbin', '/usr', os.path.dirname(DRIVER)]
    node = MountedNode('shared', 'client {\n  options {\n    "user.denylist" = "nobody-at-all"\n  }\n  chroot_env {\n%s  }\n}\n'
                      'plugin "exec" {\n  config {\n    allow_caps = [%s]\n  }\n}\n'
                      % (''.join('    "%s" = "%s"\n' % (path, path) for path in roots),
                         ', '.join('"%s"' % name for name in CAPABILITIES)))
    hostpath = Hostpath(node=node, Driver='exec', User='root', config={'cap_add': ['sys_admin']})
    hostpath.create('data', SHARED)
    for name in ('one', 'two'):
        node.run_job(job(name, 'exec sleep 1000', SHARED, 'data'))
        wait_for(name, lambda name=name: is_running(node, name))
    first, second = await_both(node)
    with open('/proc/%d/root/srv/v/word' % first, 'w') as file:
        file.write('stone')
    with open('/proc/%d/root/srv/v/word' % second) as file:
        assert file.read() == 'stone', 'they have two volumes'
    node.kill()
    driver = hostpath.kill()
    node.start()
    hostpath.await_again(driver)
    stop(node, 'one')
    assert is_running(node, 'two')
    stop(node, 'two')
    hostpath.delete('data')
    hostpath.finish()
    return None


def volume_grows_while_it_is_used_and_no_further_than_there_is_room():
    if not os.access(DRIVER, os.X_OK):
        return NO_DRIVER
    hostpath = Hostpath('-capacity', 'fast=8Mi', '-v', '5')
    node = hostpath.node
    kind = {'Parameters': {'kind': 'fast'}}
    assert hostpath.create('data', SHARED, **kind)['Capacity'] == 1 << 20
    hostpath.create('other', SHARED, 2 << 20, **kind)
    node.run_job(job('uses', 'exec sleep 1000', SHARED, 'data'))
    pid = node.await_pid('sleep 1000')
    assert hostpath.create('data', SHARED, 3 << 20, **kind)['Capacity'] == 3 << 20
    assert hostpath.has_grown(hostpath.get('data')) == 3 << 20
    log = node.text('GET', '/v1/client/fs/logs/%s?task=plugin&type=stderr&plain=true'
                    % node.alloc('plugin', 'g')['ID'])
    assert '/csi.v1.Node/NodeExpandVolume' in log, 'what is mounted has not grown'
    node.kill()
    node.start()
    hostpath.await_controller()
    assert hostpath.get('data')['Capacity'] == 3 << 20 and node.pid_of('sleep 1000') == pid
    listed = hostpath.volumes()
    assert sorted(volume['CapacityBytes'] for volume in listed) == [2 << 20, 3 << 20], listed
    used = next(volume for volume in listed
                if volume['ExternalID'] == hostpath.get('data')['ExternalID'])
    assert used['PublishedExternalNodeIDs'] == ['here'] and not used['IsAbnormal'], used
    try:
        hostpath.create('large', SHARED, 7 << 20, **kind)
        raise AssertionError('there is no room for it')
    except Refused as answer:
        assert 'capacity' in str(answer), answer
    assert 'large' not in [volume['ID'] for volume in node.get('/v1/volumes?type=csi')]
    assert len(hostpath.volumes()) == 2
    stop(node, 'uses')
    for name in ('data', 'other'):
        hostpath.delete(name)
    hostpath.finish()
    return None


sys.exit(tap([
    two_share_a_volume_that_was_created,
    two_share_a_volume_over_a_reboot_and_one_of_them_loses_it,
    device_is_written_and_let_go,
    device_is_shared_over_deaths_of_daemon_and_driver,
    snapshot_of_a_volume_in_use_becomes_another,
    volume_is_made_of_another_and_what_room_is_left_is_told,
    volume_grows_while_it_is_used_and_no_further_than_there_is_room,
    driver_with_a_root_of_its_own_mounts_for_all,
]))
