#!/usr/bin/python3
"""A node that takes its work from servers: it registers, runs what they want, tells what became of it,
answers what they ask, and goes on with all of that wherever it or they die."""
import base64
import json
import os
import re
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (Node, Refused as Refusal, events, milliseconds, raw_exec, restart_policy,  # noqa: E402
                 start_ticks, tap, wait_for)
from peer import Gone, Refused, Servers  # noqa: E402


# --- what servers have, and a node that joins them ---

def alloc_of(*tasks, name='job', index=0, kind='service', **fields):
    group = {'Name': 'g', 'Count': 1, 'Tasks': list(tasks), 'RestartPolicy': restart_policy(0),
             'EphemeralDisk': {'SizeMB': 10}}
    group.update(fields.pop('Group', {}))
    job = {'ID': name, 'Name': name, 'Namespace': 'default', 'Region': 'global', 'Type': kind,
           'Version': 0, 'Datacenters': ['dc1'], 'TaskGroups': [group]}
    given = {task['Name']: {'Cpu': {'CpuShares': 10}, 'Memory': {'MemoryMB': 20}} for task in tasks}
    return {'ID': str(uuid.uuid4()), 'Namespace': 'default', 'EvalID': str(uuid.uuid4()),
            'Name': '%s.g[%d]' % (name, index), 'JobID': name, 'TaskGroup': 'g', 'Job': job,
            'AllocatedResources': {'Tasks': given, 'Shared': {'DiskMB': 10}},
            'DesiredStatus': 'run', 'ClientStatus': 'pending', 'CreateTime': time.time_ns(), **fields}


def sleeper(seconds=1000, name='t', **fields):
    return script('exec sleep %d' % seconds, name, KillTimeout=milliseconds(2000), **fields)


def script(text, name='t', **fields):
    return raw_exec(name, text, LogConfig={'MaxFiles': 1, 'MaxFileSizeMB': 1}, **fields)


def joined(servers, config='', start=True):
    quoted = ', '.join('"%s"' % address for address in servers.addresses)
    node = Node(config='client {\n  servers = [%s]\n%s}\n' % (quoted, config))
    os.chmod(node.dir, 0o711)
    if start:
        node.start()
        wait_for('the node to be ready', lambda: is_ready(servers))
    return node


def is_ready(servers):
    return [node['Status'] for node in list(servers.nodes.values())] == ['ready']


def status(servers, alloc):
    return servers.allocs[alloc['ID']].get('ClientStatus')


def await_status(servers, alloc, wanted):
    wait_for('the servers to hear that it is ' + wanted, lambda: status(servers, alloc) == wanted)


def running(servers, node, alloc, command):
    servers.add(alloc)
    pid = node.await_pid(command)
    await_status(servers, alloc, 'running')
    return pid


def finish(servers, node):
    """The servers forget all of it, and nothing of it is left."""
    mark = node.node_mark()
    for alloc in list(servers.allocs):
        servers.forget(alloc)
    wait_for('the allocs to be gone', lambda: not node.allocs())
    node.audit(mark)
    assert node.terminate() == 0
    node.close()


def noted(node, alloc):
    return [event['DisplayMessage'] for event in node.get('/v1/allocation/' + alloc['ID'])['TaskStates']['t']['Events']
            if event['Type'] == 'Reconnected']


# --- the whole way ---

def it_runs_what_it_is_told_and_tells_what_became_of_it():
    with Servers() as servers:
        node = joined(servers)
        alloc = alloc_of(sleeper())
        running(servers, node, alloc, 'sleep 1000')
        state = servers.allocs[alloc['ID']]['TaskStates']['t']
        assert state['State'] == 'running' and state['StartedAt']['$time'], state
        assert events(state)[:2] == ['Received', 'Task Setup'], state
        servers.stop(alloc['ID'])
        await_status(servers, alloc, 'complete')
        state = servers.allocs[alloc['ID']]['TaskStates']['t']
        assert state['State'] == 'dead' and state['FinishedAt']['$time'] and not state['Failed'], state
        assert not node.payloads()
        finish(servers, node)


def what_fails_is_told_as_failed_and_not_run_again():
    with Servers() as servers:
        node = joined(servers)
        alloc = alloc_of(script('exit 7'))
        servers.add(alloc)
        await_status(servers, alloc, 'failed')
        state = servers.allocs[alloc['ID']]['TaskStates']['t']
        assert state['Failed'] and 'Not Restarting' in events(state), state
        finish(servers, node)


def what_cannot_run_here_is_told_with_the_reason():
    with Servers() as servers:
        node = joined(servers)
        alloc = alloc_of(sleeper(Vault={'Role': 'r', 'Env': True}))
        servers.add(alloc)
        await_status(servers, alloc, 'failed')
        told = servers.allocs[alloc['ID']]
        assert 'Vault' in told['ClientDescription'], told
        assert told['DeploymentStatus']['Healthy'] is False, told
        assert not node.allocs()
        finish(servers, node)


def a_newer_version_is_taken_in_place():
    with Servers() as servers:
        node = joined(servers)
        alloc = alloc_of(sleeper(), DeploymentID=str(uuid.uuid4()), Group={'Update': {
            'MaxParallel': 1, 'MinHealthyTime': milliseconds(10), 'HealthCheck': 'task_states',
            'HealthyDeadline': milliseconds(60000), 'ProgressDeadline': milliseconds(120000)}})
        pid = running(servers, node, alloc, 'sleep 1000')
        wait_for('it to be healthy', lambda: (servers.allocs[alloc['ID']]['DeploymentStatus'] or {})
                 .get('Healthy'))
        newer = dict(servers.allocs[alloc['ID']]['Job'], Version=1)
        servers.replace(alloc['ID'], Job=newer, DeploymentID=str(uuid.uuid4()))
        wait_for('the newer version', lambda: [each['JobVersion'] for each in node.allocs()] == [1])
        assert node.pid_of('sleep 1000') == pid
        finish(servers, node)


def one_that_the_servers_did_not_know_of_any_more_says_so_once():
    with Servers() as servers:
        node = joined(servers)
        alloc = alloc_of(sleeper())
        pid = running(servers, node, alloc, 'sleep 1000')
        assert noted(node, alloc) == []
        servers.replace(alloc['ID'], ClientStatus='unknown')
        await_status(servers, alloc, 'running')
        assert noted(node, alloc) == ['Client reconnected']
        node.kill()
        node.start()
        wait_for('the servers to be asked', lambda: is_ready(servers) and node.allocs())
        assert noted(node, alloc) == ['Client reconnected']
        assert node.pid_of('sleep 1000') == pid
        finish(servers, node)


def what_is_pre_empted_ends_before_its_successor_begins():
    with Servers() as servers:
        node = joined(servers)
        first, second = alloc_of(sleeper(1000)), alloc_of(sleeper(1001), name='other')
        running(servers, node, first, 'sleep 1000')
        second['PreemptedAllocations'] = [first['ID']]
        servers.add(second)
        wait_for('it to be known', lambda: len(node.allocs()) == 2)
        assert node.pid_of('sleep 1001') is None
        servers.replace(first['ID'], DesiredStatus='evict')
        node.await_pid('sleep 1001')
        assert node.pid_of('sleep 1000') is None
        finish(servers, node)


# --- restarts ---

def a_crash_changes_nothing_and_tells_nothing_twice():
    """R-62."""
    with Servers() as servers:
        node = joined(servers)
        allocs = [alloc_of(sleeper(1000 + i), name='job-%d' % i) for i in range(20)]
        pids = [running(servers, node, alloc, 'sleep %d' % (1000 + i))
                for i, alloc in enumerate(allocs)]
        ticks = [start_ticks(pid) for pid in pids]
        wait_for('all to be heard of', lambda: all(is_heard(node, alloc) for alloc in allocs))
        told, pulled = len(servers.calls('Node.UpdateAlloc')), len(servers.calls('Alloc.GetAllocs'))
        asked = len(servers.calls('Node.GetClientAllocs'))
        node.kill()
        node.start()
        wait_for('the next question', lambda: len(servers.calls('Node.GetClientAllocs')) >= asked + 2)
        first = servers.calls('Node.GetClientAllocs')[asked]
        assert first['MinQueryIndex'] == 0 and not first['AllowStale'], first
        assert len(servers.calls('Node.UpdateAlloc')) == told
        assert len(servers.calls('Alloc.GetAllocs')) == pulled
        assert [start_ticks(pid) for pid in pids] == ticks
        finish(servers, node)


def is_heard(node, alloc):
    """Whether the journal says that the servers have heard all of it."""
    text = node.cli('journal', 'show', '-json', '-all', '-dir', node.data, alloc['ID']).stdout
    heard, so_far = (int(re.search(r'"%s_revision": ?(\d+)' % name, text)[1])
                     for name in ('acked', 'status'))
    return heard >= so_far


def after_a_reboot_it_waits_for_the_servers():
    """R-03, R-58."""
    with Servers() as servers:
        node = joined(servers)
        alloc = alloc_of(sleeper())
        running(servers, node, alloc, 'sleep 1000')
        for server in servers.servers:
            server.pause()
        node.reboot('22222222-3333-4444-8555-666666666666')
        node.start()
        wait_for('it to be held', lambda: 'a server is asked first' in node.log() or
                 node.get('/v1/agent/self')['stats']['client']['synced'] == 'false')
        wait_for('a call to fail', lambda: 'a call fails' in node.log())
        assert not [line for line in node.payloads().values() if 'sleep' in line]
        assert [each['ClientStatus'] for each in node.allocs()] != ['failed']
        for server in servers.servers:
            server.resume()
        node.await_pid('sleep 1000')
        finish(servers, node)


def a_server_that_knows_less_revives_nothing():
    """R-02."""
    with Servers() as servers:
        node = joined(servers)
        alloc = alloc_of(sleeper())
        running(servers, node, alloc, 'sleep 1000')
        old = dict(servers.allocs[alloc['ID']])
        servers.stop(alloc['ID'])
        await_status(servers, alloc, 'complete')
        with servers.changed:  # as it was before it was stopped
            servers.allocs[alloc['ID']] = old
        asked = len(servers.calls('Node.GetClientAllocs'))
        node.kill()
        node.start()
        wait_for('the next question', lambda: len(servers.calls('Node.GetClientAllocs')) >= asked + 2)
        assert node.pid_of('sleep 1000') is None
        assert [each['ClientStatus'] for each in node.allocs()] == ['complete']
        finish(servers, node)


def what_was_deleted_while_they_were_away_ends():
    """R-06."""
    with Servers() as servers:
        node = joined(servers)
        alloc = alloc_of(sleeper())
        running(servers, node, alloc, 'sleep 1000')
        servers.servers[0].pause()
        with servers.changed:
            index = servers.allocs_index
            servers.forget(alloc['ID'])
            servers.allocs_index = index  # nobody who waits is woken by that
        servers.servers[0].resume()
        wait_for('it to end', lambda: not node.payloads())
        finish(servers, node)


def parts_of_an_answer_may_be_missing():
    """R-06."""
    with Servers() as servers:
        node = joined(servers)
        first, second = alloc_of(sleeper(1000)), alloc_of(sleeper(1001), name='other')
        whole = servers.on_Alloc_GetAllocs
        answers = []

        def partial(args):
            answer = whole(None, args)
            if len(answers) < 2:
                answers.append(answer)
                keep = [each for each in answer['Allocs'] if each['ID'] == first['ID']]
                return dict(answer, Allocs=[None, {}, {'ID': 7}] + keep)
            return answer
        servers.handlers['Alloc.GetAllocs'] = partial
        servers.add(first)
        servers.add(second)
        node.await_pid('sleep 1000')
        node.await_pid('sleep 1001')
        finish(servers, node)


def a_node_that_is_forgotten_registers_again():
    """R-63."""
    with Servers(ttl_s=1) as servers:
        node = joined(servers)
        alloc = alloc_of(sleeper())
        pid = running(servers, node, alloc, 'sleep 1000')
        node_id = servers.node()
        node.kill()
        servers.forget_node()
        node.start()
        wait_for('the node to be ready', lambda: is_ready(servers))
        assert servers.node() == node_id
        servers.forget_node()
        wait_for('the node to be ready again', lambda: is_ready(servers))
        assert node.pid_of('sleep 1000') == pid
        finish(servers, node)


def heartbeats_find_another_server():
    """R-61."""
    with Servers(2, ttl_s=6) as servers:
        node = joined(servers)
        first = servers.session().server

        def act(session):
            if session.server is first:
                with session.changed:
                    session.changed.wait_for(lambda: session.over)
                raise Gone('it does not answer')
        servers.fault('Node.UpdateStatus', act, None)
        since = time.monotonic()
        wait_for('the other one to hear it', lambda: (
            servers.session() or first and first.sessions[0]).server is not first)
        assert time.monotonic() - since < 60
        servers.mend('Node.UpdateStatus')
        first.cut()
        finish(servers, node)


def it_registers_while_it_is_still_finding_out_what_it_has():
    """R-60."""
    with Servers() as servers:
        node = joined(servers, start=False)
        plugins = os.path.join(node.dir, 'cni')
        os.mkdir(plugins)
        slow = os.path.join(plugins, 'bridge')
        with open(slow, 'w') as script:
            script.write('#!/bin/sh\nexec sleep 300\n')
        os.chmod(slow, 0o755)
        with open(node.config, 'a') as config:
            config.write('client {\n  cni_path = "%s"\n}\n' % plugins)
        node.start()
        wait_for('the node to be ready', lambda: is_ready(servers))
        finish(servers, node)


def networks_of_its_files_are_told():
    with Servers() as servers:
        node = joined(servers, start=False)
        with open(os.path.join(node.dir, 'x.conflist'), 'w') as out:
            json.dump({'name': 'mine', 'plugins': [{'type': 'ptp'}]}, out)
        with open(node.config, 'a') as config:
            config.write('client {\n  cni_config_dir = "%s"\n}\n' % node.dir)
        node.start()
        wait_for('the node to be ready', lambda: is_ready(servers))
        resources = servers.nodes[servers.node()]['NodeResources']
        for kind in 'Networks', 'NodeNetworks':
            assert 'cni/mine' in [network['Mode'] for network in resources[kind]], resources[kind]
        finish(servers, node)


def what_they_did_not_hear_is_told_when_they_are_back():
    with Servers() as servers:
        node = joined(servers)
        alloc = alloc_of(script('until [ -e %s/go ]; do sleep 0.05; done' % node.dir), kind='batch')
        servers.add(alloc)
        await_status(servers, alloc, 'running')
        servers.servers[0].pause()
        with open(os.path.join(node.dir, 'go'), 'w'):
            pass
        wait_for('it to be over', lambda: [each['ClientStatus'] for each in node.allocs()] == ['complete'])
        node.kill()
        node.start()
        servers.servers[0].resume()
        await_status(servers, alloc, 'complete')
        finish(servers, node)


def wherever_the_daemon_dies_it_goes_on():
    """Killed at each commit, and between any two effects behind it, from its first registration to
    the end of an alloc that nobody knows any more."""
    point, died = 0, True
    while died:
        point += 1
        with Servers() as servers:
            node = joined(servers, start=False)
            alloc = alloc_of(sleeper())
            node.start(crash_at=point, wait=False)
            died = survive(servers, node, alloc)
            mark = node.node_mark()
            node.audit(mark)
            assert node.terminate() == 0
            node.close()
    assert point > 10, point


def survive(servers, node, alloc):
    """Whether the daemon has died on the way; then it is there again."""
    died = []

    def again():
        if not died and node.process.poll() is not None:
            died.append(True)
            node.start()
        return True

    def is_gone():
        try:
            return not node.allocs()
        except OSError:
            return False
    wait_for('the node to be ready', lambda: again() and is_ready(servers))
    servers.add(alloc)
    wait_for('it to run', lambda: again() and status(servers, alloc) == 'running')
    servers.stop(alloc['ID'])
    wait_for('it to end', lambda: again() and status(servers, alloc) == 'complete')
    servers.forget(alloc['ID'])
    wait_for('it to be gone', lambda: again() and is_gone())
    return bool(died)


# --- what they ask ---

def calls_are_answered():
    with Servers() as servers:
        node = joined(servers)
        alloc = alloc_of(script('trap "exit 0" HUP; echo hello; while :; do sleep 0.05; done'),
                         kind='batch')
        servers.add(alloc)
        await_status(servers, alloc, 'running')
        host = servers.call('ClientStats.Stats', {})['HostStats']
        assert host['Memory']['Total'] > 0 and host['CPU'], host
        used = servers.call('Allocations.Stats', {'AllocID': alloc['ID'], 'Task': ''})['Stats']
        assert 't' in used['Tasks'] and used['ResourceUsage']['MemoryStats'], used
        files = servers.call('FileSystem.List', {'AllocID': alloc['ID'], 'Path': 'alloc/logs'})['Files']
        assert {each['Name'] for each in files} >= {'t.stdout.0', 't.stderr.0'}, files
        assert files[0]['ModTime']['$time'], files
        info = servers.call('FileSystem.Stat', {'AllocID': alloc['ID'],
                                                'Path': 'alloc/logs/t.stdout.0'})['Info']
        assert info['Size'] == 6 and not info['IsDir'], info
        servers.call('Allocations.Restart', {'AllocID': alloc['ID'], 'TaskName': 't'})
        wait_for('it to have restarted', lambda: (
            servers.allocs[alloc['ID']]['TaskStates']['t']['Restarts']) == 1)
        servers.call('Allocations.Signal', {'AllocID': alloc['ID'], 'Task': 't', 'Signal': 'SIGHUP'})
        await_status(servers, alloc, 'complete')
        for method, args, text in (
                ('Allocations.Stats', {'AllocID': str(uuid.uuid4()), 'Task': ''}, '404'),
                ('Allocations.Signal', {'AllocID': '../..', 'Signal': 'SIGHUP'}, '404'),
                ('FileSystem.List', {'AllocID': alloc['ID'], 'Path': '../../..'}, 'RPC Error'),
                ('Nothing.Known', {}, "can't find")):
            try:
                raise AssertionError(servers.call(method, args))
            except Refused as refused:
                assert text in str(refused), refused
        servers.call('Allocations.GarbageCollect', {'AllocID': alloc['ID']})
        wait_for('it to be collected', lambda: not node.allocs())
        finish(servers, node)


def read_all(stream):
    """(payload, the error it ends with, or None)"""
    data = b''
    while True:
        try:
            wrapper = stream.read()
        except Gone:
            return data, None
        if wrapper['Error']:
            return data, wrapper['Error']
        payload = wrapper['Payload'] or b''
        data += payload.encode() if isinstance(payload, str) else payload


def logs_and_files_are_read_through_them():
    with Servers() as servers:
        node = joined(servers)
        alloc = alloc_of(script('echo out; echo err >&2; exec sleep 1000'))
        servers.add(alloc)
        await_status(servers, alloc, 'running')
        asked = {'AllocID': alloc['ID'], 'Task': 't', 'LogType': 'stdout', 'Offset': 0,
                 'Origin': 'start', 'PlainText': True, 'Follow': False}

        def out():
            return read_all(servers.stream('FileSystem.Logs', asked))
        wait_for('its output', lambda: out() == (b'out\n', None))
        assert read_all(servers.stream('FileSystem.Logs', dict(asked, LogType='stderr'))) == \
            (b'err\n', None)
        framed, error = read_all(servers.stream('FileSystem.Logs', dict(asked, PlainText=False)))
        frames = [frame for frame in map(json.loads, framed.replace(b'}{', b'}\n{').split(b'\n')) if frame]
        assert error is None
        assert b''.join(base64.b64decode(frame.get('Data', '')) for frame in frames) == b'out\n', frames
        path = {'AllocID': alloc['ID'], 'Path': 'alloc/logs/t.stdout.0', 'PlainText': True}
        assert read_all(servers.stream('FileSystem.Stream', path)) == (b'out\n', None)
        assert read_all(servers.stream('FileSystem.Stream', dict(path, Offset=1, Limit=2))) == \
            (b'ut', None)
        follows = servers.stream('FileSystem.Logs', dict(asked, Follow=True))
        assert follows.read()['Payload'] in ('out\n', b'out\n')
        follows.close()
        for wrong, code in ((dict(asked, Task='none'), 400), (dict(asked, LogType='x'), 400),
                            (dict(asked, AllocID=str(uuid.uuid4())), 404)):
            data, error = read_all(servers.stream('FileSystem.Logs', wrong))
            assert not data and error['Code'] == code and error['Message'], (data, error)
        try:
            raise AssertionError(servers.stream('No.Such', {}))
        except Refused as refused:
            assert 'No.Such' in str(refused), refused
        finish(servers, node)


def session(servers, alloc, *command, tty=False):
    return servers.stream('Allocations.Exec', {'AllocID': alloc['ID'], 'Task': 't', 'Tty': tty,
                                               'Cmd': list(command)})


def heard(stream):
    """All that a command says: (stdout, stderr, result, error)."""
    said, result = {'stdout': b'', 'stderr': b''}, None
    while True:
        try:
            wrapper = stream.read()
        except Gone:
            return said['stdout'], said['stderr'], result, None
        if wrapper['Error']:
            return said['stdout'], said['stderr'], result, wrapper['Error']
        message = json.loads(wrapper['Payload'])
        for name, text in said.items():
            said[name] = text + base64.b64decode(message.get(name, {}).get('data', ''))
        result = message['result'] if message.get('exited') else result


def commands_run_in_its_tasks():
    with Servers() as servers:
        node = joined(servers)
        alloc = alloc_of(sleeper())
        running(servers, node, alloc, 'sleep 1000')
        out, err, result, error = heard(session(servers, alloc, '/bin/sh', '-c',
                                                'echo one; echo two >&2; exit 3'))
        assert (out, err, error) == (b'one\n', b'two\n', None), (out, err, error)
        assert result == {'exit_code': 3}, result
        stream = session(servers, alloc, '/bin/cat')
        junk = {'XXX_sizecache': 0, 'XXX_unrecognized': None}
        stream.write(dict(junk, Setup=None, TtySize=None,
                          Stdin=dict(junk, Data=b'in \xff\n', Close=False)))
        stream.write(dict(junk, Setup=None, TtySize=None, Stdin=dict(junk, Data=None, Close=True)))
        out, _, result, error = heard(stream)
        assert (out, result, error) == (b'in \xff\n', {'exit_code': 0}, None), (out, result, error)
        stream = session(servers, alloc, '/bin/sh', '-c', 'exec sleep 1002')
        node.await_pid('sleep 1002')
        stream.close()
        wait_for('the command to end with who asked', lambda: node.pid_of('sleep 1002') is None)
        _, _, _, error = heard(servers.stream('Allocations.Exec', {
            'AllocID': alloc['ID'], 'Task': 'none', 'Tty': False, 'Cmd': ['/bin/true']}))
        assert error and error['Message'], error
        finish(servers, node)


# --- what they are not asked ---

def who_asks_the_node_for_what_they_decide_is_sent_to_them():
    with Servers() as servers:
        node = joined(servers)
        for method, path in (('GET', '/v1/jobs'), ('PUT', '/v1/jobs'), ('GET', '/v1/deployments'),
                             ('PUT', '/v1/system/gc'), ('GET', '/v1/acl/tokens')):
            try:
                raise AssertionError(node.call(method, path, {} if method == 'PUT' else None))
            except Refusal as refusal:
                assert refusal.status == 501 and servers.addresses[0] in refusal.text, refusal.text
        assert node.get('/v1/agent/servers') == servers.addresses
        finish(servers, node)


if __name__ == '__main__':
    sys.exit(tap([
        it_runs_what_it_is_told_and_tells_what_became_of_it,
        what_fails_is_told_as_failed_and_not_run_again,
        what_cannot_run_here_is_told_with_the_reason,
        a_newer_version_is_taken_in_place,
        one_that_the_servers_did_not_know_of_any_more_says_so_once,
        what_is_pre_empted_ends_before_its_successor_begins,
        a_crash_changes_nothing_and_tells_nothing_twice,
        after_a_reboot_it_waits_for_the_servers,
        a_server_that_knows_less_revives_nothing,
        what_was_deleted_while_they_were_away_ends,
        parts_of_an_answer_may_be_missing,
        a_node_that_is_forgotten_registers_again,
        heartbeats_find_another_server,
        it_registers_while_it_is_still_finding_out_what_it_has,
        networks_of_its_files_are_told,
        what_they_did_not_hear_is_told_when_they_are_back,
        wherever_the_daemon_dies_it_goes_on,
        calls_are_answered,
        logs_and_files_are_read_through_them,
        commands_run_in_its_tasks,
        who_asks_the_node_for_what_they_decide_is_sent_to_them,
    ]))
