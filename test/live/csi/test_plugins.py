#!/usr/bin/env python3
"""Storage plugins that run as tasks: watched, told of, started again, taken over, found again.

The plugin is test/csi/plugin.py, which stands on another implementation of gRPC.
R-49, R-50, R-51.

In a whole run it waits for 100 s.
"""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, Node, Refused, events, milliseconds, raw_exec,  # noqa: E402
                 restart_policy, service, start_ticks, tap, wait_for)
from storage import PLUGIN  # noqa: E402

HEALTHY, UNHEALTHY = 'Plugin became healthy', 'Plugin became unhealthy'


def plugin_job(node, name, kind='monolith', plugin='disks', script=None, restart=None,
               timeout_ms=30000, mark=''):
    """A service whose one task is the plugin; what it is to do is in node.dir/NAME."""
    directory = os.path.join(node.dir, name)
    os.makedirs(directory, exist_ok=True)
    config = {'command': '/usr/bin/python3', 'args': [os.path.abspath(PLUGIN), '-', directory]}
    if script:
        config = {'command': '/bin/sh', 'args': ['-c', script]}
    task = raw_exec('plugin', '', Config=config, KillTimeout=milliseconds(2000),
                    Env={'VERSION': mark}, Resources={'CPU': 50, 'MemoryMB': 64},
                    CSIPluginConfig={'ID': plugin, 'Type': kind,
                                     'HealthTimeout': milliseconds(timeout_ms)})
    job = service(task, restart=restart or restart_policy(20, 10))
    job['TaskGroups'][0]['ReschedulePolicy'] = NO_RESCHEDULE
    return dict(job, ID=name, Name=name)


def next_calls(node, name, method, *commands):
    path = os.path.join(node.dir, name, 'next.' + method)
    with open(path + '.new', 'w') as file:
        file.write('\n'.join(commands) + '\n')
    os.rename(path + '.new', path)


def told(node, name):
    """Types of the events of its task, the oldest first."""
    allocs = node.allocs(name)
    return events((allocs[0]['TaskStates'] or {}).get('plugin')) if allocs else []


def shown(node, plugin='disks'):
    try:
        return node.get('/v1/plugin/csi/' + plugin)
    except Refused as refused:
        assert refused.status == 404, refused
        return None


def healthy(node, plugin='disks'):
    found = shown(node, plugin)
    return bool(found) and found['NodesHealthy'] == 1


def await_healthy(node, plugin='disks'):
    wait_for('plugin %s to be healthy' % plugin, lambda: healthy(node, plugin), 30)


def of_node(node):
    return node.get('/v1/node/' + node.get('/v1/nodes')[0]['ID'])


def pid(node, name):
    """Of the plugin's process, by its directory."""
    directory = os.path.join(node.dir, name).encode()
    for entry in os.listdir('/proc'):
        with contextlib.suppress(OSError, ValueError):
            with open('/proc/%d/cmdline' % int(entry), 'rb') as line:
                if line.read().split(b'\0')[-2:-1] == [directory]:
                    return int(entry)
    return None


def csi(node, *names):
    return os.path.join(node.data, 'client', 'csi', *names)


def steps(node, kind='plugin'):
    """What the journal says of machines of KIND: "PROBING -PROBED-> IDENTIFYING ..." each."""
    lines = node.cli('journal', 'log', '-dir', node.data, '-kind', kind).stdout.splitlines()
    return [line.split(None, 4)[4] for line in lines if '->' in line]


def a_plugin_is_told_of_by_node_api_and_command():
    node = Node()
    node.start()
    node.run_job(plugin_job(node, 'disks'))
    await_healthy(node)
    wait_for('the event', lambda: HEALTHY in told(node, 'disks'))
    whole = of_node(node)
    info = whole['CSINodePlugins']['disks']
    assert info['Healthy'] and info['HealthDescription'] == 'healthy', info
    assert info['Provider'] == 'test.cairn.example' and info['ProviderVersion'] == '1.2.3', info
    assert info['NodeInfo']['RequiresNodeStageVolume'] and info['NodeInfo']['ID'], info
    assert info['NodeInfo']['AccessibleTopology']['Segments'], info
    assert info['AllocID'] == node.alloc('disks', 'g')['ID'] and 'ControllerInfo' not in info
    assert whole['CSIControllerPlugins']['disks']['ControllerInfo']['SupportsCreateDelete']
    listed = node.get('/v1/plugins?type=csi')
    assert [plugin['ID'] for plugin in listed] == ['disks'], listed
    assert node.get('/v1/plugins') == [] and node.get('/v1/plugins?type=csi&prefix=x') == []
    one = shown(node)
    assert one['ControllersHealthy'] == one['ControllersExpected'] == one['NodesExpected'] == 1
    assert [alloc['ID'] for alloc in one['Allocations']] == [info['AllocID']]
    assert 'disks' in node.put('/v1/search', {'Prefix': 'd', 'Context': 'plugins'})['Matches'][
        'plugins']
    output = node.cli('plugin', 'status', 'd').stdout
    assert 'Nodes Healthy        = 1' in output and info['AllocID'][:8] in output, output
    assert 'STAGE_UNSTAGE_VOLUME' in node.cli('plugin', 'status', '-verbose', 'disks').stdout
    assert 'disks  test.cairn.example  1/1' in node.cli('plugin', 'status').stdout
    root, socket = csi(node, 'node', 'disks'), csi(node, 'plugins', info['AllocID'])
    assert os.stat(root).st_mode & 0o777 == os.stat(socket).st_mode & 0o777 == 0o700
    node.cli('job', 'stop', '-detach', 'disks')
    wait_for('its end', lambda: shown(node) is None and not of_node(node)['CSINodePlugins'])
    # Nobody is told of it any more when its process has ended; the rest of its end follows.
    wait_for('the rest', lambda: steps(node)[-1].startswith('STOPPING -STOPPED[REMOVE_WANTED]-> GONE'))
    wait_for('the socket to go', lambda: not os.path.exists(socket))
    assert os.path.isdir(root)
    node.finish()


def what_never_listens_is_started_again_until_its_policy_is_used_up():
    node = Node()
    node.start()
    node.run_job(plugin_job(node, 'dumb', script='exec sleep 1000', timeout_ms=700,
                            restart=restart_policy(1, 10)))
    wait_for('its end', lambda: node.allocs('dumb')[0]['ClientStatus'] == 'failed', 30)
    said = told(node, 'dumb')
    assert said.count(UNHEALTHY) == 2 and said.count('Restarting') == 1, said
    assert said.count('Not Restarting') == 1 and HEALTHY not in said, said
    messages = [event['DisplayMessage'] for event in
                node.allocs('dumb')[0]['TaskStates']['plugin']['Events']]
    assert 'CSI plugin did not become healthy before configured 700ms health timeout' in messages
    assert shown(node)['NodesHealthy'] == 0 and shown(node)['NodesExpected'] == 1
    assert of_node(node)['CSINodePlugins'] == {}
    assert '0/1' in node.cli('plugin', 'status').stdout
    node.finish()


def probes_that_hang_take_no_longer_than_the_time_there_is():
    node = Node()
    node.start()
    job = plugin_job(node, 'slow', timeout_ms=7000, restart=restart_policy(1, 10))
    next_calls(node, 'slow', 'Probe', *['hang'] * 9)
    begun = time.monotonic()
    node.run_job(job)
    time.sleep(3)
    node.kill()  # the time goes on, and the daemon looks once more before it is over
    node.start()
    wait_for('what it did', lambda: 'Restart Signaled' in told(node, 'slow'), 30)
    took = time.monotonic() - begun
    assert took > 6.5, took
    os.unlink(os.path.join(node.dir, 'slow', 'next.Probe'))
    await_healthy(node)
    assert told(node, 'slow').count('Restarting') == 1, told(node, 'slow')
    node.finish()


def one_that_cannot_say_who_it_is_is_told_of_long_before_its_time_is_over():
    directory = tempfile.mkdtemp(prefix='cairn-plugin-')
    socket = os.path.join(directory, 'csi.sock')
    node = Node(config='client {\n  csi_plugin "others" {\n    type = "node"\n    socket = "%s"\n  }\n}\n'
                % socket)
    node.start()
    job = plugin_job(node, 'disks', timeout_ms=600000)
    next_calls(node, 'disks', 'GetPluginInfo', *['say 14 it has no version'] * 90)
    node.run_job(job)
    wait_for('the event', lambda: UNHEALTHY in told(node, 'disks'), 30)
    messages = [event['DisplayMessage'] for event in
                node.allocs('disks')[0]['TaskStates']['plugin']['Events']]
    assert [message for message in messages if 'it has no version' in message], messages
    assert 'it has no version' in node.cli('plugin', 'status', 'disks').stdout
    assert 'plugin=disks' in node.log() and 'it has no version' in node.log(), node.log()
    assert of_node(node)['CSINodePlugins'] == {}
    with open(os.path.join(directory, 'next.Probe'), 'w') as file:
        file.write('say 9 no disk is in it\n' * 90)
    with run_by_somebody_else(socket, directory):
        wait_for('its words', lambda: 'no disk is in it' in shown(node, 'others')['CairnFailure'], 30)
        assert shown(node, 'others')['NodesExpected'] == 1
        wait_for('its line', lambda: 'plugin=others' in node.log(), 30)
        os.unlink(os.path.join(directory, 'next.Probe'))
        await_healthy(node, 'others')
        assert shown(node, 'others')['CairnFailure'] == ''
    os.unlink(os.path.join(node.dir, 'disks', 'next.GetPluginInfo'))
    await_healthy(node)
    wait_for('the event', lambda: told(node, 'disks')[-1] == HEALTHY)
    assert told(node, 'disks').count(UNHEALTHY) == 1 and 'Restarting' not in told(node, 'disks')
    node.finish()
    shutil.rmtree(directory)


def one_that_is_unwell_says_so_and_when_it_is_well_again():
    node = Node()
    node.start()
    node.run_job(plugin_job(node, 'disks'))
    node.run_job(plugin_job(node, 'others', plugin='others', timeout_ms=2000))
    await_healthy(node)
    await_healthy(node, 'others')
    ticks = start_ticks(pid(node, 'disks'))
    next_calls(node, 'disks', 'Probe', 'say 14 a disk is gone')
    next_calls(node, 'others', 'Probe', *['raw 0a00'] * 9)  # not ready, and it stays so
    wait_for('the event', lambda: UNHEALTHY in told(node, 'disks'), 45)
    info = of_node(node)['CSINodePlugins']['disks']
    if not info['Healthy']:  # it is well again soon
        assert 'a disk is gone' in info['HealthDescription'], info
    await_healthy(node)
    wait_for('the event', lambda: told(node, 'disks')[-1] == HEALTHY)
    assert start_ticks(pid(node, 'disks')) == ticks
    wait_for('a restart', lambda: 'Restarting' in told(node, 'others'), 45)
    os.unlink(os.path.join(node.dir, 'others', 'next.Probe'))
    await_healthy(node, 'others')
    node.finish()


def one_that_dies_is_back_with_its_task():
    node = Node()
    node.start()
    node.run_job(plugin_job(node, 'disks'))
    await_healthy(node)
    first = pid(node, 'disks')
    os.kill(first, signal.SIGKILL)
    wait_for('another', lambda: pid(node, 'disks') not in (None, first))
    wait_for('its word', lambda: told(node, 'disks').count(HEALTHY) == 2)
    assert UNHEALTHY not in told(node, 'disks')
    second = pid(node, 'disks')
    node.kill()
    os.kill(second, signal.SIGKILL)  # while nobody watches
    node.start()
    wait_for('a third', lambda: pid(node, 'disks') not in (None, first, second))
    wait_for('its word', lambda: told(node, 'disks').count(HEALTHY) == 3)
    await_healthy(node)
    node.finish()


def a_newer_one_takes_over_without_a_gap():
    node = Node()
    node.start()
    node.run_job(plugin_job(node, 'old'))
    await_healthy(node)
    node.run_job(plugin_job(node, 'new'))
    new = wait_for('the newer one', lambda: HEALTHY in told(node, 'new')
                   and node.alloc('new', 'g')['ID'])
    assert of_node(node)['CSINodePlugins']['disks']['AllocID'] == new
    assert shown(node)['NodesExpected'] == 2
    assert len(shown(node)['Allocations']) == 2
    node.kill()
    node.start()
    await_healthy(node)
    wait_for('the newer one', lambda: of_node(node)['CSINodePlugins']['disks']['AllocID'] == new)
    node.cli('job', 'stop', '-detach', 'old')
    end = time.monotonic() + 3
    while time.monotonic() < end:
        info = of_node(node)['CSINodePlugins']['disks']
        assert info['Healthy'] and info['AllocID'] == new, info
    wait_for('its end', lambda: len(shown(node)['Allocations']) == 1)
    node.run_job(plugin_job(node, 'third'))
    wait_for('a third', lambda: HEALTHY in told(node, 'third'))
    node.cli('job', 'stop', '-detach', 'third')  # which uncovers the one before it
    wait_for('the one before', lambda: of_node(node)['CSINodePlugins']['disks']['AllocID'] == new)
    assert healthy(node)
    node.finish()


def a_crash_at_each_point_of_its_start_and_its_end_loses_nothing():
    point, ended = 1, False
    while not ended:
        node = Node()
        node.start(crash_at=point, wait=False)
        with contextlib.suppress(AssertionError, Refused, OSError, subprocess.CalledProcessError):
            wait_for('the daemon', lambda: node.answers())  # noqa: B023
            node.run_job(plugin_job(node, 'disks'))
            await_healthy(node)
        if not node.alive():
            node.start()
        if not node.allocs('disks'):
            node.run_job(plugin_job(node, 'disks'))
        await_healthy(node)
        wait_for('the event', lambda: HEALTHY in told(node, 'disks'))  # noqa: B023
        assert told(node, 'disks').count('Started') == 1, told(node, 'disks')
        with contextlib.suppress(subprocess.CalledProcessError):
            node.cli('job', 'stop', '-detach', 'disks')
            wait_for('its end', lambda: not node.alive() or shown(node) is None)  # noqa: B023
        ended = node.alive()
        if not ended:
            node.start()
            node.cli('job', 'stop', '-detach', 'disks', check=False)
        wait_for('its end', lambda: shown(node) is None)  # noqa: B023
        wait_for('its socket to go', lambda: os.listdir(csi(node, 'plugins')) == [])  # noqa: B023
        node.finish()
        point += 3


def one_with_a_root_of_its_own_has_its_socket_in_it():
    node = Node()
    node.start()
    job = plugin_job(node, 'disks', kind='controller')
    task = job['TaskGroups'][0]['Tasks'][0]
    with open(PLUGIN) as file:  # the root has the host's Python, and nothing of ours
        task.update(Driver='exec', Config={'command': '/usr/bin/python3',
                                           'args': ['-c', file.read(), '-']})
    node.run_job(job)
    wait_for('the event', lambda: HEALTHY in told(node, 'disks'), 30)
    info = of_node(node)['CSIControllerPlugins']['disks']
    assert info['Healthy'] and info['ControllerInfo']['SupportsCreateDelete'], info
    assert of_node(node)['CSINodePlugins'] == {}
    output = node.cli('plugin', 'status').stdout
    assert 'disks  test.cairn.example  1/1                           0/0' in output, output
    (alloc,) = os.listdir(csi(node, 'plugins'))
    assert os.path.exists(csi(node, 'plugins', alloc, 'csi.sock'))
    node.finish()


@contextlib.contextmanager
def run_by_somebody_else(socket, directory):
    with subprocess.Popen(['/usr/bin/python3', PLUGIN, socket, directory],
                          stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


def one_that_the_configuration_names_is_used_while_it_does():
    directory = tempfile.mkdtemp(prefix='cairn-plugin-')
    socket = os.path.join(directory, 'csi.sock')
    block = 'client {\n  csi_plugin "disks" {\n    type = "monolith"\n    socket = "%s"\n  }\n}\n'
    node = Node(config=block % socket)
    node.start()
    assert not healthy(node)
    with run_by_somebody_else(socket, directory):
        await_healthy(node)
        info = of_node(node)['CSINodePlugins']['disks']
        assert info['AllocID'] == '' and info['Provider'] == 'test.cairn.example', info
        assert shown(node)['ControllersHealthy'] == 1 and shown(node)['Allocations'] == []
        node.kill()
        node.start()
        await_healthy(node)
    wait_for('its failure', lambda: not healthy(node), 60)
    assert os.path.isdir(csi(node, 'node', 'disks'))
    with run_by_somebody_else(socket, directory):
        await_healthy(node)
        node.terminate()
        with open(node.config, 'w') as out:
            out.write('client {\n}\n')
        node.start()
        wait_for('its end', lambda: shown(node) is None)
    node.finish()
    shutil.rmtree(directory)


def bad_blocks_are_refused_in_nomads_words():
    node = Node()
    node.start()
    block = {'ID': 'disks', 'Type': 'node'}
    for change, word in (
            ({'ID': ''}, 'CSIPluginConfig must have a non-empty PluginID'),
            ({'ID': 'a/b'}, 'cannot be the name of a directory'),
            ({'ID': '..'}, 'cannot be the name of a directory'),
            ({'ID': 'x' * 128}, 'longer than 127 bytes'),
            ({'Type': 'nonsense'}, "must be one of 'node', 'controller', or 'monolith', got: "
                                   '"nonsense"'),
            ({'MountDir': '/csi', 'StagePublishBaseDir': '/csi/local'},
             'StagePublishBaseDir must not be a subdirectory of MountDir'),
            ({'MountDir': '/csi/..'}, 'csi_plugin: the directory')):
        job = plugin_job(node, 'disks')
        job['TaskGroups'][0]['Tasks'][0]['CSIPluginConfig'] = dict(block, **change)
        errors = node.put('/v1/validate/job', {'Job': job})['ValidationErrors']
        assert any(word in error for error in errors), (change, errors)
    job = plugin_job(node, 'disks')
    job['TaskGroups'][0]['Tasks'].append(dict(job['TaskGroups'][0]['Tasks'][0], Name='other'))
    errors = node.put('/v1/validate/job', {'Job': job})['ValidationErrors']
    assert any('a group has one task that is a CSI plugin' in error for error in errors), errors
    node.finish()


def main():
    if os.getuid() != 0:
        print('needs root: tasks of raw_exec are in cgroups')
        return 77
    lacking = subprocess.run(['/usr/bin/python3', '-c', 'import grpc, google.protobuf'],
                             capture_output=True).returncode
    if lacking:
        print('install python3-grpcio and python3-protobuf')
        return 77
    return tap([
        a_plugin_is_told_of_by_node_api_and_command,
        what_never_listens_is_started_again_until_its_policy_is_used_up,
        probes_that_hang_take_no_longer_than_the_time_there_is,
        one_that_cannot_say_who_it_is_is_told_of_long_before_its_time_is_over,
        one_that_is_unwell_says_so_and_when_it_is_well_again,
        one_that_dies_is_back_with_its_task,
        a_newer_one_takes_over_without_a_gap,
        a_crash_at_each_point_of_its_start_and_its_end_loses_nothing,
        one_with_a_root_of_its_own_has_its_socket_in_it,
        one_that_the_configuration_names_is_used_while_it_does,
        bad_blocks_are_refused_in_nomads_words,
    ])


if __name__ == '__main__':
    sys.exit(main())
