#!/usr/bin/env python3
"""The journal cannot be written (I-18): payloads live, commands are refused, the node goes on when
it can."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (Node, Refused, exit_codes, free_port, milliseconds, raw_exec, restart_policy,  # noqa: E402
                 start_ticks, tap, wait_for)


def job(name, script='exec sleep 1000', **fields):
    return {'ID': name, 'Name': name, 'Type': 'service', 'Datacenters': ['dc1'],
            'TaskGroups': [{'Name': 'g', 'Count': 1, 'RestartPolicy': restart_policy(9, 10),
                            'EphemeralDisk': {'SizeMB': 10},  # of a small disk
                            'Tasks': [raw_exec('t', script, KillTimeout=milliseconds(2000),
                                               LogConfig={'MaxFiles': 2, 'MaxFileSizeMB': 2},
                                               **fields)]}]}


class SmallNode(Node):
    """A node whose journal is on a small file system of its own; the rest of its data is not."""

    def __init__(self, config=''):
        super().__init__(config=config)
        self.journal = os.path.join(self.data, 'client/journal')
        os.makedirs(self.journal, mode=0o700)
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=24m,mode=0700', 'none', self.journal],
                       check=True)

    def fill(self, reserve=False):
        """To the last block; without RESERVE what the journal had put by is taken, too."""
        data = os.path.join(self.journal, 'data.mdb')
        if not reserve:
            with self.halted():  # what it writes behind that end meanwhile would be gone
                subprocess.run(['fallocate', '--punch-hole', '--offset',
                                str(os.path.getsize(data)), '--length', str(64 << 20), data],
                               check=True)
        with open(os.path.join(self.journal, 'ballast'), 'wb', buffering=0) as ballast:
            try:
                while True:
                    ballast.write(b'x' * 4096)
            except OSError:
                pass

    @contextlib.contextmanager
    def halted(self):
        """The daemon, if it is there, does nothing in any of its threads."""
        if not self.alive():
            yield
            return
        tasks = '/proc/%d/task' % self.process.pid

        def states():
            for task in os.listdir(tasks):
                with open('%s/%s/stat' % (tasks, task)) as stat:
                    yield stat.read().rpartition(')')[2].split()[0]
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            wait_for('it to halt', lambda: set(states()) == {'T'})
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)

    def free(self):
        os.unlink(os.path.join(self.journal, 'ballast'))


class OwnDiskNode(Node):
    """A node whose data is on an ext4 of its own, which can be made to find an error in itself."""

    def __init__(self):
        super().__init__()
        self.image = os.path.join(self.dir, 'image')
        os.makedirs(self.data, mode=0o700, exist_ok=True)
        with open(self.image, 'wb') as image:
            image.truncate(64 << 20)
        subprocess.run(['mkfs.ext4', '-q', '-F', self.image], check=True)
        subprocess.run(['mount', '-o', 'loop,errors=remount-ro', self.image, self.data],
                       check=True)
        device = subprocess.run(['findmnt', '-no', 'SOURCE', self.data], check=True, text=True,
                                stdout=subprocess.PIPE).stdout.strip()
        self.trigger = '/sys/fs/ext4/%s/trigger_fs_error' % os.path.basename(device)

    def make_read_only(self):
        with open(self.trigger, 'w') as trigger:
            trigger.write('1')

    def unmount(self):
        subprocess.run(['umount', '-l', self.data], check=True)


def running(node, name):
    state = node.task(name, 'g', 't')
    return state if state and state['State'] == 'running' else None


def refused(node, name):
    try:
        node.run_job(job(name))
    except Refused as answer:
        return answer
    return None


def finish(node):
    mark = node.node_mark()
    node.purge()
    assert node.terminate() == 0
    subprocess.run(['umount', '-l', node.journal], check=True)
    node.audit(mark)
    node.close()


def a_full_disk_refuses_commands_and_keeps_payloads():
    node = SmallNode()
    node.start()
    node.run_job(job('kept'))
    wait_for('the task', lambda: running(node, 'kept'))
    pid = node.await_pid('sleep 1000')
    node.fill()
    answer = wait_for('a refusal', lambda: refused(node, 'late'))
    assert answer.status == 503 and 'space' in answer.text.lower(), (answer.status, answer.text)
    assert 'late' not in [known['ID'] for known in node.get('/v1/jobs')], 'refused, yet known'
    assert start_ticks(pid) is not None, 'the payload died'
    os.kill(pid, 9)  # its exit cannot be journaled now, and must not be lost
    wait_for('the node to say so', lambda: 'cannot be written' in node.log())
    node.free()
    state = wait_for('the restart', lambda: (running(node, 'kept') or {}).get('Restarts')
                     and running(node, 'kept'))
    assert exit_codes(state) == [137], exit_codes(state)
    wait_for('commands to be taken again', lambda: refused(node, 'late') is None)
    wait_for('the late task', lambda: running(node, 'late'))
    finish(node)


def a_first_token_that_cannot_be_stored_is_nobody_elses():
    """The configuration says which it is; there is room again, and SIGHUP has it made.  It may be made in
    memory before the disk is seen to be full, and is stored then when there is room."""
    node = SmallNode('# written below\n')
    node.start()
    node.run_job(job('kept'))
    wait_for('the task', lambda: running(node, 'kept'))
    node.kill()
    node.fill()
    secret, path = str(uuid.uuid4()), os.path.join(node.dir, 'first')
    with open(path, 'w') as out:
        out.write(secret + '\n')
    with open(node.config, 'w') as out:
        out.write('acl {\n  enabled = true\n  bootstrap_secret_file = "%s"\n}\n' % path)
    node.start()
    wait_for('word of it', lambda: 'the first token cannot be made' in node.log() or
             'the first token is made' in node.log())
    try:
        node.put('/v1/acl/bootstrap')
        raise AssertionError('somebody else has the first token')
    except Refused as answer:
        assert answer.status in (400, 409, 503), answer
        assert answer.status != 409 or 'acl.bootstrap_secret_file' in answer.text, answer.text
    node.token = secret

    def made():
        node.process.send_signal(signal.SIGHUP)
        try:
            return node.get('/v1/acl/token/self')
        except Refused:
            return None
    made()  # or not yet
    node.free()
    assert wait_for('the token', made)['Type'] == 'management'
    wait_for('commands to be taken again', lambda: refused(node, 'late') is None)
    node.kill()  # what was told is stored
    node.start()
    assert node.get('/v1/acl/token/self')['Type'] == 'management'
    assert running(node, 'kept')['Restarts'] == 0
    finish(node)


def a_full_disk_takes_what_ends_things():
    """Stops, exits and restarts go on in reserve, nothing new is started."""
    node = SmallNode()
    node.start()
    for name in ('kept', 'stopped'):
        node.run_job(job(name, 'exec sleep %d' % (1000 + len(name))))
        wait_for('the task', lambda: running(node, name))
    kept, stopped = node.await_pid('sleep 1004'), node.await_pid('sleep 1007')
    node.fill(reserve=True)
    os.kill(kept, 9)
    wait_for('the restart', lambda: (running(node, 'kept') or {}).get('Restarts'))
    node.call('DELETE', '/v1/job/stopped')
    wait_for('its end', lambda: start_ticks(stopped) is None and node.allocs('stopped')[0]
             ['ClientStatus'] == 'complete')
    for number in range(30):  # into the reserve, if it was not needed yet
        answer = refused(node, 'late%d' % number)
        if answer:
            break
    assert answer and answer.status == 503 and 'space' in answer.text, answer
    assert 'cannot be written' not in node.log(), node.log()
    node.kill()  # and a crash does not lose the reserve
    node.start()
    wait_for('the task', lambda: running(node, 'kept'))
    node.call('DELETE', '/v1/job/kept')
    wait_for('its end', lambda: not running(node, 'kept'))
    node.free()
    wait_for('commands to be taken again', lambda: refused(node, 'late') is None)
    finish(node)


def a_task_that_fills_the_nodes_disk_can_be_stopped():
    """With everything of the node on it, logs and directories, and as root, to the last block."""
    if not shutil.which('mkfs.ext4') or not os.path.exists('/sys/fs/ext4'):
        return 'needs ext4'
    node = OwnDiskNode()
    node.start()
    mark = node.node_mark()
    node.run_job(job('greedy', 'trap "" TERM; while :; do cat /dev/zero >> filler; sleep 0.1; done'))
    wait_for('the task', lambda: running(node, 'greedy'))

    def is_full():
        """Not a block is left, not even to root."""
        probe = os.path.join(node.data, 'probe')
        try:
            with open(probe, 'wb') as file:
                file.write(b'x')
        except OSError:
            return True
        finally:
            if os.path.exists(probe):
                os.unlink(probe)
        return False
    wait_for('a full disk', is_full)
    node.call('DELETE', '/v1/job/greedy')
    wait_for('its end', lambda: not running(node, 'greedy') and not node.payloads())
    assert 'cannot be written' not in node.log(), node.log()
    node.call('DELETE', '/v1/job/greedy?purge=true')
    wait_for('the allocs to be gone', lambda: not node.allocs())
    wait_for('commands to be taken again', lambda: refused(node, 'late') is None)
    wait_for('the late task', lambda: running(node, 'late'))
    node.call('DELETE', '/v1/job/late?purge=true')
    wait_for('the allocs to be gone', lambda: not node.allocs())
    node.terminate()
    node.unmount()
    node.audit(mark)
    node.close()
    return None


def a_full_disk_and_a_crash_lose_nothing():
    """R-26: what could not be journaled is found again by key."""
    node = SmallNode()
    node.start()
    node.run_job(job('kept', 'sleep 0.5; exit 9'))
    wait_for('the task', lambda: running(node, 'kept'))
    node.fill()
    wait_for('the node to say so', lambda: 'cannot be written' in node.log())
    node.kill()
    node.free()
    node.start()
    state = wait_for('the restart', lambda: (running(node, 'kept') or {}).get('Restarts')
                     and running(node, 'kept'))
    assert exit_codes(state)[0] == 9, exit_codes(state)
    finish(node)


def a_full_disk_dispatches_nothing_and_ends_no_session():
    """What cannot be stored is refused and leaves its token free; what runs in a task goes on."""
    node = SmallNode()
    node.start()
    node.run_job(job('kept'))
    asked = job('asked', 'exec sleep 1000', DispatchPayload={'File': 'in'})
    asked.update(Type='batch', ParameterizedJob={'Payload': 'optional'})
    del asked['TaskGroups'][0]['RestartPolicy']
    node.run_job(asked)
    wait_for('the task', lambda: running(node, 'kept'))
    session = subprocess.Popen(
        [os.path.join(node.build, 'cairn'), 'alloc', 'exec', node.allocs('kept')[0]['ID'], 'cat'],
        env=dict(os.environ, NOMAD_ADDR='http://127.0.0.1:%d' % node.port),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def says(line):
        session.stdin.write(line)
        session.stdin.flush()
        return session.stdout.readline() == line

    def dispatch():
        try:
            return node.put('/v1/job/asked/dispatch?idempotency_token=once', {'Payload': 'aGk='})
        except Refused as answer:
            return answer
    assert says(b'before\n')
    node.fill()
    answer = wait_for('a refusal', lambda: isinstance(dispatch(), Refused) and dispatch())
    assert answer.status == 503 and 'space' in answer.text.lower(), (answer.status, answer.text)
    assert says(b'while it is full\n')
    node.free()
    made = wait_for('a dispatch', lambda: (lambda it: not isinstance(it, Refused) and it)(
        dispatch()))
    children = [known['ID'] for known in node.get('/v1/jobs') if known['ParentID'] == 'asked']
    assert children == [made['DispatchedJobID']], (children, made)
    assert says(b'after\n')
    session.stdin.close()
    assert session.wait(10) == 0
    finish(node)


def a_full_disk_launches_nothing_and_forgets_no_time():
    """A periodic job, by hand and at its times: what could not be stored was never launched."""
    node = SmallNode()
    node.start()
    for name, spec in (('timed', '* * * * * * *'), ('forced', '0 0 1 1 * 2099')):
        wanted = job(name, 'exit 0')
        wanted.update(Type='batch', Periodic={'Spec': spec})
        del wanted['TaskGroups'][0]['RestartPolicy']
        node.run_job(wanted)

    def children(name):
        return [known['ID'] for known in node.get('/v1/jobs') if known['ParentID'] == name]

    def force():
        try:
            return node.put('/v1/job/forced/periodic/force', {})
        except Refused as answer:
            return answer
    wait_for('a launch', lambda: children('timed'))
    node.fill()
    answer = wait_for('a refusal', lambda: (lambda it: isinstance(it, Refused) and it)(force()))
    assert answer.status == 503 and 'space' in answer.text.lower(), (answer.status, answer.text)
    by_hand = children('forced')  # by those that were still stored
    before = len(children('timed'))
    node.kill()
    node.start()
    assert children('forced') == by_hand, (children('forced'), by_hand)
    node.free()
    wait_for('another launch', lambda: len(children('timed')) > before)
    wait_for('one by hand', lambda: not isinstance(force(), Refused))
    assert len(children('forced')) == len(by_hand) + 1, (children('forced'), by_hand)
    for child in children('timed'):
        wait_for('its end', lambda one=child: node.get('/v1/job/' + one)['Status'] == 'dead')
        assert len(node.allocs(child)) <= 1, child
    finish(node)


def a_full_disk_renders_and_fetches_nothing_by_half():
    """What is there stays whole, what is not is told, and both are made good when there is room."""
    node = SmallNode('client {\n  alloc_dir = "%s"\n}\n' % os.path.join(tempfile.gettempdir(), uuid.uuid4().hex))
    with open(node.config) as config:
        allocs = re.search('alloc_dir = "(.*)"', config.read()).group(1)
    os.mkdir(allocs, 0o711)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=8m,mode=0711', 'none', allocs], check=True)
    given, ballast = os.path.join(node.dir, 'given'), os.path.join(allocs, 'ballast')
    with open(given, 'wb') as out:
        out.write(b'1' * 100000)
    os.chmod(node.dir, 0o711)
    artifact = [{'GetterSource': 'file://' + given, 'GetterMode': 'file', 'RelativeDest': 'local/given'}]
    node.start()
    node.run_job(job('kept', "trap 'echo told >> {0}/told' HUP; : > {0}/trapped; "
                             'while :; do sleep 1000 & wait; done'.format(node.dir),
                     Artifacts=artifact, Templates=[{
                         'EmbeddedTmpl': '{{ file "local/given" }}', 'DestPath': 'local/made',
                         'ChangeMode': 'signal', 'ChangeSignal': 'SIGHUP', 'Splay': 0}]))
    wait_for('the task', lambda: running(node, 'kept'))
    local = os.path.join(allocs, node.allocs('kept')[0]['ID'], 't/local')

    def made():
        with open(os.path.join(local, 'made'), 'rb') as file:
            return file.read()
    wait_for('its trap', lambda: os.path.exists(os.path.join(node.dir, 'trapped')))
    assert made() == b'1' * 100000
    with open(ballast, 'wb', buffering=0) as out:
        with contextlib.suppress(OSError):
            while True:
                out.write(b'x' * 4096)
    with open(os.path.join(local, 'given'), 'r+b') as changing:  # in its place, which needs no room
        changing.write(b'2' * 100000)
    node.run_job(job('late', Artifacts=artifact))
    wait_for('a word of the one', lambda: re.search('templates are left as they are.*space', node.log(1 << 20)))
    failed = wait_for('a word of the other', lambda: [
        event['DisplayMessage'] for event in (node.task('late', 'g', 't') or {}).get('Events') or []
        if event['Type'] == 'Failed Artifact Download'])
    assert 'space' in failed[0].lower(), failed
    assert made() == b'1' * 100000 and sorted(os.listdir(local)) == ['given', 'made'], os.listdir(local)
    os.unlink(ballast)
    wait_for('the template', lambda: made() == b'2' * 100000)
    wait_for('the other task', lambda: running(node, 'late'))
    with open(os.path.join(allocs, node.allocs('late')[0]['ID'], 't/local/given'), 'rb') as fetched:
        assert fetched.read() == b'1' * 100000
    wait_for('the signal', lambda: os.path.exists(os.path.join(node.dir, 'told')))
    with open(os.path.join(node.dir, 'told')) as told:
        assert told.read() == 'told\n'
    assert node.log(1 << 20).count('templates are left as they are') == 1
    finish(node)
    subprocess.run(['umount', allocs], check=True)
    os.rmdir(allocs)


def a_file_system_made_read_only_is_watched_from():
    """Whoever asks the journal is answered, and a daemon that starts there watches, stops and says
    so."""
    if not shutil.which('mkfs.ext4') or not os.path.exists('/sys/fs/ext4'):
        return 'needs ext4'
    node = OwnDiskNode()
    node.start()
    for name in ('kept', 'stopped'):
        node.run_job(job(name, 'exec sleep %d' % (1000 + len(name))))
        wait_for('the task', lambda: running(node, name))
    kept, stopped = node.await_pid('sleep 1004'), node.await_pid('sleep 1007')
    mark = node.node_mark()
    node.make_read_only()
    for _ in range(2):  # beside the daemon, and without it
        for verb in ('verify', 'list', 'log', 'stats', 'timeline'):
            done = node.cli('journal', verb, '-dir', node.data)
            assert done.returncode == 0, done
        node.kill()
    node.start()
    wait_for('the task', lambda: running(node, 'kept'))
    assert node.pid_of('sleep 1004') == kept and node.pid_of('sleep 1007') == stopped
    assert 'cannot be written' in node.log(), node.log()
    assert 'read-only' in node.get('/v1/nodes')[0]['StatusDescription'], node.get('/v1/nodes')
    answer = refused(node, 'late')
    assert answer.status == 503 and 'read-only' in answer.text, (answer.status, answer.text)
    node.call('DELETE', '/v1/job/stopped')
    wait_for('its end', lambda: start_ticks(stopped) is None)
    os.kill(kept, 9)
    wait_for('the end of the other', lambda: not running(node, 'kept'))
    second = node.command()
    second[second.index('-http-port') + 1] = str(free_port())
    done = subprocess.run(second, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 1 and 'in use' in done.stdout, done
    for name in ('kept', 'stopped'):
        node.call('DELETE', '/v1/job/%s' % name)
    wait_for('no payload', lambda: not node.payloads())
    node.terminate()
    wait_for('no cgroup of a task', lambda: not [path for path in node.cgroups(mark)
                                                 if not path.endswith('/shims')])
    node.unmount()
    node.close()
    return None


if __name__ == '__main__':
    if os.getuid() != 0 or not shutil.which('mount'):
        print('needs root: it mounts small file systems')
        sys.exit(77)
    sys.exit(tap([
        a_full_disk_refuses_commands_and_keeps_payloads,
        a_first_token_that_cannot_be_stored_is_nobody_elses,
        a_full_disk_takes_what_ends_things,
        a_task_that_fills_the_nodes_disk_can_be_stopped,
        a_full_disk_and_a_crash_lose_nothing,
        a_full_disk_dispatches_nothing_and_ends_no_session,
        a_full_disk_launches_nothing_and_forgets_no_time,
        a_full_disk_renders_and_fetches_nothing_by_half,
        a_file_system_made_read_only_is_watched_from,
    ]))
