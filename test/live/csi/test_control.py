#!/usr/bin/env python3
"""Volumes of a storage plugin with a controller, as callers ask for them: made, deleted, expanded,
copied; with the daemon and the plugin killed between a call and its answer."""
import http.client
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import PATIENCE, Node, Refused, raw_exec, service, tap, wait_for  # noqa: E402
from storage import PLUGIN  # noqa: E402

SECRETS = ('hunter2', 'sesame')
VOLUME = '''
id           = "%(id)s"
name         = "%(id)s"
type         = "csi"
plugin_id    = "test"
capacity_min = "%(size)s"
capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}
mount_options {
  mount_flags = ["password=sesame"]
}
secrets {
  key = "hunter2"
}
'''


class Storage:
    """A node, and a storage plugin that runs on it, as node and controller."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix='cairn-control-')
        os.chmod(self.dir, 0o755)
        self.node = Node(config='plugin "raw_exec" {\n  config {\n    enabled = true\n  }\n}\n')
        self.node.start()
        task = raw_exec('plugin', '', Config={'command': '/usr/bin/python3',
                                              'args': [os.path.abspath(PLUGIN), '-', self.dir]},
                        CSIPluginConfig={'ID': 'test', 'Type': 'monolith'})
        task['Resources']['MemoryMB'] = 200
        self.node.run_job(dict(service(task), ID='plugin', Name='plugin'))
        self.await_plugin()

    def await_plugin(self):
        def answers():
            try:
                self.node.get('/v1/volumes/external?plugin_id=test')
                return True
            except Refused:
                return False

        wait_for('the plugin', answers)

    def path(self, name):
        return os.path.join(self.dir, name)

    def plugin_pid(self):
        return next((pid for pid, line in self.node.payloads().items()
                     if line.startswith('/usr/bin/python3') and line.endswith('- ' + self.dir)),
                    None)

    def next(self, method, *commands):
        with open(self.path('next.' + method), 'w') as out:
            out.write(''.join(command + '\n' for command in commands))

    def text(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def calls(self, method):
        """How many have begun."""
        with open(self.path('calls')) as file:
            return file.read().count('> ' + method)

    def in_order(self):
        """Nothing is staged while it is not attached, and detached only when it is not staged."""
        attached = staged = False
        with open(self.path('calls')) as file:
            for line in file:
                word = line.split()
                if word[1] == 'ControllerUnpublishVolume' and word[0] == '>':
                    assert not staged, 'detached while it is staged'
                if word[-1] != 'OK':
                    continue
                attached = word[1] == 'ControllerPublishVolume' or \
                    (attached and word[1] != 'ControllerUnpublishVolume')
                staged = word[1] == 'NodeStageVolume' or (staged and word[1] != 'NodeUnstageVolume')
                assert attached or not staged, 'staged while it is not attached'

    def file(self, name, size='1MiB'):
        path = self.path(name + '.hcl')
        with open(path, 'w') as out:
            out.write(VOLUME % {'id': name, 'size': size})
        return path

    def create(self, name, size='1MiB', check=True):
        return self.node.cli('volume', 'create', self.file(name, size), check=check).stdout

    def create_by_api(self, name):
        """Sends it and hears no answer."""
        try:
            self.node.call('PUT', '/v1/volume/csi/%s/create' % name, {'Volumes': [{
                'ID': name, 'Name': name, 'PluginID': 'test', 'Secrets': {'key': 'hunter2'},
                'RequestedCapabilities': [{'AccessMode': 'single-node-writer',
                                           'AttachmentMode': 'file-system'}]}]}, timeout_s=0.3 / PATIENCE)
        except OSError:
            return
        raise AssertionError('it was answered')

    def get(self, name):
        return self.node.get('/v1/volume/csi/' + name)

    def state(self, name):
        try:
            return self.get(name)['CairnState']
        except Refused as answer:
            assert answer.status == 404, answer
            return None

    def again(self):
        """The daemon is killed, and comes back."""
        self.node.kill()
        self.node.start()

    def finish(self):
        self.node.finish()
        shutil.rmtree(self.dir)


def volume_is_made_shown_changed_and_deleted():
    storage = Storage()
    node = storage.node
    assert 'Created external volume disk with ID disk' in storage.create('disk')
    assert os.path.isdir(storage.path('disk'))
    assert re.search(r'^disk +disk +default +test +true', node.cli('volume', 'status').stdout, re.M)
    shown = node.cli('volume', 'status', 'di').stdout
    assert re.search(r'^Topologies\nTopology  Segments\n00        zone=a\n01        zone=b$', shown,
                     re.M), shown
    assert re.search(r'Capacity += 1.* MiB', shown), shown
    assert re.search(r'single-node-writer +file-system', shown), shown
    assert 'Created' in storage.create('disk', '5MiB') and storage.get('disk')['Capacity'] == 5 << 20
    assert storage.calls('ControllerExpandVolume') == 1
    shrunk = node.cli('volume', 'register', storage.file('disk', '1MiB')).stdout
    assert 'registered' in shrunk and storage.get('disk')['Capacity'] == 5 << 20
    storage.again()
    assert storage.get('disk')['ExternalID'] == 'disk'
    storage.await_plugin()
    made = node.cli('volume', 'snapshot', 'create', 'disk', 'before').stdout
    assert re.search(r'^before +disk +4.0 KiB|^before +disk +4 KiB', made, re.M), made
    listed = node.cli('volume', 'snapshot', 'list', '-plugin', 'test').stdout
    assert 'before' in listed, listed
    node.cli('volume', 'snapshot', 'delete', 'test', 'before')
    assert not os.path.exists(storage.path('before.snapshot'))
    node.cli('volume', 'detach', 'disk', node.get('/v1/nodes')[0]['ID'][:8])
    assert 'Successfully deleted volume "disk"!' in node.cli('volume', 'delete', 'disk').stdout
    assert not os.path.exists(storage.path('disk')) and storage.state('disk') is None
    assert 'No CSI volumes' in node.cli('volume', 'status').stdout
    storage.finish()


def nothing_tells_a_secret():
    storage = Storage()
    node = storage.node
    storage.create('disk')
    node.cli('volume', 'snapshot', 'create', 'disk', 's')
    storage.next('NodeStageVolume', 'say 3 no mount -o password=sesame with hunter2')
    node.run_job(dict(job('unlucky'), Type='batch'))
    unlucky = node.alloc('unlucky', 'g')['ID']
    wait_for('its failure', lambda: node.dead(job='unlucky'))
    node.run_job(job('one'))
    wait_for('the payload', lambda: node.running(job='one'))
    one = node.alloc('one', 'g')['ID']
    ids = (one, one + '/t', one + '/v', unlucky, unlucky + '/t', unlucky + '/v')
    shown = [node.text('GET', path) for path in
             ('/v1/volumes?type=csi', '/v1/volume/csi/disk', '/v1/volumes/external?plugin_id=test')]
    shown += [node.cli(*words).stdout for words in
              (('volume', 'status', 'disk'), ('volume', 'status', '-json', 'disk'),
               ('journal', 'log', '-dir', node.data), ('journal', 'log', '-json', '-dir', node.data),
               ('journal', 'list', '-dir', node.data), ('journal', 'stats', '-dir', node.data),
               ('journal', 'restore', '-dir', node.data), ('journal', 'timeline', '-dir', node.data),
               ('journal', 'timeline', '-html', os.path.join(node.dir, 'page'), '-dir', node.data),
               ('journal', 'at', '-all', '-dir', node.data, '-0s'),
               ('journal', 'diff', '-dir', node.data, '+0s', '-0s'),
               ('alloc', 'status', one), ('alloc', 'status', unlucky), ('node', 'status', '-self'),
               ('plugin', 'status', 'test'))]
    shown += [node.cli('journal', 'show', '-all', '-dir', node.data, *words, id).stdout
              for id in ids for words in ((), ('-json',))]
    assert any('no mount -o *** with ***' in text for text in shown)
    told = node.cli('journal', 'show', '-dir', node.data, node.alloc('plugin', 'g')['ID'] + '/plugin',
                    check=False).stdout
    assert '; -kind says of which' in told, told
    out = os.path.join(node.dir, 'export')
    node.cli('journal', 'export', '-dir', node.data, '-out', out)
    for path in (os.path.join(node.dir, 'page'), out):
        with open(path) as file:
            shown.append(file.read())
    shown.append(node.log(1 << 20))
    assert 'volume/default/disk' in shown[-2]
    assert '[REDACTED]' in shown[1]
    for secret in SECRETS:
        assert not [text for text in shown if secret in text], secret
    for root, _, names in os.walk(node.data):
        for name in names:
            path = os.path.join(root, name)
            if not os.path.isfile(path) or name.endswith('.last'):
                continue  # that is what the plugin of the test writes down itself
            with open(path, 'rb') as file:
                text = file.read()
            if any(secret.encode() in text for secret in SECRETS):
                assert stat.S_IMODE(os.stat(path).st_mode) & 0o077 == 0, path
    # The plugin is told both.
    for name in ('one', 'unlucky'):  # which would be tried again
        node.call('DELETE', '/v1/job/' + name)
    wait_for('no claim', lambda: not storage.get('disk')['WriteAllocs'])
    storage.next('CreateVolume', 'wait 0')
    storage.create('other')
    with open(os.path.join(node.data, 'client', 'csi', 'plugins',
                           node.alloc('plugin', 'g')['ID'], 'csi.sock.CreateVolume.last')) as file:
        last = json.dumps(json.load(file))
    assert 'hunter2' in last and 'sesame' in last, last
    storage.finish()


def daemon_that_dies_before_the_answer_asks_again():
    storage = Storage()
    storage.next('CreateVolume', 'did hang')
    storage.create_by_api('disk')
    wait_for('it to be begun', lambda: storage.state('disk') == 'creating')
    wait_for('the call', lambda: storage.calls('CreateVolume') == 1)
    storage.again()
    wait_for('the volume', lambda: storage.state('disk') == 'ready')
    assert storage.calls('CreateVolume') == 2 and os.path.isdir(storage.path('disk'))
    storage.next('DeleteVolume', 'did hang')
    try:
        storage.node.call('DELETE', '/v1/volume/csi/disk/delete', timeout_s=0.3 / PATIENCE)
    except OSError:
        pass
    wait_for('it to be begun', lambda: storage.state('disk') == 'deleting')
    wait_for('the call', lambda: storage.calls('DeleteVolume') == 1)
    storage.again()
    wait_for('the end of the volume', lambda: storage.state('disk') is None)
    assert storage.calls('DeleteVolume') == 2 and not os.path.exists(storage.path('disk'))
    storage.finish()


def plugin_that_dies_with_the_call_is_asked_again():
    storage = Storage()
    storage.next('CreateVolume', 'did die')
    told = storage.create('disk', check=False)
    assert 'CreateVolume' in told, told
    assert storage.state('disk') in ('creating', 'ready')
    wait_for('the volume', lambda: storage.state('disk') == 'ready')
    assert storage.calls('CreateVolume') == 2
    storage.next('ControllerExpandVolume', 'did die')
    told = storage.create('disk', '7MiB', check=False)
    assert 'unable to expand volume' in told, told
    wait_for('the larger volume', lambda: storage.get('disk')['Capacity'] == 7 << 20)
    storage.node.cli('volume', 'delete', 'disk')
    storage.finish()


class Asked(threading.Thread):
    """A caller, and what becomes of him: `failure` is None if he has his answer."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask, self.failure = ask, None
        self.start()

    def run(self):
        try:
            self.ask()
        except (OSError, http.client.HTTPException, Refused) as failure:
            self.failure = failure

    def end(self):
        self.join(timeout=20 * PATIENCE)
        assert not self.is_alive(), 'he still waits'
        return self.failure


def asks(storage):
    """What callers ask that a controller is called for, in this order: the method, how it is asked, and
    what is seen to be so when it has been done, and when it has not."""
    node = storage.node

    def put(path, size):
        node.put('/v1/volume/csi/' + path, {'Volumes': [{
            'ID': 'disk', 'Name': 'disk', 'ExternalID': 'disk', 'PluginID': 'test',
            'RequestedCapacityMin': size << 20, 'RequestedCapabilities': [
                {'AccessMode': 'single-node-writer', 'AttachmentMode': 'file-system'}]}]})

    def listed(path, kind, name):
        return [entry[name] for entry in node.get(path + '?plugin_id=test')[kind]]

    def snapshots():
        return listed('/v1/volumes/snapshot', 'Snapshots', 'ID')

    def detach():
        node.call('DELETE', '/v1/volume/csi/disk/detach?node=' + node.get('/v1/nodes')[0]['ID'])

    return (('ValidateVolumeCapabilities', lambda: put('disk', 0), lambda: storage.state('disk'),
             'ready'),
            ('ControllerExpandVolume', lambda: put('disk/create', 3),
             lambda: storage.get('disk')['Capacity'], 3 << 20),
            ('CreateSnapshot', lambda: node.put('/v1/volumes/snapshot', {'Snapshots': [
                {'SourceVolumeID': 'disk', 'Name': 's'}]}), snapshots, ['s']),
            ('ListSnapshots', snapshots, snapshots, ['s']),
            ('ListVolumes', lambda: node.get('/v1/volumes/external?plugin_id=test'),
             lambda: listed('/v1/volumes/external', 'Volumes', 'ExternalID'), ['disk']),
            ('DeleteSnapshot', lambda: node.call(
                'DELETE', '/v1/volumes/snapshot?plugin_id=test&snapshot_id=s'), snapshots, []),
            ('ControllerUnpublishVolume', detach, lambda: storage.state('disk'), 'ready'))


def each_call_is_survived_by_a_daemon_that_hears_no_answer():
    storage = Storage()
    os.mkdir(storage.path('disk'))
    for method, ask, seen, wanted in asks(storage):
        begun = storage.calls(method)
        storage.next(method, 'did hang')
        asked = Asked(ask)
        wait_for(method, lambda: storage.calls(method) > begun)
        storage.again()
        assert asked.end() is not None, method
        storage.await_plugin()
        if method == 'ControllerExpandVolume':  # which the daemon has promised to go on with
            wait_for('the larger volume', lambda: seen() == wanted)
        ask()
        assert seen() == wanted, (method, seen())
        assert storage.state('disk') == 'ready' and not storage.get('disk')['CairnFailure'], method
    storage.node.cli('volume', 'delete', 'disk')
    storage.finish()


def each_call_is_told_of_when_the_plugin_dies_with_it():
    storage = Storage()
    os.mkdir(storage.path('disk'))
    for method, ask, seen, wanted in asks(storage):
        storage.next(method, 'did die')
        told = Asked(ask).end()
        assert method + ': it closed the connection in the middle' in str(told), (method, told)
        storage.await_plugin()
        ask()
        assert seen() == wanted, (method, seen())
        assert storage.state('disk') == 'ready' and not storage.get('disk')['CairnFailure'], method
    storage.node.cli('volume', 'delete', 'disk')
    storage.finish()


def job(name, volume='disk'):
    group = service(raw_exec('t', 'echo %s >> /srv/who; exec sleep 1000' % name, Driver='exec',
                             VolumeMounts=[{'Volume': 'v', 'Destination': '/srv'}]))
    group['TaskGroups'][0]['Volumes'] = {'v': {
        'Type': 'csi', 'Source': volume, 'AccessMode': 'single-node-writer',
        'AttachmentMode': 'file-system'}}
    return dict(group, ID=name, Name=name)


def a_claim_attaches_and_its_end_detaches_over_crashes_of_both():
    storage = Storage()
    node = storage.node
    storage.create('disk')
    storage.next('ControllerPublishVolume', 'did hang')
    node.run_job(job('one'))
    wait_for('the call', lambda: storage.calls('ControllerPublishVolume') == 1)
    storage.again()
    wait_for('the first', lambda: node.running(job='one'))
    assert storage.calls('ControllerPublishVolume') == 2
    assert os.path.exists(storage.path('disk.attached'))
    held = storage.get('disk')
    assert held['AccessMode'] == 'single-node-writer' and len(held['WriteAllocs']) == 1
    assert [alloc['JobID'] for alloc in held['Allocations']] == ['one']
    told = node.cli('volume', 'delete', 'disk', check=False).stdout
    assert 'volume in use: disk' in told, told
    node.run_job(job('two'))
    told = node.cli('job', 'status', 'two').stdout
    assert 'CSI volume disk has exhausted its available writer claims' in told, told
    # The plugin dies when it is told to detach it.
    storage.next('ControllerUnpublishVolume', 'die')
    before = storage.plugin_pid()
    node.call('DELETE', '/v1/job/one')
    wait_for('the second', lambda: node.running(job='two'), limit_s=60)
    who = storage.path('disk') + '/who'
    wait_for('what it writes', lambda: os.path.exists(who) and 'two' in open(who).read())
    storage.in_order()
    node.call('DELETE', '/v1/job/two')
    wait_for('the end', lambda: not os.path.exists(storage.path('disk.attached')), limit_s=60)
    wait_for('no claim', lambda: not storage.get('disk')['WriteAllocs'])
    storage.in_order()
    assert storage.plugin_pid() != before
    node.cli('volume', 'delete', 'disk')
    storage.finish()


def plugin_tells_what_it_has_left():
    storage = Storage()
    node = storage.node

    def capacity():
        return node.get('/v1/plugin/csi/test?capacity=true')['CairnCapacity']

    assert capacity() == {'AvailableBytes': 1 << 40}, capacity()
    assert re.search(r'^Available +=.*1\.0 TiB$', node.cli('plugin', 'status', 'test').stdout, re.M)
    storage.next('GetCapacity', 'say 13 broken')
    assert 'broken' in node.cli('plugin', 'status', 'test').stdout
    storage.next('GetCapacity', 'raw ffffff')
    assert 'no message of CSI' in capacity()['Error']
    storage.next('GetCapacity', 'hang')
    assert 'GetCapacity' in capacity()['Error']
    assert 'CairnCapacity' not in node.get('/v1/plugin/csi/test')
    storage.finish()


def what_is_mounted_grows_with_its_storage():
    storage = Storage()
    node = storage.node
    storage.create('disk')
    storage.create('disk', '2MiB')  # nobody has it mounted: it grows when somebody has
    assert storage.calls('NodeExpandVolume') == 0
    node.run_job(job('one'))
    wait_for('the payload', lambda: node.running(job='one'))
    wait_for('it to grow', lambda: '\n< NodeExpandVolume' in storage.text('calls'))
    assert storage.calls('NodeExpandVolume') == 1
    # Both die when it is to grow while it is mounted.
    storage.next('NodeExpandVolume', 'die')
    before = storage.plugin_pid()
    told = storage.create('disk', '4MiB', check=False)
    assert 'its storage has grown, but not what is mounted of it' in told, told
    storage.again()
    wait_for('it to grow at last', lambda: '\n< NodeExpandVolume' in storage.text('calls')
             .split('NodeExpandVolume', 4)[-1], limit_s=60)
    assert storage.plugin_pid() != before
    shown = storage.get('disk')
    assert shown['Capacity'] == shown['RequestedCapacityMin'] == 4 << 20, shown
    assert node.running(job='one')['Restarts'] == 0
    storage.next('NodeExpandVolume', 'say 3 too large')
    told = storage.create('disk', '8MiB', check=False)
    assert 'INVALID_ARGUMENT: too large' in told, told
    assert 'too large' in node.cli('volume', 'status', 'disk').stdout
    node.call('DELETE', '/v1/job/one')
    wait_for('no claim', lambda: not storage.get('disk')['WriteAllocs'])
    node.cli('volume', 'delete', 'disk')
    storage.finish()


def completed(node, *words):
    """What a shell offers for the last of these words."""
    script = 'source <(cairn completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cairn; ' \
        'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(['bash', '-c', script, '-', 'cairn', *words], check=True, text=True,
                          env={'PATH': node.build + ':' + os.environ['PATH'],
                               'NOMAD_ADDR': 'http://127.0.0.1:%d' % node.port},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return sorted(done.stdout.split('\n')[:-1])


def a_shell_completes_ids_as_text():
    storage = Storage()
    node = storage.node
    for name in ('disk', 'dish[1]', 'other'):
        storage.create(name)
    node.run_job(dict(service(raw_exec('t', 'true'), Count=0), ID='d$(ls)', Name='d'))
    alloc, own = node.alloc('plugin', 'g')['ID'], node.get('/v1/nodes')[0]['ID']
    found = completed(node, 'volume', 'status', 'dis')
    assert found == ['dish\\[1\\]', 'disk'], found
    assert completed(node, 'volume', 'delete', 'dish\\[') == ['dish\\[1\\]']
    assert completed(node, 'volume', 'detach', 'disk', own[:4]) == [own]
    assert completed(node, 'plugin', 'status', '') == ['test']
    assert completed(node, 'job', 'stop', 'd') == ['d\\$\\(ls\\)']
    assert completed(node, 'alloc', 'logs', '-f', alloc[:2]) == [alloc]
    assert completed(node, 'volume', 'status', '-sho') == ['-short']
    assert completed(node, 'volume', 'create', 'd') == ['']
    for name in ('disk', 'dish[1]', 'other'):
        node.cli('volume', 'delete', name)
    node.kill()
    assert completed(node, 'volume', 'status', 'd') == ['']
    node.start()
    storage.finish()


def refusals_are_told_and_change_nothing():
    storage = Storage()
    node = storage.node
    storage.next('CreateVolume', 'say 11 too large a volume')
    told = storage.create('disk', check=False)
    assert 'OUT_OF_RANGE: too large a volume' in told, told
    assert storage.state('disk') is None and 'asked again' not in told
    storage.next('CreateVolume', 'say 13 no idea')
    told = storage.create('disk', check=False)
    assert 'INTERNAL: no idea' in told and 'hint: what came of it is not known' in told, told
    storage.create('disk')
    storage.next('DeleteVolume', 'say 9 it has snapshots')
    told = node.cli('volume', 'delete', 'disk', check=False).stdout
    assert 'FAILED_PRECONDITION: it has snapshots' in told, told
    assert storage.state('disk') == 'ready' and os.path.isdir(storage.path('disk'))
    told = node.cli('volume', 'delete', 'disc', check=False).stdout
    assert 'no volume of type csi has an id that begins with "disc"' in told
    for wrong, words in ((dict(ID='a/b'), "the volume's id"), (dict(PluginID='none'), 'no CSI plugin'),
                         (dict(RequestedCapabilities=[]), 'at least one capability'),
                         (dict(ExternalID='gone'), 'NOT_FOUND')):
        volume = dict({'ID': 'v', 'Name': 'v', 'PluginID': 'test', 'RequestedCapabilities': [
            {'AccessMode': 'single-node-writer', 'AttachmentMode': 'file-system'}]}, **wrong)
        try:
            node.put('/v1/volume/csi/v', {'Volumes': [volume]})
        except Refused as answer:
            assert words in str(answer), answer
        else:
            raise AssertionError('taken: %r' % wrong)
    try:
        node.call('PUT', '/v1/volume/csi/%s/create' % ('x' * 4096), {})
        raise AssertionError('its id is too long')
    except Refused as answer:
        assert answer.status == 414 and 'too long' in str(answer), answer
    os.mkdir(storage.path('there'))
    node.cli('volume', 'register', storage.file('there'))
    assert node.cli('volume', 'deregister', 'there').stdout.startswith('Successfully')
    assert os.path.isdir(storage.path('there'))
    storage.finish()


sys.exit(tap([
    volume_is_made_shown_changed_and_deleted,
    nothing_tells_a_secret,
    daemon_that_dies_before_the_answer_asks_again,
    plugin_that_dies_with_the_call_is_asked_again,
    each_call_is_survived_by_a_daemon_that_hears_no_answer,
    each_call_is_told_of_when_the_plugin_dies_with_it,
    a_claim_attaches_and_its_end_detaches_over_crashes_of_both,
    plugin_tells_what_it_has_left,
    what_is_mounted_grows_with_its_storage,
    a_shell_completes_ids_as_text,
    refusals_are_told_and_change_nothing,
]))
