#!/usr/bin/env python3
"""Host volumes: made by the plugin inside and by programs, registered, mounted by tasks, changed,
deleted; over plugins that refuse, say nonsense, hang and die, and over crashes of the daemon."""
import json
import os
import signal
import stat
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (Node, Refused, milliseconds, raw_exec, restart_policy, service,  # noqa: E402
                 start_ticks, tap, wait_for)

# What it is told is written down beside it; a file in its own directory says how it fails.
PLUGIN = r'''#!/bin/sh
here=$(dirname "$0")
mood=$(cat "$here/../mood" 2>/dev/null)
printf '%s %s\n' "$1" "$DHV_VOLUME_NAME" >> "$here/../calls"
env | sort > "$here/../env.$1"
test "$1" = fingerprint && { echo '{"version": "1.2.3"}'; exit 0; }
test "$mood" = hang && { echo $$ > "$here/../hangs"; exec sleep 600; }
test "$mood" = much && exec yes
test "$mood" = refuse && { echo '{"error": "no room left"}'; exit 3; }
test "$mood" = nonsense-$1 && { mkdir -p "$DHV_VOLUMES_DIR/$DHV_VOLUME_ID"; echo made; exit 0; }
case $1 in
create)
    mkdir -p "$DHV_VOLUMES_DIR/$DHV_VOLUME_ID"
    printf '{"path": "%s", "bytes": %s}\n' "$DHV_VOLUMES_DIR/$DHV_VOLUME_ID" \
        "$DHV_CAPACITY_MIN_BYTES";;
delete) rm -rf "$DHV_VOLUMES_DIR/$DHV_VOLUME_ID";;
esac
'''


class Hosted:
    """A node with a plugin of its own."""

    def __init__(self):
        self.node = Node()
        self.dir = self.node.dir
        os.chmod(self.dir, 0o711)
        plugins = os.path.join(self.dir, 'plugins')
        os.mkdir(plugins)
        with open(os.path.join(plugins, 'own'), 'w') as file:
            file.write(PLUGIN)
        os.chmod(os.path.join(plugins, 'own'), 0o755)
        with open(os.path.join(plugins, 'no-program'), 'w') as file:
            file.write('text')
        self.volumes = os.path.join(self.dir, 'volumes')
        config = os.path.join(self.dir, 'hosted.hcl')
        with open(config, 'w') as file:
            file.write('client {\n  host_volume_plugin_dir = "%s"\n  host_volumes_dir = "%s"\n}\n'
                       % (plugins, self.volumes))
        self.node.config = config
        self.node.start()

    def mood(self, mood):
        path = os.path.join(self.dir, 'mood')
        with open(path + '.new', 'w') as file:
            file.write(mood)
        os.rename(path + '.new', path)

    def calls(self):
        with open(os.path.join(self.dir, 'calls')) as file:
            return file.read().split('\n')[:-1]

    def told(self, operation):
        with open(os.path.join(self.dir, 'env.' + operation)) as file:
            return dict(line.split('=', 1) for line in file.read().split('\n') if '=' in line)

    def create(self, name, plugin='mkdir', **more):
        return self.node.put('/v1/volume/host/create',
                             {'Volume': dict(more, Name=name, PluginID=plugin)})['Volume']

    def get(self, volume):
        return self.node.get('/v1/volume/host/' + volume['ID'])

    def named(self):
        return {volume['Name']: volume for volume in self.node.get('/v1/volumes?type=host')}

    def delete(self, volume):
        self.node.call('DELETE', '/v1/volume/host/' + volume['ID'])

    def hanging(self):
        """The process that hangs, None: there is none."""
        try:
            with open(os.path.join(self.dir, 'hangs')) as file:
                pid = int(file.read())
        except (FileNotFoundError, ValueError):
            return None
        return pid if start_ticks(pid) is not None else None

    def await_state(self, volume, state):
        wait_for('%s to be %s' % (volume['Name'], state),
                 lambda: self.get(volume)['State'] == state)

    def crash(self):
        self.node.kill()
        self.node.start()

    def id(self):
        return self.node.get('/v1/nodes')[0]['ID']

    def finish(self):
        assert self.named() == {}, self.named()
        assert not os.path.exists(self.volumes) or os.listdir(self.volumes) == []
        self.node.finish()


def refused(words, function, *args, **more):
    try:
        function(*args, **more)
    except Refused as answer:
        assert words in str(answer), answer
        return
    raise AssertionError('it was not refused: ' + words)


def job(name, script, source, volume=None, count=1):
    task = raw_exec('t', script, Driver='exec', KillTimeout=milliseconds(200),
                    VolumeMounts=[{'Volume': 'v', 'Destination': '/srv/v'}])
    made = service(task, restart=restart_policy(0))
    made['TaskGroups'][0]['Count'] = count
    made['TaskGroups'][0]['Volumes'] = {'v': dict(volume or {}, Type='host', Source=source)}
    return dict(made, ID=name, Name=name)


def running(node, name):
    return [alloc for alloc in node.allocs(name) if alloc['ClientStatus'] == 'running']


def stop(node, name):
    node.call('DELETE', '/v1/job/%s' % name)
    wait_for('%s to end' % name, lambda: not [
        alloc for alloc in node.allocs(name) if alloc['ClientStatus'] in ('pending', 'running')])


def runs(node, name):
    wait_for(name, lambda: running(node, name))


def directory_is_made_mounted_and_deleted():
    """A directory: its mode, a task that writes into it, the same volume for the next one."""
    hosted = Hosted()
    node = hosted.node
    volume = hosted.create('data', Parameters={'mode': '0751', 'uid': '1234', 'gid': '4321'})
    assert volume['State'] == 'ready' and volume['PluginID'] == 'mkdir', volume
    assert volume['HostPath'] == os.path.join(hosted.volumes, volume['ID'])
    status = os.stat(volume['HostPath'])
    assert stat.S_IMODE(status.st_mode) == 0o751 and status.st_uid == 1234 \
        and status.st_gid == 4321
    os.chmod(volume['HostPath'], 0o777)
    node.run_job(job('writer', 'echo "$NOMAD_ALLOC_ID" > /srv/v/who; exec sleep 1000', 'data',
                     {'Sticky': True}))
    wait_for('the task', lambda: os.path.exists(os.path.join(volume['HostPath'], 'who')))
    users = hosted.get(volume)['Allocations']
    assert [user['JobID'] for user in users] == ['writer'], users
    refused('in use by allocations', hosted.delete, volume)
    refused('cannot update a volume in use', hosted.create, 'data', ID=volume['ID'],
            Parameters={'mode': '0700'})
    node_says = node.get('/v1/node/' + volume['NodeID'])
    assert node_says['HostVolumes']['data']['ID'] == volume['ID']
    stop(node, 'writer')
    node.run_job(job('reader', 'mv /srv/v/who /srv/v/seen && exec sleep 1000', 'data'))
    runs(node, 'reader')
    wait_for('it to see what the one before wrote',
             lambda: os.path.exists(os.path.join(volume['HostPath'], 'seen')))
    stop(node, 'reader')
    hosted.delete(volume)
    assert not os.path.exists(volume['HostPath']) and 'data' not in hosted.named()
    hosted.finish()
    return None


def what_cannot_be_made_is_refused_by_name():
    """What cannot be made is refused by name, and leaves nothing."""
    hosted = Hosted()
    volume = hosted.create('once')
    refused('volume name already exists on this node', hosted.create, 'once')
    refused('unknown mkdir parameter', hosted.create, 'odd', Parameters={'color': 'red'})
    refused('invalid value for', hosted.create, 'odd', Parameters={'mode': '9'})
    refused('has no host volume plugin', hosted.create, 'odd', 'default')
    refused('has no host volume plugin', hosted.create, 'odd', '../mood')
    refused('has no host volume plugin', hosted.create, 'odd', 'no-program')
    refused('missing name', hosted.create, '')
    refused('capacity_max', hosted.create, 'odd', RequestedCapacityMinBytes=10,
            RequestedCapacityMaxBytes=5)
    refused('invalid access mode', hosted.create, 'odd', RequestedCapabilities=[
        {'AccessMode': 'multi-node-multi-writer', 'AttachmentMode': 'file-system'}])
    refused('does not exist', hosted.create, 'odd', NodeID='0' * 8 + '-0000' * 3 + '-' + '0' * 12)
    refused('no node meets constraints', hosted.create, 'odd', Constraints=[
        {'LTarget': '${attr.kernel.name}', 'RTarget': 'plan9', 'Operand': '='}])
    refused('invalid ID', hosted.create, 'odd', ID='../../etc')
    refused('host path is required', hosted.node.put, '/v1/volume/host/register',
            {'Volume': {'Name': 'odd', 'NodeID': volume['NodeID']}})
    refused('could not verify host path', hosted.node.put, '/v1/volume/host/register',
            {'Volume': {'Name': 'odd', 'NodeID': volume['NodeID'], 'HostPath': '/no/such'}})
    assert sorted(hosted.named()) == ['once'] and os.listdir(hosted.volumes) == [volume['ID']]
    hosted.delete(volume)
    refused('no such volume', hosted.delete, volume)
    hosted.finish()
    return None


def program_makes_changes_and_deletes():
    """A program: what it is told, what it answers, its version as an attribute."""
    hosted = Hosted()
    wait_for('its version', lambda: hosted.node.get(
        '/v1/node/' + hosted.id())['Attributes'].get(
            'plugins.host_volume.own.version') == '1.2.3')
    volume = hosted.create('disk', 'own', RequestedCapacityMinBytes=4096,
                           RequestedCapacityMaxBytes=8192, Parameters={'a': 'b c'})
    told = hosted.told('create')
    assert volume['CapacityBytes'] == 4096 and volume['State'] == 'ready'
    assert json.loads(told['DHV_PARAMETERS']) == {'a': 'b c'}
    assert (told['DHV_OPERATION'], told['DHV_VOLUME_ID'], told['DHV_NAMESPACE'],
            told['DHV_CAPACITY_MAX_BYTES'], told['DHV_NODE_ID'], told['DHV_NODE_POOL']) \
        == ('create', volume['ID'], 'default', '8192', volume['NodeID'], 'default')
    assert 'HOME' not in told
    larger = hosted.create('disk', 'own', ID=volume['ID'], RequestedCapacityMinBytes=6000,
                           RequestedCapacityMaxBytes=8192)
    assert larger['CapacityBytes'] == 6000 and larger['ID'] == volume['ID']
    hosted.mood('refuse')
    refused('no room left', hosted.create, 'disk', 'own', ID=volume['ID'],
            RequestedCapacityMinBytes=7000, RequestedCapacityMaxBytes=8192)
    same = hosted.get(volume)
    assert same['CapacityBytes'] == 6000 and same['State'] == 'ready' \
        and same['RequestedCapacityMinBytes'] == 6000, same
    refused('no room left', hosted.create, 'other', 'own')
    refused('no room left', hosted.delete, volume)
    assert sorted(hosted.named()) == ['disk']
    hosted.mood('nonsense-create')
    refused('does not say as JSON', hosted.create, 'other', 'own')
    wait_for('what was made to be deleted', lambda: sorted(hosted.named()) == ['disk'])
    hosted.mood('')
    hosted.delete(volume)
    assert hosted.told('delete')['DHV_CREATED_PATH'] == volume['HostPath']
    assert os.listdir(hosted.volumes) == []
    hosted.finish()
    return None


def what_somebody_else_made_is_mounted_and_left():
    """What somebody else has made is mounted, and is left to him."""
    hosted = Hosted()
    node, path = hosted.node, os.path.join(hosted.dir, 'theirs')
    os.mkdir(path)
    os.chmod(path, 0o777)
    volume = node.put('/v1/volume/host/register', {'Volume': {
        'Name': 'theirs', 'NodeID': hosted.id(), 'HostPath': path,
        'CapacityBytes': 77}})['Volume']
    assert volume['State'] == 'ready' and volume['CapacityBytes'] == 77, volume
    node.run_job(job('b', 'echo here > /srv/v/file; exec sleep 1000', 'theirs'))
    wait_for('the file', lambda: os.path.exists(os.path.join(path, 'file')))
    stop(node, 'b')
    hosted.crash()
    hosted.await_state(volume, 'ready')
    assert hosted.get(volume)['CapacityBytes'] == 77
    hosted.delete(volume)
    assert os.path.exists(os.path.join(path, 'file'))
    hosted.finish()
    return None


def single_writer_is_one_and_who_waits_gets_it():
    """A job gets a volume as what it was made for, and one that has a single writer once."""
    hosted = Hosted()
    node = hosted.node
    one = hosted.create('one', RequestedCapabilities=[
        {'AccessMode': 'single-node-single-writer', 'AttachmentMode': 'file-system'}])
    mode = {'AccessMode': 'single-node-single-writer', 'AttachmentMode': 'file-system'}
    node.run_job(job('two', 'exec sleep 1000', 'one', mode, count=2))
    runs(node, 'two')
    assert len(node.allocs('two')) == 1
    node.run_job(job('plain', 'exec sleep 1000', 'one'))
    evaluations = node.get('/v1/job/plain/evaluations')
    assert 'has no capability single-node-writer' in json.dumps(evaluations), evaluations
    node.run_job(job('missing', 'exec sleep 1000', 'late'))
    assert node.allocs('missing') == []
    late = hosted.create('late')  # and whoever waited for it gets it
    runs(node, 'missing')
    for name in ('two', 'plain', 'missing'):
        stop(node, name)
    hosted.delete(one)
    hosted.delete(late)
    hosted.finish()
    return None


def daemon_dies_while_a_plugin_works():
    """The daemon dies while a plugin works: the volume is asked for again until it is there; and
    so is each one when it comes back, before a task starts on it."""
    hosted = Hosted()
    node = hosted.node
    hosted.mood('hang')
    asking = threading.Thread(target=lambda: ignore(hosted.create, 'slow', 'own'))
    asking.start()
    pid = wait_for('it to hang', hosted.hanging)
    assert hosted.named()['slow']['State'] == 'pending'
    node.kill()
    asking.join()
    hosted.mood('')
    os.kill(pid, signal.SIGKILL)
    node.start()
    volume = hosted.named()['slow']
    hosted.await_state(volume, 'ready')
    assert os.listdir(hosted.volumes) == [volume['ID']]
    os.chmod(hosted.get(volume)['HostPath'], 0o777)
    node.run_job(job('user', 'exec sleep 1000', 'slow'))
    runs(node, 'user')
    before = len(hosted.calls())
    hosted.crash()
    hosted.await_state(volume, 'ready')
    assert 'create slow' in hosted.calls()[before:]
    runs(node, 'user')
    hosted.mood('refuse')
    hosted.crash()
    hosted.await_state(volume, 'unavailable')
    assert 'no room left' in hosted.get(volume)['CairnFailure']
    runs(node, 'user')  # who has it keeps it
    hosted.mood('')
    hosted.crash()
    hosted.await_state(volume, 'ready')
    stop(node, 'user')
    hosted.delete(volume)
    assert os.listdir(hosted.volumes) == []
    hosted.finish()
    return None


def plugin_that_talks_too_much_is_asked_again():
    """One that never stops talking is ended, and asked again until it says what came of it."""
    hosted = Hosted()
    hosted.mood('much')
    refused('it says more than 262144 bytes', hosted.create, 'disk', 'own')
    volume = hosted.named()['disk']
    assert hosted.get(volume)['State'] == 'pending', volume
    assert 'more than 262144 bytes' in hosted.get(volume)['CairnFailure']
    hosted.mood('')
    hosted.await_state(volume, 'ready')
    assert hosted.get(volume)['CairnFailure'] == ''
    hosted.mood('nonsense-delete')  # what it says of a deletion is of no interest
    hosted.delete(volume)
    os.rmdir(os.path.join(hosted.volumes, volume['ID']))
    hosted.finish()
    return None


def plugin_that_hangs_keeps_nothing_else():
    """A plugin that hangs keeps only those waiting who start with its volume, until they are told
    to end; other volumes and the daemon's own end go on at once."""
    hosted = Hosted()
    node = hosted.node
    volume = hosted.create('disk', 'own')
    os.chmod(volume['HostPath'], 0o777)
    node.run_job(job('user', 'exec sleep 1000', 'disk'))
    runs(node, 'user')
    alloc = running(node, 'user')[0]['ID']
    hosted.mood('hang')
    hosted.crash()
    pid = wait_for('it to hang', hosted.hanging)
    runs(node, 'user')
    node.put('/v1/client/allocation/%s/restart' % alloc, {})
    wait_for('the start to wait', lambda: node.task('user', 'g', 't')['State'] == 'pending')
    node.run_job(job('other', 'exec sleep 1000', 'quick'))
    quick = hosted.create('quick')
    runs(node, 'other')
    stop(node, 'other')
    hosted.delete(quick)
    assert node.task('user', 'g', 't')['State'] == 'pending'
    stop(node, 'user')
    assert hosted.hanging() == pid and hosted.get(volume)['State'] == 'pending'
    assert node.terminate() == 0
    assert hosted.hanging() is None
    hosted.mood('')
    node.start()
    hosted.await_state(volume, 'ready')
    hosted.delete(volume)
    hosted.finish()
    return None


def commands_do_what_the_api_does():
    """A file describes one; commands make it, register it, show it and delete it."""
    hosted = Hosted()
    node, path = hosted.node, os.path.join(hosted.dir, 'data.hcl')
    node.cli('volume', 'init', '-type', 'host', path)
    made = node.cli('volume', 'create', path).stdout
    assert made.startswith('Created host volume data with ID '), made
    volume = hosted.named()['data']
    shown = node.cli('volume', 'status', '-type', 'host', 'data').stdout
    for words in (volume['ID'], 'mkdir', 'ready', hosted.get(volume)['HostPath'],
                  'single-node-writer'):
        assert words in shown, shown
    assert volume['ID'][:8] in node.cli('volume', 'status').stdout
    again = node.cli('volume', 'create', path, check=False)
    assert again.returncode == 1 and 'volume name already exists on this node' in again.stdout
    theirs = os.path.join(hosted.dir, 'theirs')
    os.mkdir(theirs)
    with open(path, 'w') as file:
        file.write('type = "host"\nname = "theirs"\nnode_id = "%s"\nhost_path = "%s"\n'
                   % (hosted.id(), theirs))
    assert node.cli('volume', 'register', path).stdout.startswith('Registered host volume theirs')
    for name in ('data', 'theirs'):
        node.cli('volume', 'delete', '-type', 'host', name)
    with open(path, 'w') as file:
        file.write('type = "host"\nname = "odd"\nexternal_id = "1"\n')
    wrong = node.cli('volume', 'create', path, check=False)
    assert wrong.returncode != 0 and 'external_id' in wrong.stdout, wrong.stdout
    hosted.finish()
    return None


def ignore(function, *args):
    try:
        function(*args)
    except Exception:  # the daemon is killed while it is asked
        pass


sys.exit(tap([
    directory_is_made_mounted_and_deleted,
    what_cannot_be_made_is_refused_by_name,
    program_makes_changes_and_deletes,
    what_somebody_else_made_is_mounted_and_left,
    single_writer_is_one_and_who_waits_gets_it,
    daemon_dies_while_a_plugin_works,
    plugin_that_talks_too_much_is_asked_again,
    plugin_that_hangs_keeps_nothing_else,
    commands_do_what_the_api_does,
]))
