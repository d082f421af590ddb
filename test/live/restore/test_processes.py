#!/usr/bin/env python3
"""Whatever dies beside a payload, the payload is found, ended and told of as it truly was.

In a whole run it waits for 70 s.
"""
import ctypes
import os
import platform
import shutil
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, PATIENCE, Node, Refused, events, exit_codes,  # noqa: E402
                 milliseconds, raw_exec, restart_policy, service, sleeper, start_ticks, tap,
                 wait_for)


def groups(scripts, kind='batch', **fields):
    """A job "job" with a group for each name of SCRIPTS, and its one task "t"."""
    return {'ID': 'job', 'Name': 'job', 'Type': kind, 'Datacenters': ['dc1'],
            'TaskGroups': [{'Name': name, 'Count': 1, 'RestartPolicy': restart_policy(0),
                            'ReschedulePolicy': NO_RESCHEDULE,
                            'Tasks': [raw_exec('t', script, **fields)]}
                           for name, script in scripts.items()]}


def touch(path):
    with open(path, 'w'):
        pass


def removed(cgroup):
    """What it had has left its list before it has left it."""
    try:
        os.rmdir(cgroup)
    except OSError:
        return False
    return True


def text_of(path):
    if not os.path.exists(path):
        return ''
    with open(path) as file:
        return file.read()


def text_of_fds(pid):
    """Where the descriptors of PID lead, one a line."""
    found = []
    for name in os.listdir('/proc/%d/fd' % pid):
        try:
            found.append(os.readlink('/proc/%d/fd/%s' % (pid, name)))
        except FileNotFoundError:  # closed meanwhile
            pass
    return '\n'.join(found)


# --- the daemon dies ---

def unified():
    """Where cgroups of version 2 are, None if this machine has none."""
    for path in ('/sys/fs/cgroup', '/sys/fs/cgroup/unified'):
        if os.path.exists(path + '/cgroup.controllers'):
            return path
    return None


def death_of_the_daemons_whole_cgroup_touches_no_payload():
    """R-14: as a service manager that kills everything in the unit's cgroup."""
    if unified() is None:
        return 'needs cgroups of version 2'
    unit = os.path.join(os.path.dirname(__file__), '../../../agent/cairn.service')
    assert 'KillMode=process\n' in text_of(unit)
    node = Node()
    cgroup = os.path.join(unified(), os.path.basename(node.dir))
    os.mkdir(cgroup)
    try:
        node.prefix = ['sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', cgroup]
        node.start()
        node.run_job(service(sleeper()))
        wait_for('the task', node.running)
        pid, shims = node.await_pid('sleep 1000'), node.shims()
        # What it runs to learn about a driver (java -version) is there for a moment.
        wait_for('the daemon to be alone', lambda: text_of(cgroup + '/cgroup.procs').split() == [
            str(node.process.pid)])
        with open(cgroup + '/cgroup.kill', 'w') as kill:
            kill.write('1')
        node.process.wait()
    finally:
        wait_for('the cgroup to be empty', lambda: removed(cgroup))
    node.prefix = []
    node.start()
    state = wait_for('the task', node.running)
    assert node.pid_of('sleep 1000') == pid and node.shims() == shims
    assert events(state).count('Started') == 1, events(state)
    node.finish()
    return None


def output_goes_on_when_nobody_reads_the_daemons_any_more():
    """R-12: the reader of its standard error goes, then the daemon; who writes on is not hurt."""
    node = Node()
    pipe = os.path.join(node.dir, 'stderr')
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    node.prefix = ['sh', '-c', 'pipe=$0; exec "$@" 2> "$pipe"', pipe]
    node.start()
    node.run_job(service(raw_exec('t', 'trap "yes a line of the payload | head -c 300000; '
                                       'echo done >> said" USR1; '
                                       'sleep 1000 & while :; do wait; done')))
    wait_for('the task', node.running)
    said = os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'], 't/said')
    wait_for('the payload', lambda: node.pid_of('sleep 1000'))  # until then that has its name
    payload = next(pid for pid, line in node.payloads().items() if 'a line of' in line)
    shims = node.shims()
    os.close(reader)
    for _ in range(3):
        node.process.send_signal(signal.SIGHUP)  # makes it log a line
        node.get('/v1/agent/self')
    assert node.alive(), 'the daemon died of its log'
    node.kill()
    os.kill(payload, signal.SIGUSR1)
    wait_for('the payload to have written', lambda: text_of(said).count('done') == 1)
    node.prefix = []
    node.start()
    state = wait_for('the task', node.running)
    assert node.shims() == shims and start_ticks(payload) is not None
    assert state['Restarts'] == 0 and events(state).count('Started') == 1, events(state)
    logs = os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'], 'alloc/logs/t.stdout.0')
    wait_for('the output', lambda: os.path.getsize(logs) == 300000)
    node.finish()


def output_goes_on_when_its_file_is_removed():
    """R-52: the file, then its directory; it is made again, and says that something is missing."""
    node = Node()
    node.start()
    node.run_job(service(raw_exec('t', 'while :; do echo a line; sleep 0.01; done')))
    wait_for('the task', node.running)
    logs = os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'], 'alloc/logs')
    path = logs + '/t.stdout.0'
    for remove in (lambda: os.unlink(path), lambda: shutil.rmtree(logs)):
        wait_for('output', lambda: text_of(path).endswith('a line\n'))
        remove()
        wait_for('word of it', lambda: 'are missing here: the log file was removed' in text_of(path))
    assert node.running()['Restarts'] == 0
    node.finish()


def exits_while_nobody_watches_are_told_once_and_true():
    """R-15, R-13: by code and by signal; with the shim dead before it, the code is unknown."""
    ways = {'zero': 'exit 0', 'three': 'exit 3', 'killed': 'kill -9 $$', 'term': 'kill -TERM $$',
            'lost': 'exit 0'}
    node = Node()
    go = os.path.join(node.dir, 'go')
    node.start()
    node.run_job(groups({name: 'echo %s; while [ ! -e %s ]; do sleep 0.02; done; %s'
                         % (name, go, way) for name, way in ways.items()}))
    wait_for('all tasks', lambda: all(node.running(group=name) for name in ways))
    lost = node.alloc('job', 'lost')['ID']
    node.kill()
    for pid in node.shims():
        if lost in text_of_fds(pid):
            os.kill(pid, signal.SIGKILL)
    touch(go)
    wait_for('every payload and shim to end', lambda: not node.payloads() and not node.shims())
    expected = {'zero': 0, 'three': 3, 'killed': 137, 'term': 143, 'lost': -1}
    for _ in range(2):  # the second restart must tell nothing again
        node.start()
        for name, code in expected.items():
            state = wait_for('the end of ' + name, lambda: node.dead(group=name))
            assert exit_codes(state) == [code], (name, exit_codes(state))
            assert events(state).count('Terminated') == 1, events(state)
            assert state['Failed'] == (code != 0), (name, state)
        node.kill()
    node.start()
    node.finish()


def finished_work_does_not_run_again_and_cannot_be_restarted():
    """R-01, R-04: terminal states absorb, before and after a restart of the daemon."""
    node = Node()
    starts = os.path.join(node.dir, 'starts')
    node.start()
    node.run_job(groups({'g': 'echo x >> ' + starts}))
    wait_for('the end', lambda: node.dead() and node.alloc('job', 'g')['ClientStatus'] == 'complete')
    before = node.dead()
    for _ in range(2):
        alloc = node.alloc('job', 'g')
        assert alloc['ClientStatus'] == 'complete', alloc['ClientStatus']
        for path, body in (('restart', {'TaskName': 't'}), ('restart', {}),
                           ('signal', {'Signal': 'SIGUSR1', 'Task': 't'})):
            try:
                node.put('/v1/client/allocation/%s/%s' % (alloc['ID'], path), body)
                raise AssertionError('%s %r was taken' % (path, body))
            except Refused as answer:
                assert answer.status in (404, 409), answer
        node.kill()
        node.start()
    assert node.dead() == before, 'its events changed'
    assert text_of(starts) == 'x\n', 'it ran again'
    node.finish()


# --- ends ---

def stop_racing_with_the_natural_end_tells_the_true_code():
    """R-13: the payload says itself which code it ends with; that one is told, once."""
    node = Node()
    said = os.path.join(node.dir, 'said')
    os.mkdir(said)
    script = ('trap "echo 9 > {0}; exit 9" TERM; i=0; while [ $i -lt {1} ]; do i=$((i + {2})); '
              'done; echo 7 > {0}; trap "" TERM; exit 7')
    node.start()
    for round_ in range(8):
        suffix = '.%d' % round_
        scripts = {'g%d' % i: script.format(os.path.join(said, 'g%d%s' % (i, suffix)),
                                            int(20000 / PATIENCE) * i, 1)
                   for i in range(12)}
        scripts['last'] = script.format(os.path.join(said, 'last' + suffix), 1, 0)  # runs on
        job = groups(scripts, KillSignal='SIGTERM', KillTimeout=milliseconds(20000))
        job['ID'] = job['Name'] = 'job' + suffix
        node.run_job(job)
        wait_for('the last to run', lambda: node.running('t', job['ID'], 'last'))
        wait_for('some to end', lambda: sum(name.endswith(suffix) for name in os.listdir(said))
                 > round_)
        node.call('DELETE', '/v1/job/' + job['ID'])
        for name in scripts:
            state = wait_for('the end of ' + name, lambda: node.dead('t', job['ID'], name))
            truth = text_of(os.path.join(said, name + suffix)).split()
            if truth:
                assert exit_codes(state) == [int(truth[-1])], (name, truth, exit_codes(state))
            else:  # ended before its first word, or never begun
                assert exit_codes(state) in ([], [143]), (name, exit_codes(state))
    node.finish()


def what_left_its_session_is_ended_with_its_task():
    """R-18: two forks and a session of their own; no cgroup is left, after short tasks either."""
    node = Node()
    node.start()
    leave = 'setsid sh -c "setsid sleep 3000 & sleep 3001" & '
    node.run_job(service(raw_exec('t', leave + 'exec sleep 1000',
                                  KillTimeout=milliseconds(2000))))
    wait_for('the task', node.running)
    wait_for('the others', lambda: node.pid_of('sleep 3000') and node.pid_of('sleep 3001'))
    node.kill()
    node.start()
    wait_for('the task', node.running)
    node.call('DELETE', '/v1/job/job')
    wait_for('the end', node.dead)
    assert not node.pid_of('sleep 3000') and not node.pid_of('sleep 3001'), node.payloads()
    short = groups({'g%d' % i: leave + 'exit 0' for i in range(20)})
    short['ID'] = short['Name'] = 'short'
    node.run_job(short)
    for group in short['TaskGroups']:
        state = wait_for('the end', lambda: node.dead('t', 'short', group['Name']))
        assert exit_codes(state) == [0], exit_codes(state)
    left = [line for line in node.payloads().values() if 'sleep' in line]
    assert not left, left
    wait_for('no cgroup to be left', lambda: not [
        path for path in node.cgroups(node.node_mark()) if not path.endswith('/shims')])
    node.finish()


def what_left_its_cgroup_is_ended_with_its_task():
    """R-18: main process and descendants, within the kill timeout, daemon or not, true code."""
    if unified() is None:
        return 'needs cgroups of version 2'
    leave = 'echo 0 > %s/cgroup.procs; trap "" INT TERM HUP; setsid sleep 3000 & ' % unified()
    node = Node()
    node.start()
    for job in ('watched', 'unwatched'):
        leaver = service(raw_exec('t', leave + 'exec sleep 1000', KillTimeout=milliseconds(1500)))
        leaver['ID'] = leaver['Name'] = job
        node.run_job(leaver)
        wait_for('the task', lambda: node.running(job=job))
        pids = [node.await_pid('sleep 1000'), node.await_pid('sleep 3000')]
        node.call('DELETE', '/v1/job/' + job)
        if job == 'unwatched':
            wait_for('the signal', lambda: 'Killing' in events(node.task(job, 'g', 't')))
            node.kill()
            wait_for('the end', lambda: not node.payloads())
            node.start()
        state = wait_for('the end', lambda: node.dead(job=job))
        assert exit_codes(state) == [137], exit_codes(state)
        assert not any(map(start_ticks, pids)), node.payloads()
        told = [event['DisplayMessage'] for event in state['Events'] if event['Type'] == 'Terminated']
        assert '1 processes had left its cgroup' in told[0], told
    node.finish()
    return None


def cgroups_in_cgroups_go_with_their_task():
    """R-18: deeper than anybody needs."""
    if unified() is None:
        return 'needs cgroups of version 2'
    nest = ('d=%s$(sed -n s/^0:://p /proc/self/cgroup); i=0; '
            'while [ $i -lt 60 ]; do d=$d/n; mkdir $d $d.beside; i=$((i + 1)); done; '
            'echo 0 > $d/cgroup.procs; ' % unified())
    node = Node()
    node.start()
    node.run_job(groups({'stops': nest + 'exec sleep 1000', 'ends': nest + 'exit 4'},
                        KillTimeout=milliseconds(2000)))
    wait_for('the end', lambda: node.dead(group='ends'))
    node.await_pid('sleep 1000')
    node.call('DELETE', '/v1/job/job')
    wait_for('the end', lambda: node.dead(group='stops'))
    assert exit_codes(node.dead(group='ends')) == [4], node.dead(group='ends')
    wait_for('no cgroup to be left', lambda: not [
        path for path in node.cgroups(node.node_mark()) if not path.endswith('/shims')])
    node.finish()
    return None


def what_does_not_end_is_told_and_tried_again():
    """I-2: a process that no signal reaches keeps its task where it is, and says so."""
    freezer = '/sys/fs/cgroup/freezer'
    if unified() is None or not os.path.exists(freezer + '/cgroup.procs'):
        return 'needs cgroups of version 2 and the freezer of version 1'
    node = Node()
    frozen = os.path.join(freezer, os.path.basename(node.dir))
    os.mkdir(frozen)
    try:
        node.start()
        node.run_job(service(raw_exec('t', 'exec sleep 1000', KillTimeout=milliseconds(100))))
        wait_for('the task', node.running)
        for name, text in (('cgroup.procs', str(node.await_pid('sleep 1000'))),
                           ('freezer.state', 'FROZEN')):
            with open(os.path.join(frozen, name), 'w') as file:
                file.write(text)
        node.call('DELETE', '/v1/job/job')
        wait_for('word of it', lambda: 'Failed to end what is left of the task' in str(
            (node.task('job', 'g', 't') or {}).get('Events')), 90)
        assert 'could not end what is left of a task' in node.log(100000), node.log()
        assert 'Failed to end what is left of the task' in node.cli(
            'alloc', 'status', node.alloc('job', 'g')['ID']).stdout
        assert not node.dead()
    finally:
        with open(frozen + '/freezer.state', 'w') as state:
            state.write('THAWED')
        wait_for('nobody in the freezer', lambda: not text_of(frozen + '/cgroup.procs'))
        os.rmdir(frozen)
    wait_for('the end', node.dead, 60)
    node.finish()
    return None


def a_shim_that_does_not_answer_is_ended_within_its_bound():
    """R-69: a frozen shim delays its own task only, and only for so long."""
    node = Node()
    node.start()
    node.run_job(service(sleeper()))
    other = service(sleeper())
    other['ID'] = other['Name'] = 'other'
    wait_for('the task', node.running)
    for pid in node.shims():
        os.kill(pid, signal.SIGSTOP)
    node.run_job(other)
    wait_for('the other task', lambda: node.running(job='other'))
    node.call('DELETE', '/v1/job/job')
    wait_for('the end of what does not answer', node.dead, 60)
    assert node.running(job='other')['Restarts'] == 0
    node.finish()


# --- pids ---

def fork_at(pid):
    """A child with this very pid, sleeping; None if the kernel does not let us."""
    class Arguments(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint64) for name in (
            'flags', 'pidfd', 'child_tid', 'parent_tid', 'exit_signal', 'stack', 'stack_size',
            'tls', 'set_tid', 'set_tid_size', 'cgroup')]

    wanted = ctypes.c_int(pid)
    arguments = Arguments(exit_signal=signal.SIGCHLD, set_tid=ctypes.addressof(wanted),
                          set_tid_size=1)
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    made = syscall(435, ctypes.byref(arguments), ctypes.sizeof(arguments))  # clone3
    if made == 0:
        os.execve('/bin/sleep', ['sleep', '4000'], {})
    return made if made == pid else None


def a_foreign_process_at_the_journaled_pid_is_left_alone():
    """R-11: payload's and shim's numbers now belong to somebody else."""
    if platform.machine() not in ('x86_64', 'aarch64'):
        return 'knows the number of clone3 for two machines only'
    node = Node()
    node.start()
    node.run_job(service(sleeper()))
    wait_for('the task', node.running)
    old = [node.await_pid('sleep 1000')] + node.shims()
    node.kill()
    for pid in reversed(old):
        os.kill(pid, signal.SIGKILL)
    wait_for('the numbers to be free', lambda: not any(os.path.exists('/proc/%d' % pid)
                                                       for pid in old))
    foreign = [fork_at(pid) for pid in old]
    try:
        if None in foreign:
            return 'the kernel does not let us choose pids'
        node.start()
        state = wait_for('the restart', lambda: (node.running() or {}).get('Restarts') == 1
                         and node.running())
        assert exit_codes(state) == [-1], exit_codes(state)
        assert node.await_pid('sleep 1000') not in old
        node.finish()
        assert all(start_ticks(pid) is not None for pid in foreign), 'a foreign process was ended'
    finally:
        for pid in foreign:
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    return None


# --- restarts of the daemon ---

def drive(node):
    """What a user can ask of a task, and what came of it."""
    alloc = node.alloc('job', 'g')['ID']
    said = os.path.join(node.data, 'alloc', alloc, 't/said')
    wait_for('the payload', lambda: 'ready' in text_of(said))
    node.put('/v1/client/allocation/%s/signal' % alloc, {'Signal': 'SIGUSR1', 'Task': 't'})
    wait_for('the signal', lambda: 'signalled' in text_of(said))
    stats = node.get('/v1/client/allocation/%s/stats' % alloc)
    assert stats['Tasks']['t']['ResourceUsage']['MemoryStats']['RSS'] > 0, stats
    node.put('/v1/client/allocation/%s/restart' % alloc, {'TaskName': 't'})
    wait_for('the restart', lambda: text_of(said).count('ready') == 2 and node.running())
    node.call('DELETE', '/v1/job/job')
    state = wait_for('the end', node.dead)
    return events(state), exit_codes(state), text_of(said).split(), node.cli(
        'alloc', 'logs', alloc, 't').stdout


def a_restored_task_obeys_like_a_fresh_one():
    """R-19: signal, stats, restart, graceful stop and logs, the same with and without restart."""
    came = []
    script = ('trap "echo signalled >> said" USR1; trap "echo asked >> said; exit 5" QUIT; '
              'echo out; echo ready >> said; while :; do sleep 0.01; done')
    for restarts in (0, 2):
        node = Node()
        node.start()
        node.run_job(service(raw_exec('t', script, KillSignal='SIGQUIT',
                                      KillTimeout=milliseconds(20000))))
        wait_for('the task', node.running)
        for _ in range(restarts):
            node.kill()
            node.start()
            wait_for('the task', node.running)
        came.append(drive(node))
        node.finish()
    assert came[0] == came[1], came
    assert came[0][1] == [5, 5] and came[0][2].count('asked') == 2, came[0]


POOL_THREADS = 4  # at most (io/loop/work.h), however many tasks there are


def counts(node):
    """What the daemon holds; a connection that is just being closed counts, too."""
    proc = '/proc/%d' % node.process.pid
    return {'descriptors': len(os.listdir(proc + '/fd')),
            'threads': len(os.listdir(proc + '/task'))}


def what_there_is(node):
    """Of all that outlives the daemon."""
    return {'shims': {pid: len(text_of_fds(pid).split('\n')) for pid in node.shims()},
            'payloads': sorted(node.payloads()), 'mounts': sorted(node.mounts()),
            'cgroups': sorted(node.cgroups(node.node_mark())),
            'files': sum(len(names) for _, _, names in os.walk(node.data))}


def assert_same(what, before, after):
    assert len(before) == len(after), 'a restart changed how many %s there are' % what
    changed = ['%s: %s, was %s' % (key, new.get(key), old.get(key)) for old, new in zip(before, after)
               for key in old.keys() | new.keys() if old.get(key) != new.get(key)]
    assert not changed, 'a restart changed what users see of %s: %s' % (what, '; '.join(changed))


def ten_restarts_change_no_task_and_leak_nothing():
    """R-20, R-38, R-62: same processes, same answers, same numbers of everything."""
    node = Node()
    node.start()
    node.get('/v1/client/stats')  # read aside: from here on there is a pool
    empty = counts(node)
    job = groups({'g%d' % i: 'exec sleep %d' % (1000 + i) for i in range(10)}, 'service',
                 KillTimeout=milliseconds(2000))
    for group in job['TaskGroups']:
        group['Update'] = {'MaxParallel': 1, 'MinHealthyTime': milliseconds(1)}
    node.run_job(job)
    for name in ('zebra', 'ant'):
        empty_job = groups({'g': 'exit 0'})
        empty_job['ID'] = empty_job['Name'] = name
        empty_job['TaskGroups'][0]['Count'] = 0
        node.run_job(empty_job)
    wait_for('all tasks', lambda: all(node.running(group='g%d' % i) for i in range(10)))
    wait_for('their verdicts', lambda: [deployment['Status'] for deployment in
                                        node.get('/v1/deployments')] == ['successful'])
    allocs, jobs, world = node.allocs(), node.get('/v1/jobs'), what_there_is(node)
    for _ in range(10):
        node.kill()
        node.start()
        wait_for('all tasks', lambda: 'restored tasks=10' in node.log().rpartition('restoring')[2])
        for alloc in allocs * 3:
            node.get('/v1/client/allocation/%s/stats' % alloc['ID'])
        # A task costs its connection, or the pidfd of its shim, and no thread but the pool's.
        wait_for('no more than one descriptor a task', lambda: counts(node)['descriptors']
                 <= empty['descriptors'] + 10 and counts(node)['threads'] <= 1 + POOL_THREADS)
        wait_for('the same as before', lambda: what_there_is(node) == world)
        assert_same('allocs', allocs, node.allocs())
        assert_same('jobs', jobs, node.get('/v1/jobs'))
    node.finish()


def figures_of_a_running_task_have_nomads_names():
    """Published where that is configured, with a task's labels; what has ended has none."""
    node = Node(config='telemetry {\n  publish_allocation_metrics = true\n}\n')
    node.start()
    node.run_job(service(raw_exec('t', 'while :; do :; done')))
    wait_for('the task', node.running)

    def figures():
        return {gauge['Name']: gauge for gauge in node.get('/v1/metrics')['Gauges']
                if gauge['Name'].startswith('nomad.client.allocs.')}
    wait_for('time spent', lambda: figures().get(
        'nomad.client.allocs.cpu.total_percent', {'Value': 0})['Value'] > 0)
    alloc = node.allocs()[0]
    # the kernel adds small changes up every other second
    wait_for('memory used',
             lambda: figures()['nomad.client.allocs.memory.rss']['Value'] > 100 << 10)
    assert figures()['nomad.client.allocs.memory.rss']['Labels'] == {
        'alloc_id': alloc['ID'], 'host': node.get('/v1/nodes')[0]['Name'], 'job': alloc['JobID'],
        'namespace': 'default', 'task': 't', 'task_group': alloc['TaskGroup']}
    given = figures()['nomad.client.allocs.memory.allocated']['Value']
    asked = node.get('/v1/job/' + alloc['JobID'])['TaskGroups'][0]['Tasks'][0]['Resources']
    assert given == asked['MemoryMB'] << 20, given
    text = node.text('GET', '/v1/metrics?format=prometheus')
    assert text.count('# TYPE nomad_client_allocs_memory_rss gauge\n') == 1
    assert 'task="t",task_group="%s"} ' % alloc['TaskGroup'] in text
    node.call('DELETE', '/v1/job/' + alloc['JobID'])
    wait_for('its end', lambda: not figures())
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it runs a node with real tasks')
        sys.exit(77)
    sys.exit(tap([
        death_of_the_daemons_whole_cgroup_touches_no_payload,
        output_goes_on_when_nobody_reads_the_daemons_any_more,
        output_goes_on_when_its_file_is_removed,
        exits_while_nobody_watches_are_told_once_and_true,
        finished_work_does_not_run_again_and_cannot_be_restarted,
        stop_racing_with_the_natural_end_tells_the_true_code,
        what_left_its_session_is_ended_with_its_task,
        what_left_its_cgroup_is_ended_with_its_task,
        cgroups_in_cgroups_go_with_their_task,
        what_does_not_end_is_told_and_tried_again,
        a_shim_that_does_not_answer_is_ended_within_its_bound,
        a_foreign_process_at_the_journaled_pid_is_left_alone,
        a_restored_task_obeys_like_a_fresh_one,
        ten_restarts_change_no_task_and_leak_nothing,
        figures_of_a_running_task_have_nomads_names,
    ]))
