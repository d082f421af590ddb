#!/usr/bin/env python3
"""Ways in: logs and files of a task, followed and cut, from the command line and over HTTP."""
import base64
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import NO_RESCHEDULE, Node, Refused, start_ticks, tap, wait_for  # noqa: E402
from sessions import Session, pids  # noqa: E402

CONFIG = 'plugin "raw_exec" {\n  config {\n    enabled = true\n  }\n}\n'

QUICK = 10 ** 8  # ns: what is the first process of its own hears no signal


def task(name, script, **more):
    return dict({'Name': name, 'Driver': 'raw_exec', 'KillTimeout': QUICK,
                 'Config': {'command': '/bin/sh', 'args': ['-c', script]}}, **more)


def job(*tasks):
    return {'ID': 'job', 'Type': 'service', 'TaskGroups': [
        {'Name': 'g', 'Tasks': list(tasks),
         'RestartPolicy': {'Attempts': 0, 'Mode': 'fail', 'Interval': 10 ** 12}}]}


def start(*tasks):
    node = Node(config=CONFIG)
    node.start()
    node.run_job(job(*tasks))
    for each in tasks:
        wait_for('the task to run', lambda: node.running(each['Name']))
    return node, node.alloc('job', 'g')['ID']


def follow(node, path):
    """Connects and asks; what comes is chunks behind a head."""
    connection = socket.create_connection(('127.0.0.1', node.port))
    connection.sendall(('GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' % path)
                       .encode())
    return connection.makefile('rb')


def chunks(stream):
    while stream.readline() not in (b'\r\n', b''):
        pass
    while True:
        length = int(stream.readline() or b'0', 16)
        if length == 0:
            return
        yield stream.read(length)
        stream.readline()


def frames(stream):
    decoder, text = json.JSONDecoder(), ''
    for chunk in chunks(stream):
        text += chunk.decode()
        while text:
            try:
                frame, end = decoder.raw_decode(text)
            except ValueError:
                break
            text = text[end:].lstrip()
            yield frame


def sessions():
    """The cgroups of sessions that there are on this machine."""
    return [os.path.join(root, name) for root, folders, _ in os.walk('/sys/fs/cgroup')
            for name in folders if name.startswith('session-')]


def nothing_is_left(mark):
    wait_for('the session to be gone', lambda: not pids('sleep ' + mark))
    wait_for('its cgroup to be gone', lambda: not sessions())


def start_both():
    """A task of each kind, and a mark that no other test's processes have."""
    isolated = {'Name': 'e', 'Driver': 'exec', 'User': 'nobody', 'Env': {'FOO': 'bar'},
                'KillTimeout': QUICK,
                'Config': {'command': '/bin/sleep', 'args': ['1000']}}
    node, alloc = start(task('r', 'exec sleep 1000', Env={'FOO': 'bar'}), isolated)
    return node, alloc, '%d' % (100000 + os.getpid())


def end(node):
    node.cli('job', 'stop', '-purge', 'job')
    node.finish()


def a_command_runs_as_its_task_does():
    node, alloc, _ = start_both()
    for name, said in ('r', 'bar\n0\n'), ('e', 'bar\n65534\n'):
        session = Session(node, alloc, name, ['sh', '-c', 'echo $FOO; id -u; echo no >&2; exit 7'])
        assert session.status == 101, session.head
        assert b's3pPLMBiTxaQ9kYGzzhZRbK+xOo=' in session.head
        session.hear_all()
        assert (session.out, session.code) == ({'stdout': said.encode(), 'stderr': b'no\n'}, 7)
        assert session.closed == (1000, ''), session.closed
    inside = Session(node, alloc, 'e', ['sh', '-c', 'echo /local; cat /proc/1/cmdline']).hear_all()
    assert inside.out['stdout'] == b'/local\n/bin/sleep\x001000\x00', inside.out
    killed = Session(node, alloc, 'r', ['sh', '-c', 'kill -9 $$']).hear_all()
    assert killed.code == 137, killed.code
    end(node)


def what_cannot_be_run_is_told():
    node, alloc, _ = start_both()
    for name, command, said in (('r', ['nonesuch'], 'not found'), ('none', ['true'], 'unknown task'),
                                ('e', ['/bin/nonesuch'], 'not found')):
        session = Session(node, alloc, name, command).hear_all()
        assert session.code is None and session.closed[0] == 1008, session.closed
        assert said in session.closed[1], session.closed
    assert Session(node, alloc, 'r', []).status == 400
    assert Session(node, alloc, 'r', [1]).status == 400
    assert Session(node, alloc, '', ['true']).status == 400
    assert Session(node, alloc, 'r', ['true'], headers='Origin: http://evil.example\r\n').status == 403
    assert Session(node, '0' * 8 + alloc[8:], 'r', ['true']).status == 404
    try:
        node.get('/v1/client/allocation/%s/exec?task=r&command=["true"]' % alloc)
        raise AssertionError('it is no WebSocket')
    except Refused as refused:
        assert refused.status == 400, refused
    noise = Session(node, alloc, 'r', ['cat'])
    noise.socket.sendall(b'\x81\x05hello')  # which a client has to mask
    assert noise.hear_all().code is None
    end(node)


def a_command_of_the_job_is_run_by_its_name():
    offered = [{'Name': 'greet', 'Command': '/bin/sh', 'Args': ['-c', 'echo $0 $FOO; exit 4', 'hey']}]
    node, alloc = start(task('r', 'exec sleep 1000', Env={'FOO': 'bar'}, Actions=offered),
                        task('s', 'exec sleep 1000', Actions=[{'Name': 'cat', 'Command': 'cat'}]))
    assert node.get('/v1/job/job/actions') == [
        dict(offered[0], TaskName='r', TaskGroupName='g'),
        {'Name': 'cat', 'Command': 'cat', 'Args': None, 'TaskName': 's', 'TaskGroupName': 'g'}]
    done = node.cli('job', 'action', '-job', 'job', '-i=false', 'greet', check=False)
    assert (done.returncode, done.stdout) == (4, 'hey bar\n'), done
    for words, said in ((['-job', 'job', 'other'], 'has no action "other"'),
                        (['-job', 'job', '-task', 's', 'greet'], 'has no action "greet"'),
                        (['greet'], '-job JOB'), (['-job', 'nobody', 'greet'], 'nobody')):
        done = node.cli('job', 'action', *words, check=False)
        assert done.returncode != 0 and said in done.stdout, (words, done)
    before = start_ticks(int(next(iter(node.payloads()))))
    changed = job(task('r', 'exec sleep 1000', Env={'FOO': 'bar'},
                       Actions=[dict(offered[0], Args=['-c', 'echo new'])]),
                  task('s', 'exec sleep 1000'))
    node.run_job(changed)  # takes nobody's place
    node.kill()
    node.start()
    assert node.alloc('job', 'g')['ID'] == alloc
    assert start_ticks(int(next(iter(node.payloads())))) == before
    done = node.cli('job', 'action', '-job', 'job', '-alloc', alloc, '-i=false', 'greet')
    assert done.stdout == 'new\n', done
    gone = Session(node, alloc, 's', ['x'], action='cat')
    assert 'action cat not found in task s' in gone.hear_all().closed[1], gone.closed
    end(node)


def input_is_passed_on_as_it_is_taken():
    node, alloc, _ = start_both()
    text = ''.join('%d\n' % number for number in range(400000))
    done = subprocess.run([os.path.join(node.build, 'cairn'), 'alloc', 'exec', '-task', 'r', alloc,
                           'cat'], env=dict(os.environ, NOMAD_ADDR='http://127.0.0.1:%d' % node.port),
                          input=text, stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout == text) == (0, True), done.returncode
    failed = node.cli('alloc', 'exec', '-task', 'r', '-i=false', alloc, 'sh', '-c', 'cat; exit 3',
                      check=False)
    assert (failed.returncode, failed.stdout) == (3, ''), failed
    lazy = Session(node, alloc, 'r', ['sh', '-c', 'exec <&-; sleep 0.2; echo done'])
    for _ in range(40):
        lazy.type('x' * 30000)  # nobody will ever read it
    assert lazy.hear_all().code == 0 and lazy.out['stdout'] == b'done\n', lazy.closed
    end(node)


def a_terminal_is_one():
    node, alloc, _ = start_both()
    script = ('tty; until [ "$(stty size)" = "33 111" ]; do sleep 0.05; done; '
              'trap "echo caught; exit 5" INT; read line; echo "got $line"; '
              'while :; do sleep 0.05; done')
    for name in 'r', 'e':
        session = Session(node, alloc, name, ['/bin/sh', '-c', script], tty=True)
        session.hear_until('/dev/pts/')
        session.send({'tty_size': {'height': 33, 'width': 111}})
        session.type('meow\n')
        session.hear_until('got meow')
        session.type('\x03')
        assert session.hear_all().code == 5 and b'caught' in session.out['stdout'], session.out
    end(node)


def a_session_ends_with_whoever_asked():
    node, alloc, mark = start_both()
    for name in 'r', 'e':
        session = Session(node, alloc, name, ['sh', '-c', '(setsid sleep %s &); echo up; sleep %s'
                                              % (mark, mark)]).hear_until('up')
        wait_for('both', lambda: len(pids('sleep ' + mark)) == 2)
        session.leave()
        nothing_is_left(mark)
        left = Session(node, alloc, name, ['sh', '-c', 'setsid sleep %s & echo up' % mark])
        assert left.hear_all().code == 0
        nothing_is_left(mark)
    end(node)


def a_session_ends_with_its_task():
    node, alloc, mark = start_both()
    held = [Session(node, alloc, name, ['sh', '-c', 'echo up; sleep ' + mark]).hear_until('up')
            for name in 're']
    node.cli('alloc', 'restart', alloc)
    for session in held:
        assert session.hear_all().code != 0
    nothing_is_left(mark)
    wait_for('the tasks to run again', lambda: node.running('r') and node.running('e'))
    end(node)


def a_session_ends_with_the_daemon():
    node, alloc, mark = start_both()
    held = [Session(node, alloc, name, ['sh', '-c', '(setsid sleep %s &); echo up; sleep %s'
                                        % (mark, mark)]).hear_until('up') for name in 're']
    shown = subprocess.Popen([os.path.join(node.build, 'cairn'), 'alloc', 'exec', '-task', 'r', alloc, 'sleep', mark],
                             env=dict(os.environ, NOMAD_ADDR='http://127.0.0.1:%d' % node.port),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_for('all', lambda: len(pids('sleep ' + mark)) >= 5)  # the command line of that one is like theirs
    node.kill()
    for session in held:
        session.hear_all()
    said = shown.communicate(timeout=60)[0]
    assert shown.returncode == 1 and 'connection' in said and said.count('\n') == 1, (shown.returncode, said)
    nothing_is_left(mark)
    node.start()
    wait_for('the task to be taken up',
             lambda: Session(node, alloc, 'r', ['true']).hear_all().code == 0)
    end(node)


def what_a_killed_helper_leaves_is_ended():
    node, alloc, mark = start_both()
    for daemon_lives in True, False:
        session = Session(node, alloc, 'e', ['sh', '-c', '(setsid sleep %s &); echo up; sleep %s'
                                             % (mark, mark)]).hear_until('up')
        wait_for('both', lambda: len(pids('sleep ' + mark)) == 2)
        own = [int(path.rpartition('-')[2]) for path in sessions()]
        if not daemon_lives:
            node.process.send_signal(signal.SIGSTOP)  # it hears of nothing before it dies
        for pid in own:
            with contextlib.suppress(ProcessLookupError):  # that of the first round is left
                os.kill(pid, signal.SIGKILL)
        if daemon_lives:
            assert 'lost' in session.hear_all().closed[1], session.closed
            wait_for('the rest', lambda: not pids('sleep ' + mark))
        else:
            node.kill()
            node.start()
            wait_for('the rest', lambda: not pids('sleep ' + mark))
    end(node)


def events(node, query, what):
    """The events that a stream tells while WHAT is done, up to the one that it returns true for."""
    stream = follow(node, '/v1/event/stream?' + query)
    lines = frames(stream)
    assert next(lines) == {}  # it has begun
    is_last, seen = what(), []
    for line in lines:
        for event in line.get('Events', []):
            assert event['Index'] == line['Index']
            seen.append(event)
            if is_last(event):
                stream.close()
                return seen
    raise AssertionError('the stream has ended after %r' % seen)


def who_comes_back_misses_nothing(node):
    """NODE has had readers, and has none now."""
    def run(name):
        node.run_job(dict(job(task('t', 'exec sleep 1000')), ID=name))
        return lambda event: event['Key'] == name

    first = events(node, 'topic=Job', lambda: run('first'))[-1]['Index']
    run('second')  # nobody listens
    seen = events(node, 'topic=Job&index=%d' % (first + 1), lambda: run('third'))
    assert [event['Key'] for event in seen] == ['second', 'third'], seen
    seen = events(node, 'topic=Job:third&index=%d' % first, lambda: lambda _: True)
    assert [event['Key'] for event in seen] == ['third'], seen

    node.kill()
    node.start()
    stream = follow(node, '/v1/event/stream?topic=Job&index=%d' % first)
    lines = frames(stream)
    assert next(lines) == {}
    assert next(lines)['MissedUpTo'] >= first  # what was before the crash is gone, and it says so
    stream.close()
    for name in 'first', 'second', 'third':
        node.cli('job', 'stop', '-purge', name)


def deployments_are_streamed_to_their_end(node):
    """As the API shows them; also one that a newer version of its job puts an end to."""
    def version(number):
        return dict(job(task('t', 'exec sleep %d' % (1000 + number))), ID='rolled',
                    Update={'MinHealthyTime': 60 * 10 ** 9, 'HealthyDeadline': 120 * 10 ** 9,
                            'ProgressDeadline': 240 * 10 ** 9, 'MaxParallel': 1})

    def run():
        node.run_job(version(0))
        node.run_job(version(1))
        return lambda event: event['Payload']['Deployment']['JobVersion'] == 1

    seen = [event['Payload']['Deployment'] for event in events(node, 'topic=Deployment:rolled', run)]
    assert [(one['JobVersion'], one['Status']) for one in seen] == \
        [(0, 'running'), (0, 'cancelled'), (1, 'running')], seen
    shown = node.get('/v1/deployment/' + seen[-1]['ID'])
    assert shown.keys() == seen[-1].keys(), (shown, seen[-1])
    by = [one['TaskGroups']['g']['RequireProgressBy'] for one in (shown, seen[-1])]
    assert by[0] == by[1], by
    node.cli('job', 'stop', '-purge', 'rolled')


def what_places_nothing_is_streamed(node):
    """Three registrations that no event of the journal goes with; a restart does not turn the index back."""
    def idle(priority):
        return {'ID': 'idle', 'Type': 'batch', 'Priority': priority, 'ParameterizedJob': {},
                'TaskGroups': [{'Name': 'g', 'Tasks': [task('t', 'exit 0')]}]}

    def run():
        for priority in 51, 52, 53:
            node.run_job(idle(priority))
        return lambda event: event['Payload']['Job']['Priority'] == 53

    seen = events(node, 'topic=Job:idle', run)
    assert [event['Payload']['Job']['Priority'] for event in seen] == [51, 52, 53], seen
    index = node.get('/v1/job/idle')['JobModifyIndex']
    assert index == seen[-1]['Index'] == seen[-1]['Payload']['Job']['JobModifyIndex'], (index, seen)
    node.kill()
    node.start()
    checked = {'EnforceIndex': True, 'JobModifyIndex': index}
    node.put('/v1/jobs', dict(checked, Job=idle(54)))
    try:  # one who read it before that, and knows of nothing
        node.put('/v1/jobs', dict(checked, Job=idle(55)))
        raise AssertionError('the job was changed by two at once')
    except Refused as refused:
        assert refused.status == 409, refused
    assert node.get('/v1/job/idle')['JobModifyIndex'] > index
    node.cli('job', 'stop', '-purge', 'idle')


def what_happens_is_streamed():
    node = Node(config=CONFIG)
    node.start()

    def run():
        node.run_job(job(task('t', 'exec sleep 1000')))
        return lambda event: event['Topic'] == 'Allocation' and \
            event['Payload']['Allocation']['ClientStatus'] == 'running'

    seen = events(node, 'topic=*', run)
    kinds = [(event['Topic'], event['Type']) for event in seen]
    assert kinds.count(('Job', 'JobRegistered')) == 1, kinds
    assert kinds.count(('Allocation', 'PlanResult')) == 1, kinds
    assert [kind for kind in kinds if kind[0] == 'Allocation'][0][1] == 'PlanResult', kinds
    assert kinds.count(('Evaluation', 'EvaluationUpdated')) == 1, kinds
    decided = [event for event in seen if event['Topic'] == 'Evaluation'][0]
    assert decided['FilterKeys'][0] == 'job' and \
        decided['Payload']['Evaluation']['TriggeredBy'] == 'job-register', decided
    assert kinds.count(('Deployment', 'DeploymentStatusUpdate')) == 1, kinds
    assert [event['Index'] for event in seen] == sorted(event['Index'] for event in seen)
    alloc = node.alloc('job', 'g')['ID']
    last = seen[-1]
    assert last['Key'] == alloc and 'job' in last['FilterKeys'] and last['Namespace'] == 'default'
    assert 'Job' not in last['Payload']['Allocation']

    def drain():
        node.cli('node', 'eligibility', '-disable', '-self')
        node.cli('alloc', 'stop', alloc)  # told of to nobody here
        node.cli('node', 'eligibility', '-enable', '-self')
        return lambda event: event['Payload']['Node']['SchedulingEligibility'] == 'eligible'

    seen = events(node, 'topic=Node', drain)
    assert {event['Topic'] for event in seen} == {'Node'}, seen

    def stop():
        node.run_job(dict(job(task('t', 'exec sleep 1000')), ID='other'))
        node.cli('job', 'stop', '-purge', 'other')
        node.cli('job', 'stop', 'job')
        node.cli('job', 'stop', '-purge', 'job')
        return lambda event: 'Stop' not in event['Payload']['Job']

    seen = events(node, 'topic=Job:job&topic=Allocation:nobody', stop)
    assert {(event['Type'], event['Key']) for event in seen} == {('JobDeregistered', 'job')}, seen
    assert len(seen) > 1 and seen[0]['Payload']['Job']['Stop'], seen
    who_comes_back_misses_nothing(node)
    deployments_are_streamed_to_their_end(node)
    what_places_nothing_is_streamed(node)
    for wrong in 'topic=Nothing', 'index=x', '&'.join(['topic=Job'] * 40):
        try:
            node.get('/v1/event/stream?' + wrong)
            raise AssertionError(wrong)
        except Refused as refused:
            assert refused.status == 400, refused
    node.finish()


def whatever_an_id_belongs_to_is_shown():
    node, alloc = start(task('t', 'exec sleep 1000'))
    volume = node.put('/v1/volume/host/create', {'Volume': {
        'Name': 'disk', 'PluginID': 'mkdir',
        'RequestedCapabilities': [{'AccessMode': 'single-node-writer', 'AttachmentMode': 'file-system'}]}})['Volume']['ID']
    deployment = node.get('/v1/job/job/deployment')['ID']
    evaluation = node.get('/v1/evaluations')[0]['ID']
    for given, shows in (alloc, 'Job Version'), (deployment, 'Placed'), (evaluation, 'TriggeredBy'), \
                        (volume, 'mkdir'), (node.node_mark(), 'Eligibility'), ('job', 'Submit Date'):
        told = node.cli('status', given).stdout
        assert shows in told, (given, told)
    found = node.put('/v1/search', {'Prefix': deployment[:8], 'Context': 'deployment'})
    assert found['Matches'] == {'deployment': [deployment]}, found
    for wrong in {'Prefix': 'j', 'Context': 'nothing'}, {'Prefix': 5}, {'Prefix': 'j', 'Context': ['jobs']}:
        try:
            node.put('/v1/search', wrong)
            raise AssertionError(wrong)
        except Refused as refused:
            assert refused.status == 400, refused
    node.call('DELETE', '/v1/volume/host/' + volume)
    end(node)


def what_is_used_is_shown():
    node, alloc, _ = start_both()
    shown = node.cli('alloc', 'status', '-stats', alloc).stdout
    assert shown.count('Memory Stats') == 2 and 'RSS' in shown and 'System Mode' in shown, shown
    assert 'Memory Stats' not in node.cli('alloc', 'status', alloc).stdout
    shown = node.cli('node', 'status', '-stats', '-self').stdout
    assert 'CPU Stats' in shown and 'Inodes Percent' in shown and 'Available' in shown, shown
    assert 'nomad_client_allocations_running' in \
        node.cli('operator', 'metrics', '-format', 'prometheus').stdout
    names = [gauge['Name'] for gauge in json.loads(node.cli('operator', 'metrics').stdout)['Gauges']]
    assert 'nomad.client.allocations.running' in names, names
    assert node.cli('operator', 'metrics', '-format', 'xml', check=False).returncode != 0
    end(node)


# All that nomad v2.0.5 sets in client/: `grep -rho 'SetGauge[^,]*\[\]string{[^}]*}' client`, and the
# kinds of memory that its drivers measure in cgroups of version 2.  With a reason: not here.
NOMADS_GAUGES = {
    'allocated': {'cpu': '', 'disk': '', 'memory': '', 'max_memory': '',
                  'network': 'bandwidth is not given out since Nomad 0.12'},
    'unallocated': {'cpu': '', 'disk': '', 'memory': '',
                    'network': 'bandwidth is not given out since Nomad 0.12'},
    'allocations': dict.fromkeys(('blocked', 'migrating', 'pending', 'running', 'terminal'), ''),
    'allocs.cpu': dict.fromkeys(('allocated', 'system', 'throttled_periods', 'throttled_time',
                                 'total_percent', 'total_ticks', 'user'), ''),
    'allocs.max_run_duration': dict.fromkeys(('configured_seconds', 'remaining_seconds'),
                                             'their labels do not say of which alloc they are'),
    'allocs.memory': dict.fromkeys(('allocated', 'max_allocated', 'rss', 'cache', 'swap', 'usage'),
                                   ''),
    'host.cpu': dict.fromkeys(('idle', 'system', 'total', 'total_percent', 'total_ticks', 'user'),
                              ''),
    'host.disk': dict.fromkeys(('available', 'inodes_percent', 'size', 'used', 'used_percent'), ''),
    'host.memory': dict.fromkeys(('available', 'free', 'total', 'used'), ''),
    'tasks': dict.fromkeys(('dead', 'pending', 'running'), ''),
}


def every_gauge_of_nomads_client_has_its_name_here():
    node = Node(config='telemetry {\n  publish_allocation_metrics = true\n}\n')
    node.start()
    node.run_job(job(task('t', 'exec sleep 1000', Resources={'CPU': 50, 'MemoryMB': 32,
                                                             'MemoryMaxMB': 64})))
    wait_for('the task to run', node.running)

    def shown():
        return {gauge['Name'] for gauge in node.get('/v1/metrics')['Gauges']}
    wait_for('what the task uses', lambda: 'nomad.client.allocs.cpu.user' in shown())
    names = {'nomad.client.uptime'}
    for group, gauges in NOMADS_GAUGES.items():
        for name, reason in gauges.items():
            whole = 'nomad.client.%s.%s' % (group, name)
            assert (whole in shown()) == (not reason), (whole, reason)
            names.add(whole)
    assert len(names) == 48, len(names)
    more = {name for name in shown() if name.startswith('nomad.client.')} - names
    assert more == {'nomad.client.allocs.memory.max_usage'}, more  # of cgroups of version 1
    node.finish()


# Likewise what it counts and times, `grep -rhoE '(IncrCounter|MeasureSince)[^,]*[[]]string{[^}]*}' client`.
CALLS = 'how long its own calls take, of which there are none'
THINGS_COUNTED = {
    'allocs.complete': '', 'allocs.failed': '', 'allocs.restart': '', 'allocs.cpu.total_ticks_count': '',
    'host.cpu.total_ticks_count': '', 'allocs.running': '', 'allocs.oom_killed': '',
    'alloc_hook.prerun.success': '', 'task_hook.prestart.success': '', 'task_hook.prestart.failed': '',
    'alloc_hook.prerun.failed': 'none fails here',
    'vault.*': 'tokens of Vault are not there', 'rpc.*': CALLS, 'streaming_rpc.*': CALLS, 'acl.*': CALLS,
    'agent.*': CALLS, 'allocations.*': CALLS, 'client_stats.*': CALLS, 'csi_controller.*': CALLS,
    'csi_node.*': CALLS, 'file_system.*': CALLS, 'host_volume.*': CALLS, 'node_meta.*': CALLS,
}


def what_nomads_client_counts_has_its_name_here():
    node = Node(config='telemetry {\n  publish_allocation_metrics = true\n  prometheus_metrics = true\n}\n')
    node.start()
    groups = [('t', 1, '[ -e local/again ] && exec sleep 1000; : > local/again; exit 1', {}),
              ('done', 0, 'exit 0', {}), ('wrong', 0, 'exit 1', {}),
              ('large', 0, 'exec tail /dev/zero',
               {'Driver': 'exec', 'Resources': {'CPU': 50, 'MemoryMB': 16}}),
              ('unfit', 0, 'exit 0', {'Artifacts': [{'GetterSource': 'file:///nothing/is/here'}]})]
    node.run_job({'ID': 'job', 'Type': 'batch', 'TaskGroups': [
        {'Name': name, 'Tasks': [task(name, script, **more)], 'ReschedulePolicy': NO_RESCHEDULE,
         'RestartPolicy': {'Attempts': attempts, 'Mode': 'fail', 'Interval': 10 ** 12, 'Delay': 10 ** 7}}
        for name, attempts, script, more in groups]})
    expected = {'nomad.client.' + name for name, reason in THINGS_COUNTED.items() if not reason}

    def shown():
        counted = {}
        for counter in node.get('/v1/metrics')['Counters']:
            counted.setdefault(counter['Name'], []).append((counter['Labels'], counter['Sum']))
        return counted
    found = wait_for('all of them', lambda: (lambda all_: expected <= set(all_) and all_)(shown()))
    assert set(found) == expected, set(found) ^ expected
    for name, tasks in (('restart', {'t': 1}), ('complete', {'done': 1}), ('oom_killed', {'large': 1}),
                        ('failed', {'wrong': 1, 'large': 1, 'unfit': 1}),
                        ('running', {'t': 2, 'done': 1, 'wrong': 1, 'large': 1})):
        wait_for('what has become of each', lambda: {
            labels['task']: count for labels, count in shown()['nomad.client.allocs.' + name]} == tasks)
    for name, hook, count in (('alloc_hook.prerun.success', 'alloc_dir', 5),
                              ('task_hook.prestart.success', 'task_dir', 6),
                              ('task_hook.prestart.failed', 'artifacts', 1)):
        assert [(labels['namespace'], count) for labels, count in found['nomad.client.' + name]
                if labels['hook_name'] == hook] == [('default', count)], found
    samples = {(sample['Name'], sample['Labels']['hook_name']): sample
               for sample in node.get('/v1/metrics')['Samples']}
    took = samples['nomad.client.task_hook.prestart.elapsed', 'task_dir']
    assert took['Count'] == 6 and 0 < took['Min'] <= took['Mean'] <= took['Max'] <= took['Sum'], took
    ticks = {labels['task']: count for labels, count in found['nomad.client.allocs.cpu.total_ticks_count']}
    assert set(ticks) == {'t'}, ticks
    before = sum(count for _, count in found['nomad.client.host.cpu.total_ticks_count'])
    wait_for('the host to work', lambda: sum(
        count for _, count in shown()['nomad.client.host.cpu.total_ticks_count']) > before)
    text = node.cli('operator', 'metrics', '-format', 'prometheus').stdout
    assert '# TYPE nomad_client_allocs_restart counter\nnomad_client_allocs_restart{alloc_id="' in text, text
    assert '# TYPE nomad_client_task_hook_prestart_elapsed summary\n' in text, text
    assert re.search(r'^nomad_client_task_hook_prestart_elapsed_count\{.*hook_name="task_dir"\} 6$', text,
                     re.M), text
    node.finish()


def jobs_are_counted_as_nomads_leader_does():
    node = Node()
    node.start()
    node.run_job(job(task('t', 'exec sleep 1000')))
    node.run_job({'ID': 'work', 'Type': 'batch', 'ParameterizedJob': {}, 'TaskGroups': [
        {'Name': 'g', 'Tasks': [task('t', 'exit 0')]}]})
    child = node.put('/v1/job/work/dispatch', {})['DispatchedJobID']

    def figures(kind, *labels):
        return {tuple(gauge['Labels'].get(label) for label in labels) + (gauge['Name'].split('.')[-1],):
                gauge['Value'] for gauge in node.get('/v1/metrics')['Gauges']
                if gauge['Name'].startswith('nomad.nomad.%s.' % kind)}

    wait_for('both', lambda: node.running() and node.get('/v1/job/' + child)['Status'] == 'dead')
    assert figures('job_status') == {('pending',): 0, ('running',): 2, ('dead',): 1}
    shown = figures('job_summary', 'job', 'task_group', 'namespace', 'parent_id', 'dispatch_id')
    assert {labels: value for labels, value in shown.items() if value} == {
        ('job', 'g', 'default', None, None, 'running'): 1,
        (child, 'g', 'default', 'work', child.split('/dispatch-')[1], 'complete'): 1}, shown
    assert {labels[-1] for labels in shown if labels[0] == 'work'} == {
        'queued', 'starting', 'running', 'complete', 'failed', 'lost', 'unknown'}, shown
    text = node.cli('operator', 'metrics', '-format', 'prometheus').stdout
    assert text.count('# TYPE nomad_nomad_job_summary_running gauge\n') == 1, text
    node.kill()
    node.config = os.path.join(node.dir, 'agent.hcl')
    with open(node.config, 'w') as out:
        out.write('telemetry {\n  disable_dispatched_job_summary_metrics = true\n}\n')
    node.start()
    assert {labels[0] for labels in figures('job_summary', 'job')} == {'job', 'work'}
    assert figures('job_status')[('dead',)] == 1
    node.finish()


def what_the_machine_is_like_is_among_its_attributes():
    node = Node()
    node.start()
    said = node.get('/v1/node/' + node.get('/v1/nodes')[0]['ID'])['Attributes']
    assert said['unique.advertise.address'] == '127.0.0.1:%d' % node.port, said
    assert said['cpu.usablecompute'] == said['cpu.totalcompute'], said
    parts = {entry[len('node'):] for entry in os.listdir('/sys/devices/system/node')
             if entry.startswith('node')} if os.path.isdir('/sys/devices/system/node') else set()
    assert {name[len('numa.node'):-len('.cores')] for name in said if name.endswith('.cores')} == parts, said
    assert said.get('numa.node.count', '0') == str(len(parts)), said
    node.finish()


def rotation_is_followed_without_gap_or_double():
    go = 'while [ ! -e "$NOMAD_TASK_DIR/go" ]; do sleep 0.05; done; '
    lines = 600000  # 4 MB
    node, alloc = start(task('t', go + 'seq 1 %d; sleep 1000' % lines,
                             LogConfig={'MaxFiles': 100, 'MaxFileSizeMB': 1}))
    streams = [follow(node, '/v1/client/fs/logs/%s?task=t&type=stdout&follow=true' % alloc)
               for _ in range(3)]
    open(os.path.join(node.data, 'alloc', alloc, 't', 'local', 'go'), 'w').close()
    expected = ''.join('%d\n' % number for number in range(1, lines + 1))
    for stream in streams:
        got, length = [], 0
        for frame in frames(stream):
            got.append(base64.b64decode(frame.get('Data', '')).decode())
            length += len(got[-1])
            if length >= len(expected):
                break
        assert ''.join(got) == expected
    node.cli('job', 'stop', '-purge', 'job')
    node.finish()


def the_end_of_a_log_and_of_a_file_is_shown():
    node, alloc = start(task('t', 'seq 1 30; seq 1 5 >&2; seq 1 30 >"$NOMAD_TASK_DIR/file"; '
                             'sleep 1000'), task('other', 'sleep 1000'))
    wait_for('the output', lambda: node.cli('alloc', 'fs', alloc, 't/local/file', check=False)
             .stdout.endswith('30\n'))
    wait_for('the log', lambda: node.cli('alloc', 'logs', alloc, 't').stdout.endswith('30\n'))
    assert node.cli('alloc', 'logs', '-tail', '-n', '2', alloc, 't').stdout == '29\n30\n'
    assert node.cli('alloc', 'logs', '-c', '3', '-task', 't', alloc).stdout == '30\n'
    assert node.cli('alloc', 'logs', '-job', '-stderr', '-n', '1', 'job', 't').stdout == '5\n'
    assert node.cli('alloc', 'fs', '-tail', '-n', '2', alloc, 't/local/file').stdout == '29\n30\n'
    assert node.cli('alloc', 'fs', '-job', '-c', '3', 'job', 't/local/file').stdout == '30\n'
    failed = node.cli('alloc', 'logs', '-job', 'job', check=False)
    assert failed.returncode != 0 and 'name one of' in failed.stdout, failed.stdout
    assert node.cli('alloc', 'logs', '-job', 'nobody', 't', check=False).returncode != 0
    node.cli('job', 'stop', '-purge', 'job')
    node.finish()


def a_task_whose_logs_are_disabled_has_none():
    """What it prints goes nowhere, and who asks for it hears at once that there is none."""
    script = 'echo seen; echo seen >&2; touch "$NOMAD_TASK_DIR/printed"; sleep 1000'
    node, alloc = start(dict(task('t', script), LogConfig={'Disabled': True}), task('loud', script))
    for name in 't', 'loud':
        wait_for('what it prints', lambda: os.path.exists(
            os.path.join(node.data, 'alloc', alloc, name, 'local', 'printed')))
    wait_for('the log', lambda: node.cli('alloc', 'logs', alloc, 'loud').stdout == 'seen\n')
    node.kill()
    node.start()
    for name in 't', 'loud':
        wait_for('the restart', lambda: node.running(name))
    for asked in (), ('-stderr',), ('-f',), ('-tail', '-n', '1'):
        failed = node.cli('alloc', 'logs', *asked, alloc, 't', check=False)
        kind = 'stderr' if asked == ('-stderr',) else 'stdout'
        assert failed.returncode == 1, failed
        assert 'log type "%s" not found' % kind in failed.stdout, failed.stdout
    logs = os.listdir(os.path.join(node.data, 'alloc', alloc, 'alloc', 'logs'))
    assert 'loud.stdout.0' in logs and not [name for name in logs if name.startswith('t.')], logs
    node.cli('job', 'stop', '-purge', 'job')
    node.finish()


def a_follower_is_told_what_is_written_next():
    node, alloc = start(task('t', 'echo first; while [ ! -e "$NOMAD_TASK_DIR/go" ]; do '
                             'sleep 0.05; done; echo second; sleep 1000'))
    follower = subprocess.Popen([os.path.join(node.build, 'cairn'), 'alloc', 'logs', '-f', alloc],
                                env=dict(os.environ, NOMAD_ADDR='http://127.0.0.1:%d' % node.port),
                                stdout=subprocess.PIPE, text=True)
    try:
        assert follower.stdout.readline() == 'first\n'
        open(os.path.join(node.data, 'alloc', alloc, 't', 'local', 'go'), 'w').close()
        assert follower.stdout.readline() == 'second\n'
    finally:
        follower.kill()
        follower.wait()
    node.cli('job', 'stop', '-purge', 'job')
    node.finish()


def a_log_whose_alloc_goes_ends():
    node, alloc = start(task('t', 'echo first; sleep 1000'))
    stream = follow(node, '/v1/client/fs/logs/%s?task=t&type=stdout&follow=true' % alloc)
    seen = frames(stream)
    first = next(frame for frame in seen if 'Data' in frame)  # it may listen before there is any
    assert base64.b64decode(first['Data']) == b'first\n'
    node.cli('job', 'stop', '-purge', 'job')
    node.cli('system', 'gc')
    for _ in seen:
        pass
    node.finish()


def a_socket_is_the_only_way_for_whom_it_admits():
    path = '/tmp/cairn-live-%d.sock' % os.getpid()
    node = Node(config='addresses {\n  http = "127.0.0.1 unix://%s"\n}\n'
                       'unix_sockets {\n  mode = "0660"\n}\n' % path)
    node.start()
    node.run_job(job(task('t', 'exec sleep 1000')))
    wait_for('the task to run', node.running)
    alloc = node.alloc('job', 'g')['ID']
    assert os.stat(path).st_mode & 0o777 == 0o660

    def local(*arguments, **more):
        return subprocess.run([os.path.join(node.build, 'cairn'), *arguments], timeout=60,
                              env=dict(os.environ, NOMAD_ADDR='unix://' + path),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    done = local('alloc', 'exec', alloc, 'sh', '-c', 'cat; exit 7', input=b'x' * 1000000)
    assert done.returncode == 7 and done.stdout == b'x' * 1000000, done.stdout[:200]
    assert os.stat('/run/cairn').st_mode & 0o777 == 0o711  # where such sockets are, usually
    stranger = local('node', 'status', user=65534, group=65534, extra_groups=[])
    assert stranger.returncode != 0 and b'may not connect' in stranger.stdout, stranger.stdout
    node.kill()
    assert os.path.exists(path)  # left by a crash, and taken over
    node.start()
    assert local('job', 'status').returncode == 0
    node.finish()
    assert not os.path.exists(path)


def who_shows_his_token_in_a_handshake_is_who_it_says():
    node = Node(config='acl {\n  enabled = true\n}\n')
    node.start()
    node.token = node.put('/v1/acl/bootstrap')['SecretID']
    node.put('/v1/acl/policy/readers', {
        'Name': 'readers', 'Rules': 'namespace "default" { policy = "read" }'})
    reader = node.put('/v1/acl/token', {'Type': 'client', 'Policies': ['readers']})['SecretID']
    node.run_job(job(task('t', 'exec sleep 1000')))
    wait_for('the task to run', node.running)
    alloc = node.alloc('job', 'g')['ID']

    def session(message, **more):
        made = Session(node, alloc, 't', ['echo', 'in'], ws_handshake='true', **more)
        assert made.status == 101, made.head
        made.send(message)
        return made.hear_all()
    assert Session(node, alloc, 't', ['echo', 'in']).status == 403
    assert session({'version': 1, 'auth_token': node.token}).out['stdout'] == b'in\n'
    for message in ({'version': 1}, {'version': 1, 'auth_token': reader},
                    {'version': 1, 'auth_token': 'a' * 36}):
        made = session(message)
        assert made.closed[1] == 'Permission denied' and not made.out['stdout'], made.closed
    # what he shows before is not what he is
    made = session({'version': 1, 'auth_token': reader},
                   headers='X-Nomad-Token: %s\r\n' % node.token)
    assert made.closed[1] == 'Permission denied', made.closed
    made = session({'version': 2, 'auth_token': node.token})
    assert 'unexpected handshake' in made.closed[1], made.closed
    assert Session(node, 'f' * 8 + alloc[8:], 't', ['true'],
                   headers='X-Nomad-Token: %s\r\n' % node.token).status == 404
    node.finish()


if __name__ == '__main__':
    sys.exit(tap([
        rotation_is_followed_without_gap_or_double,
        the_end_of_a_log_and_of_a_file_is_shown,
        a_task_whose_logs_are_disabled_has_none,
        a_follower_is_told_what_is_written_next,
        a_log_whose_alloc_goes_ends,
        a_command_runs_as_its_task_does,
        what_cannot_be_run_is_told,
        a_command_of_the_job_is_run_by_its_name,
        input_is_passed_on_as_it_is_taken,
        a_terminal_is_one,
        a_session_ends_with_whoever_asked,
        a_session_ends_with_its_task,
        a_session_ends_with_the_daemon,
        what_a_killed_helper_leaves_is_ended,
        what_happens_is_streamed,
        whatever_an_id_belongs_to_is_shown,
        what_is_used_is_shown,
        a_socket_is_the_only_way_for_whom_it_admits,
        who_shows_his_token_in_a_handshake_is_who_it_says,
        every_gauge_of_nomads_client_has_its_name_here,
        what_nomads_client_counts_has_its_name_here,
        jobs_are_counted_as_nomads_leader_does,
        what_the_machine_is_like_is_among_its_attributes,
    ]))
