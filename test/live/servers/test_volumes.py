#!/usr/bin/python3
"""Volumes of a storage plugin on a node that takes its work from servers: claimed of them, mounted,
and given back, wherever the daemon or they die; and the plugin as they call it.

In a whole run it waits for 120 s.
"""
import json
import os
import shutil
import signal
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import milliseconds, raw_exec, tap, wait_for  # noqa: E402
from peer import Gone, Refused  # noqa: E402
from peer import Servers as PlainServers  # noqa: E402
from storage import NODE_ONLY, PLUGIN, sleeper_pids  # noqa: E402
from test_join import alloc_of as small_alloc_of  # noqa: E402
from test_join import await_status, finish, joined, sleeper, status  # noqa: E402

UNPUBLISHED = 4


def alloc_of(*tasks, **fields):
    """With room for logs."""
    alloc = small_alloc_of(*tasks, **fields)
    alloc['Job']['TaskGroups'][0]['EphemeralDisk'] = {'SizeMB': 300}
    alloc['AllocatedResources']['Shared']['DiskMB'] = 300
    return alloc


class Servers(PlainServers):
    """Servers that know volumes, and who has claimed them."""

    def __init__(self):
        super().__init__()
        self.volumes, self.claims = {}, {}
        self.held = {}  # "before" or "after", a method: an event until which its calls are held
        self.come = []  # of those, in order

    def register(self, name, namespace='default', **fields):
        self.volumes[namespace, name] = dict({
            'ID': name, 'Name': name, 'Namespace': namespace, 'ExternalID': 'disk',
            'PluginID': 'test', 'Secrets': {'key': 'hunter2'}, 'Context': {'pool': 'fast'},
            'MountOptions': None, 'ControllerRequired': False, 'Schedulable': True}, **fields)

    def hold(self, when, method):
        self.held[when, method] = threading.Event()

    def let_go(self, when, method):
        self.held.pop((when, method)).set()

    def pass_by(self, when, method):
        event = self.held.get((when, method))
        if event:
            self.come.append((when, method))
            event.wait()

    def about(self, args):
        self.known(args, self.node())
        self.writes()
        if not args.get('Namespace'):
            raise Refused('there is no namespace')
        return args['Namespace'], args.get('VolumeID', args.get('ID'))

    def on_CSIVolume_Get(self, _session, args):
        assert not args['AllowStale'], args
        return dict(self.query_of(self.index), Volume=self.volumes.get(self.about(args)))

    def on_CSIVolume_Claim(self, _session, args):
        self.pass_by('before', 'CSIVolume.Claim')
        volume = self.volumes.get(self.about(args))
        if volume is None:
            raise Refused('volume not found: ' + args['VolumeID'])
        if args['AllocationID'] not in self.allocs:
            raise Refused('Unknown allocation: ' + args['AllocationID'])
        self.claims.setdefault(args['AllocationID'], set()).add(args['VolumeID'])
        context = {}
        if volume['ControllerRequired']:
            context = self.call('CSI.ControllerAttachVolume', {
                'PluginID': volume['PluginID'], 'VolumeID': volume['ExternalID'],
                'ClientCSINodeID': 'here', 'AttachmentMode': args['AttachmentMode'],
                'AccessMode': args['AccessMode'], 'MountOptions': None, 'ReadOnly': False,
                'Secrets': volume['Secrets'], 'VolumeContext': volume['Context']})['PublishContext']
        self.pass_by('after', 'CSIVolume.Claim')
        return dict(self.query_of(self.index), Volume=volume, PublishContext=context)

    def on_CSIVolume_Unpublish(self, _session, args):
        self.pass_by('before', 'CSIVolume.Unpublish')
        volume = self.volumes.get(self.about(args))
        if volume is None:
            raise Refused('no such volume')
        claim = args['Claim']
        assert claim['State'] == UNPUBLISHED, args
        self.call('CSI.NodeDetachVolume', {
            'PluginID': volume['PluginID'], 'VolumeID': volume['ID'], 'NodeID': claim['NodeID'],
            'AllocID': claim['AllocationID'], 'ExternalID': volume['ExternalID'],
            'AttachmentMode': claim['AttachmentMode'], 'AccessMode': claim['AccessMode'],
            'ReadOnly': claim['Mode'] == 0, 'VolumeNamespace': volume['Namespace']})
        if volume['ControllerRequired']:
            self.call('CSI.ControllerDetachVolume', {
                'PluginID': volume['PluginID'], 'VolumeID': volume['ExternalID'],
                'ClientCSINodeID': 'here', 'Secrets': volume['Secrets']})
        self.claims.get(claim['AllocationID'], set()).discard(args['VolumeID'])
        self.pass_by('after', 'CSIVolume.Unpublish')
        return self.query_of(self.index)

    def no_claim(self):
        return not any(self.claims.values())


class Storage:
    """Servers, a node of theirs, and a plugin that runs on it and has DISKS."""

    def __init__(self, *disks, kind='node'):
        self.dir = tempfile.mkdtemp(prefix='cairn-storage-')
        os.chmod(self.dir, 0o755)
        for disk in disks:
            os.makedirs(self.path(disk))
            os.chmod(self.path(disk), 0o777)
        if kind == 'node':
            with open(self.path('answers.json'), 'w') as out:
                json.dump(NODE_ONLY, out)
        self.servers = Servers()
        self.node = joined(self.servers)
        task = raw_exec('plugin', '', Config={'command': '/usr/bin/python3',
                                              'args': [os.path.abspath(PLUGIN), '-', self.dir]},
                        CSIPluginConfig={'ID': 'test', 'Type': kind, 'MountDir': '/csi'},
                        KillTimeout=milliseconds(2000))
        self.plugin = alloc_of(task, name='plugin')
        self.plugin['AllocatedResources']['Tasks']['plugin']['Memory']['MemoryMB'] = 200
        self.servers.add(self.plugin)
        wait_for('the servers to hear of the plugin', lambda: self.told('CSINodePlugins'))

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def read(self, *names):
        try:
            with open(self.path(*names)) as file:
                return file.read()
        except FileNotFoundError:
            return ''

    def told(self, field):
        plugin = (self.servers.nodes[self.servers.node()].get(field) or {}).get('test')
        return plugin if plugin and plugin['Healthy'] else None

    def calls(self, *methods):
        found = []
        for line in self.read('calls').splitlines():
            words = line.split(' ')
            if words[0] == '<' and words[1].startswith(methods or 'Node') \
                    and words[1] not in ('NodeGetInfo', 'NodeGetCapabilities'):
                found.append(' '.join([words[1], words[2], words[-1]]))
        return found

    def next(self, method, *commands):
        with open(self.path('next.' + method), 'w') as out:
            out.write(''.join(command + '\n' for command in commands))

    def finish(self):
        """Nothing is claimed, nothing mounted, and the plugin ends."""
        for alloc in list(self.servers.allocs):
            if alloc != self.plugin['ID']:
                self.servers.stop(alloc)
        wait_for('no claim to be left', self.servers.no_claim, limit_s=60)
        root = os.path.join(self.node.data, 'client', 'csi', 'node', 'test')
        wait_for('nothing below the root of the plugin', lambda: not [
            name for _, folders, files in os.walk(root) for name in folders + files
            if name not in ('staging', 'per-alloc', 'default')], limit_s=60)
        self.servers.stop(self.plugin['ID'])
        wait_for('the servers to hear that it has gone', lambda: not self.told('CSINodePlugins'))
        assert 'hunter2' not in self.node.log(1 << 20)
        finish(self.servers, self.node)
        self.servers.__exit__(None)
        shutil.rmtree(self.dir)


def user(script='exec sleep 1000', volume='disk', name='job', request=None, **fields):
    task = raw_exec('t', script, Driver='exec', KillTimeout=milliseconds(5000),
                    VolumeMounts=[{'Volume': 'v', 'Destination': '/srv/disk'}])
    volumes = {'v': dict({'Name': 'v', 'Type': 'csi', 'Source': volume, 'ReadOnly': False,
                          'AccessMode': 'single-node-writer', 'AttachmentMode': 'file-system'},
                         **request or {})}
    return alloc_of(task, name=name, Group={'Volumes': volumes}, **fields)


def with_a_disk(**fields):
    storage = Storage('disk')
    storage.servers.register('disk', **fields)
    return storage, storage.servers, storage.node


# --- what cannot be ---

def what_does_not_exist_is_the_reason_why_its_alloc_fails():
    storage, servers, node = with_a_disk()
    alloc, other = user(volume='none'), alloc_of(sleeper(1001), name='other')
    servers.add(alloc)
    servers.add(other)
    await_status(servers, alloc, 'failed')
    told = servers.allocs[alloc['ID']]['ClientDescription']
    assert 'none' in told and 'no such volume' in told, told
    node.await_pid('sleep 1001')
    storage.finish()


def others_go_on_while_nobody_says_whose_a_volume_is():
    storage, servers, node = with_a_disk()
    servers.refuse('CSIVolume.Get', 'No cluster leader', times=1)
    alloc, other = user(), alloc_of(sleeper(1001), name='other')
    servers.add(alloc)
    wait_for('the question', lambda: servers.calls('CSIVolume.Get'))
    servers.add(other)
    node.await_pid('sleep 1001')
    assert status(servers, alloc) == 'pending'
    await_status(servers, alloc, 'running')
    storage.finish()


def what_is_asked_for_when_the_daemon_dies_is_asked_for_again():
    storage, servers, node = with_a_disk()
    servers.hang('CSIVolume.Get')
    alloc = user()
    servers.add(alloc)
    wait_for('the question', lambda: servers.calls('CSIVolume.Get'))
    node.kill()
    node.start()
    await_status(servers, alloc, 'running')
    assert len(sleeper_pids(node)) == 1
    storage.finish()


def what_is_not_wanted_any_more_is_not_placed():
    storage, servers, node = with_a_disk()
    servers.delay('CSIVolume.Get', 2)
    alloc, other = user(), alloc_of(sleeper(1001), name='other')
    servers.add(alloc)
    wait_for('the question', lambda: servers.calls('CSIVolume.Get'))
    servers.stop(alloc['ID'])
    servers.add(other)
    node.await_pid('sleep 1001')
    wait_for('the next question', lambda: servers.calls('Node.GetClientAllocs')[-1]
             ['MinQueryIndex'] == servers.allocs_index)
    assert [each['ID'] for each in node.allocs()].count(alloc['ID']) == 0
    storage.finish()
    assert not storage.calls()


def who_has_to_wait_for_a_claim_waits_and_who_is_refused_fails():
    storage, servers, _ = with_a_disk()
    servers.refuse('CSIVolume.Claim', 'volume max claims reached', times=2)
    alloc, other = user(), user(name='other')
    servers.add(alloc)
    await_status(servers, alloc, 'running')
    servers.stop(alloc['ID'])
    await_status(servers, alloc, 'complete')
    wait_for('no claim', servers.no_claim)
    servers.refuse('CSIVolume.Claim', 'controller publish: it is broken')
    servers.add(other)
    await_status(servers, other, 'failed')
    assert 'it is broken' in json.dumps(servers.allocs[other['ID']]), servers.allocs[other['ID']]
    storage.finish()


# --- the whole way ---

def a_volume_is_claimed_mounted_seen_and_given_back():
    storage, servers, node = with_a_disk()
    plugin = storage.told('CSINodePlugins')
    assert plugin['AllocID'] == storage.plugin['ID'], plugin
    assert plugin['UpdateTime']['$time'] > 0, plugin
    assert plugin['NodeInfo']['ID'] == 'here' and plugin['NodeInfo']['MaxVolumes'] == (1 << 63) - 1
    alloc = user('echo it works > /srv/disk/words; exec sleep 1000')
    servers.add(alloc)
    wait_for('its words', lambda: storage.read('disk', 'words') == 'it works\n')
    await_status(servers, alloc, 'running')
    claim, = servers.calls('CSIVolume.Claim')
    assert {name: claim[name] for name in (
        'VolumeID', 'AllocationID', 'NodeID', 'ExternalNodeID', 'Claim', 'AccessMode',
        'AttachmentMode', 'State', 'Namespace', 'Region')} == {
            'VolumeID': 'disk', 'AllocationID': alloc['ID'], 'NodeID': servers.node(),
            'ExternalNodeID': 'here', 'Claim': 1, 'AccessMode': 'single-node-writer',
            'AttachmentMode': 'file-system', 'State': 0, 'Namespace': 'default',
            'Region': 'global'}, claim
    before = sleeper_pids(node)
    node.kill()
    node.start()
    servers.stop(alloc['ID'])
    await_status(servers, alloc, 'complete')
    wait_for('no claim', servers.no_claim)
    given_back, = servers.calls('CSIVolume.Unpublish')
    assert given_back['VolumeID'] == 'disk' and given_back['Claim']['Mode'] == 1, given_back
    assert len(servers.calls('CSIVolume.Claim')) == 1 and len(before) == 1
    storage.finish()


def each_alloc_may_have_its_own():
    storage, servers, _ = with_a_disk()
    servers.register('disk[3]')
    alloc = user(request={'PerAlloc': True}, index=3)
    servers.add(alloc)
    await_status(servers, alloc, 'running')
    assert [call['VolumeID'] for call in servers.calls('CSIVolume.Claim')] == ['disk[3]']
    storage.finish()


def a_volume_is_attached_while_its_claim_is_answered():
    storage = Storage('disk', kind='monolith')
    servers = storage.servers
    wait_for('its controller', lambda: storage.told('CSIControllerPlugins'))
    servers.register('disk', ControllerRequired=True)
    alloc = user()
    servers.add(alloc)
    await_status(servers, alloc, 'running')
    assert os.path.exists(storage.path('disk.attached'))
    storage.finish()
    assert not storage.read('disk.attached')


# --- restarts ---

def wherever_the_daemon_dies_around_a_claim_nothing_is_doubled_or_left():
    for when in ('before', 'after'):
        storage, servers, node = with_a_disk()
        servers.hold(when, 'CSIVolume.Claim')
        alloc = user()
        servers.add(alloc)
        wait_for('the claim', lambda: servers.come)
        node.kill()
        servers.let_go(when, 'CSIVolume.Claim')
        node.start()
        await_status(servers, alloc, 'running')
        assert len(sleeper_pids(node)) == 1
        assert servers.claims[alloc['ID']] == {'disk'}
        servers.hold(when, 'CSIVolume.Unpublish')
        servers.stop(alloc['ID'])
        wait_for('it to be given back', lambda: len(servers.come) == 2)
        node.kill()
        servers.let_go(when, 'CSIVolume.Unpublish')
        node.start()
        wait_for('no claim', servers.no_claim)
        await_status(servers, alloc, 'complete')
        wait_for('the machine to go', lambda: 'volume/' not in node.cli(
            'journal', 'show', '-data-dir', node.data, 'volume/%s/v' % alloc['ID'],
            check=False).stdout)
        assert [call.split()[0] for call in calls(storage)] == [
            'NodeStageVolume', 'NodePublishVolume', 'NodeUnpublishVolume', 'NodeUnstageVolume'], \
            calls(storage)
        storage.finish()


def calls(storage):
    return storage.calls('NodeStage', 'NodePublish', 'NodeUn')


def what_ends_while_they_are_away_is_given_back_when_they_return():
    storage, servers, node = with_a_disk()
    alloc = user('until [ -e /srv/disk/go ]; do sleep 0.05; done')
    servers.add(alloc)
    await_status(servers, alloc, 'running')
    servers.servers[0].pause()
    with open(storage.path('disk', 'go'), 'w'):
        pass
    wait_for('it to be unmounted', lambda: 'NodeUnstageVolume disk OK' in storage.calls())
    node.kill()
    node.start()
    assert not servers.no_claim()
    servers.servers[0].resume()
    wait_for('no claim', servers.no_claim, limit_s=60)
    await_status(servers, alloc, 'failed')  # a service that ends
    storage.finish()


def what_was_deleted_meanwhile_is_given_back_for_nothing():
    storage, servers, node = with_a_disk()
    alloc = user()
    servers.add(alloc)
    await_status(servers, alloc, 'running')
    del servers.volumes['default', 'disk']
    servers.stop(alloc['ID'])
    await_status(servers, alloc, 'complete')
    servers.claims.clear()
    servers.forget(alloc['ID'])
    wait_for('it to be gone', lambda: alloc['ID'] not in [each['ID'] for each in node.allocs()])
    storage.finish()


# --- what they ask ---

def a_volume_in_use_is_let_go_when_its_alloc_ends():
    storage, servers, node = with_a_disk()
    alloc = user()
    servers.add(alloc)
    await_status(servers, alloc, 'running')
    said = []

    def detach():
        said.append(servers.call('CSI.NodeDetachVolume', {
            'PluginID': 'test', 'VolumeID': 'disk', 'NodeID': servers.node(), 'ExternalID': 'disk',
            'AllocID': alloc['ID'], 'AttachmentMode': 'file-system', 'ReadOnly': False,
            'AccessMode': 'single-node-writer'}))
    asks = threading.Thread(target=detach)
    asks.start()
    asks.join(2)
    assert not said and len(sleeper_pids(node)) == 1
    servers.stop(alloc['ID'])
    asks.join(30)
    assert said == [{}], said
    assert 'NodeUnpublishVolume disk OK' in storage.calls()
    storage.finish()


def a_daemon_that_ends_while_they_ask_ends_at_once():
    storage, servers, node = with_a_disk()
    alloc = user()
    servers.add(alloc)
    await_status(servers, alloc, 'running')
    said = []

    def detach():
        try:
            servers.call('CSI.NodeDetachVolume', {
                'PluginID': 'test', 'VolumeID': 'disk', 'NodeID': servers.node(),
                'AllocID': alloc['ID'], 'ExternalID': 'disk'})
        except (Refused, Gone) as answer:
            said.append(answer)
    asks = threading.Thread(target=detach)
    asks.start()
    asks.join(1)
    assert node.terminate() == 0
    asks.join(30)
    assert said, 'it was let go'
    node.start()
    assert len(sleeper_pids(node)) == 1
    storage.finish()


def they_hear_of_a_plugin_that_does_not_answer_any_more():
    storage, servers, node = with_a_disk()
    pid = node.await_pid('/usr/bin/python3 %s - %s' % (os.path.abspath(PLUGIN), storage.dir))
    os.kill(pid, signal.SIGSTOP)
    wait_for('it to be unhealthy', lambda: not storage.told('CSINodePlugins'), limit_s=90)
    os.kill(pid, signal.SIGCONT)
    wait_for('it to be healthy', lambda: storage.told('CSINodePlugins'), limit_s=90)
    storage.finish()


def controllers_are_called():
    storage = Storage(kind='monolith')
    servers = storage.servers
    info = wait_for('its controller', lambda: storage.told('CSIControllerPlugins'))
    assert info['ControllerInfo']['SupportsCreateDelete'] and 'NodeInfo' not in info, info

    def ask(method, plugin='test', **args):
        return servers.call('CSI.' + method, dict(args, PluginID=plugin, ControllerNodeID='n'))
    try:
        raise AssertionError(ask('ControllerListVolumes', plugin='none', MaxEntries=1))
    except Refused as refused:
        assert str(refused).startswith('CSI.ControllerListVolumes: ') and \
            'CSI client error (retryable)' in str(refused), refused
    modes = [{'AccessMode': 'single-node-writer', 'AttachmentMode': 'file-system'}]
    made = ask('ControllerCreateVolume', Name='new', VolumeCapabilities=modes, Parameters=None,
               MountOptions={'FSType': '', 'MountFlags': None}, Secrets=None, CapacityMin=1 << 20,
               CapacityMax=0, SnapshotID='', CloneID='', RequestedTopologies=None)
    volume = made['ExternalVolumeID']
    assert volume and os.path.exists(storage.path(volume)), made
    assert ask('ControllerValidateVolume', VolumeID=volume, VolumeCapabilities=modes,
               MountOptions=None, Secrets=None, Parameters=None, Context=None) == {}
    listed = ask('ControllerListVolumes', MaxEntries=0, StartingToken='')
    assert volume in [each['ExternalID'] for each in listed['Entries']], listed
    attach = {'VolumeID': volume, 'ClientCSINodeID': 'here', 'Secrets': None}
    modes_of_claim = {'AttachmentMode': 'file-system', 'AccessMode': 'single-node-writer',
                      'MountOptions': None, 'ReadOnly': False, 'VolumeContext': None}
    storage.next('ControllerPublishVolume', *['say 9 elsewhere'] * 4)
    try:
        raise AssertionError(ask('ControllerAttachVolume', **modes_of_claim, **attach))
    except Refused as refused:  # others can wait for it
        assert 'CSI client error (retryable)' in str(refused) and 'elsewhere' in str(refused), refused
    storage.next('ControllerPublishVolume', 'say 14 busy', 'say 14 busy')
    ask('ControllerAttachVolume', **modes_of_claim, **attach)
    assert os.path.exists(storage.path(volume + '.attached'))
    for _ in range(2):
        assert ask('ControllerDetachVolume', **attach) == {}
    copy = ask('ControllerCreateSnapshot', ExternalSourceVolumeID=volume, Name='copy', Secrets=None,
               Parameters=None)
    assert copy['ID'] and copy['ExternalSourceVolumeID'] == volume, copy
    for _ in range(2):
        assert ask('ControllerDeleteSnapshot', ID=copy['ID'], Secrets=None) == {}
    grown = ask('ControllerExpandVolume', ExternalVolumeID=volume, Secrets=None,
                CapacityRange={'RequiredBytes': 2 << 20, 'LimitBytes': 0},
                VolumeCapability={'AccessType': 2, 'AccessMode': 1, 'MountVolume': None})
    assert grown['CapacityBytes'] >= 2 << 20, grown
    for _ in range(2):
        assert ask('ControllerDeleteVolume', ExternalVolumeID=volume, Secrets=None) == {}
    assert not os.path.exists(storage.path(volume))
    try:
        raise AssertionError(ask('ControllerAttachVolume', VolumeID=''))
    except Refused as refused:
        assert str(refused).startswith('CSI.ControllerAttachVolume: '), refused
    storage.finish()


if __name__ == '__main__':
    sys.exit(tap([
        what_does_not_exist_is_the_reason_why_its_alloc_fails,
        others_go_on_while_nobody_says_whose_a_volume_is,
        what_is_asked_for_when_the_daemon_dies_is_asked_for_again,
        what_is_not_wanted_any_more_is_not_placed,
        who_has_to_wait_for_a_claim_waits_and_who_is_refused_fails,
        a_volume_is_claimed_mounted_seen_and_given_back,
        each_alloc_may_have_its_own,
        a_volume_is_attached_while_its_claim_is_answered,
        wherever_the_daemon_dies_around_a_claim_nothing_is_doubled_or_left,
        what_ends_while_they_are_away_is_given_back_when_they_return,
        what_was_deleted_meanwhile_is_given_back_for_nothing,
        a_volume_in_use_is_let_go_when_its_alloc_ends,
        a_daemon_that_ends_while_they_ask_ends_at_once,
        they_hear_of_a_plugin_that_does_not_answer_any_more,
        controllers_are_called,
    ]))
