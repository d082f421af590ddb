#!/usr/bin/env python3
"""Tasks of docker on a real Docker Engine, where there is one (docker.io and busybox-static of Debian): what the
Engine of test_docker.py pretends is so, over crashes of the daemon and of the Engine."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, Node, Refused, exit_codes, milliseconds, restart_policy,  # noqa: E402
                 service, tap, wait_for)

TOOLS = ['sh', 'ip', 'hostname', 'sleep', 'echo', 'cat', 'id', 'touch', 'seq', 'head', 'tail', 'stat']


class Engine:
    """dockerd, with all that it has in a directory of its own; containers outlive it."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix='dockerd-')
        self.socket = os.path.join(self.dir, 'docker.sock')
        self.process = None

    def start(self):
        with open(os.path.join(self.dir, 'log'), 'ab') as log:
            self.process = subprocess.Popen(
                ['dockerd', '--data-root', self.dir + '/data', '--exec-root', self.dir + '/exec',
                 '-H', 'unix://' + self.socket, '--pidfile', self.dir + '/pid', '--iptables=false', '--bridge=none',
                 '--storage-driver=vfs', '--live-restore'],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def ask(self, method, path, *more):
        done = subprocess.run(['curl', '-s', '-m', '60', '--unix-socket', self.socket, '-X', method, *more,
                               'http://engine' + path], stdout=subprocess.PIPE, check=False)
        return done.stdout

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError('dockerd ended: ' + self.log())
        return self.ask('GET', '/_ping') == b'OK'

    def log(self):
        with open(os.path.join(self.dir, 'log'), errors='replace') as log:
            return log.read()[-1000:]

    def load(self):
        path = os.path.join(self.dir, 'image.tar')
        with tarfile.open(path, 'w') as tar:
            folder = tarfile.TarInfo('bin')
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
            tar.add('/bin/busybox', 'bin/busybox')
            for name in TOOLS:
                link = tarfile.TarInfo('bin/' + name)
                link.type, link.linkname = tarfile.SYMTYPE, 'busybox'
                tar.addfile(link)
        assert b'sha256' in self.ask('POST', '/images/create?fromSrc=-&repo=box&tag=1', '-T', path)

    def containers(self):
        return json.loads(self.ask('GET', '/containers/json?all=1'))

    def end(self):
        if self.process.poll() is None:
            for one in self.containers():
                self.ask('DELETE', '/containers/%s?force=1' % one['Id'])
            self.stop()
        with open('/proc/self/mountinfo') as table:
            points = [line.split()[4] for line in table]
        for point in sorted((one for one in points if one.startswith(self.dir)), reverse=True):
            subprocess.run(['umount', '-l', point], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)


ENGINE = Engine()


def shell(script, **fields):
    config = {'image': 'box:1', 'network_mode': 'host', 'command': '/bin/sh', 'args': ['-c', script]}
    return dict({'Name': 't', 'Driver': 'docker', 'Config': config, 'KillTimeout': milliseconds(30000),
                 'Resources': {'CPU': 100, 'MemoryMB': 64}}, **fields)


def open_node(more=''):
    node = Node(config='plugin "docker" {\n config {\n endpoint = "unix://%s"\n%s }\n}\n' % (ENGINE.socket, more))
    node.start()
    return node


def once(task):
    return service(task, restart=restart_policy(0), ReschedulePolicy=NO_RESCHEDULE)


def finish(node):
    node.finish()
    assert ENGINE.containers() == [], ENGINE.containers()


def log_of(node):
    alloc = node.alloc('job', 'g')['ID']
    try:
        return node.text('GET', '/v1/client/fs/logs/%s?task=t&type=stdout&plain=true' % alloc)
    except Refused as refused:  # its file may come a little after the container
        assert refused.status == 404, refused.text
        return ''


def a_task_sees_its_directories_and_ends_with_its_code():
    node = open_node()
    task = shell('id; echo $NOMAD_TASK_DIR $E; cat /local/f; touch /local/x /alloc/y /secrets/z && exit 3', User='7:8',
                 Env={'E': 'v'}, Templates=[{'EmbeddedTmpl': 'templated\n', 'DestPath': 'local/f'}])
    node.run_job(once(task))
    state = wait_for('its end', node.dead, limit_s=60)
    assert exit_codes(state) == [3], state
    assert log_of(node).split('\n')[:3] == ['uid=7 gid=8 groups=8', '/local v', 'templated'], log_of(node)
    finish(node)


def crashes_of_the_daemon_and_of_the_engine_are_no_ends():
    node = open_node()
    node.run_job(once(shell('trap "exit 7" TERM; i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done')))
    before = wait_for('it to run', node.running, limit_s=60)
    for _ in range(2):
        node.kill()
        node.start()
        assert wait_for('it to run on', node.running)['StartedAt'] == before['StartedAt']
    heard = len(log_of(node).split())
    ENGINE.stop()  # which lets containers live
    node.kill()
    node.start()
    wait_for('it to run on', node.running)
    ENGINE.start()
    wait_for('the Engine', ENGINE.answers, limit_s=60)
    said = len(log_of(node).split())
    wait_for('more output', lambda: len(log_of(node).split()) > said + 20, limit_s=60)
    node.call('DELETE', '/v1/job/job')
    state = wait_for('its end', node.dead, limit_s=60)
    assert exit_codes(state) == [7] and state['Restarts'] == 0, state
    numbers = [int(word) for word in log_of(node).split()]
    lost = sorted(set(range(1, numbers[-1] + 1)) - set(numbers))
    assert numbers == sorted(set(numbers)), numbers  # nothing twice
    # But for what the Engine has read when it is told to stop, and does not write down any more.
    assert not lost or (heard < lost[0] and lost[-1] <= said and len(lost) < 5), (heard, lost, said)
    finish(node)


def what_uses_too_much_memory_is_said_so():
    node = open_node()
    node.run_job(once(shell('head -c 200000000 /dev/zero | tail', Resources={'CPU': 100, 'MemoryMB': 16})))
    state = wait_for('its end', node.dead, limit_s=60)
    assert exit_codes(state) != [0] and 'OOM Killed' in json.dumps(state), state
    finish(node)


def statistics_are_those_of_the_container():
    node = open_node()
    node.run_job(once(shell('while :; do :; done', KillTimeout=milliseconds(100))))
    wait_for('it to run', node.running, limit_s=60)
    alloc = node.alloc('job', 'g')['ID']

    def used():
        usage = node.get('/v1/client/allocation/%s/stats' % alloc)['Tasks']['t']['ResourceUsage']
        return usage['CpuStats']['Percent'] > 1 and usage['MemoryStats']['Usage'] > 0

    wait_for('it to use something', used, limit_s=60, pause_s=0.2)
    finish(node)


def execute(node, *words, given=''):
    return subprocess.run([os.path.join(node.build, 'cairn'), 'alloc', 'exec', node.alloc('job', 'g')['ID'], *words],
                          env=dict(os.environ, NOMAD_ADDR='http://127.0.0.1:%d' % node.port), input=given, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)


def a_task_is_in_the_network_of_its_group():
    node = open_node()
    task = shell('ip link; hostname; cat /etc/hosts; while :; do sleep 1; done', KillTimeout=milliseconds(100))
    task['Config'].update({'network_mode': '', 'extra_hosts': ['there:192.0.2.7']})
    job = once(task)
    job['TaskGroups'][0]['Networks'] = [{'Mode': 'none'}]
    node.run_job(job)
    wait_for('it to run', node.running, limit_s=60)
    names = sorted(one['Names'][0] for one in ENGINE.containers())
    assert len(names) == 2 and names[1] == names[0] + '.net', names
    wait_for('its output', lambda: 'there' in log_of(node))
    assert 'lo:' in log_of(node) and '2: ' not in log_of(node), log_of(node)
    (path,) = glob.glob('/run/netns/cairn-%s-*' % node.node_mark())
    assert 'netns %d' % os.stat(path).st_ino == execute(
        node, '/bin/sh', '-c', 'echo netns $(stat -Lc %i /proc/self/ns/net)').stdout.strip()
    node.kill()
    node.start()
    wait_for('it to run on', node.running)
    assert names == sorted(one['Names'][0] for one in ENGINE.containers())
    finish(node)


def commands_are_run_as_the_engine_runs_them():
    node = open_node()
    node.run_job(once(shell('while :; do sleep 1; done', User='7:8', KillTimeout=milliseconds(100))))
    wait_for('it to run', node.running, limit_s=60)
    text = 'line\n' * 200000
    assert execute(node, '/bin/cat', given=text).stdout == text
    done = execute(node, '/bin/sh', '-c', 'id -u; exit 9')
    assert (done.stdout, done.returncode) == ('7\n', 9), done
    client = subprocess.Popen([os.path.join(node.build, 'cairn'), 'alloc', 'exec', node.alloc('job', 'g')['ID'],
                               '/bin/sleep', '98765'], env=dict(os.environ, NOMAD_ADDR='http://127.0.0.1:%d' % node.port),
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    container = ENGINE.containers()[0]['Id']

    def sleeps():
        return b'98765' in ENGINE.ask('GET', '/containers/%s/top' % container)

    wait_for('it to run', sleeps)
    node.kill()
    client.communicate()
    assert sleeps(), 'which the Engine does not end'
    node.start()
    wait_for('what is left of it to end', lambda: not sleeps(), limit_s=60)
    finish(node)


def a_program_that_is_not_there_is_no_start():
    node = open_node()
    task = shell('')
    task['Config']['command'] = '/no/such'
    node.run_job(once(task))
    state = wait_for('its end', node.dead, limit_s=60)
    assert '/no/such' in json.dumps(state) and exit_codes(state) == [], state
    finish(node)


def images():
    return {name for one in json.loads(ENGINE.ask('GET', '/images/json')) for name in one['RepoTags'] or []}


def an_image_that_is_brought_along_goes_with_its_task():
    node = open_node('gc {\n image_delay = "1s"\n }\n')
    path = os.path.join(ENGINE.dir, 'brought.tar')
    assert ENGINE.ask('POST', '/images/box:1/tag?repo=brought&tag=7') == b''
    with open(path, 'wb') as out:
        out.write(ENGINE.ask('GET', '/images/brought:7/get'))
    os.chmod(ENGINE.dir, 0o711)  # whoever fetches it is a user of his own
    ENGINE.ask('DELETE', '/images/brought:7')
    ENGINE.ask('DELETE', '/images/box:1')
    task = shell('cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us; while :; do sleep 1; done',
                 KillTimeout=milliseconds(100),
                 Artifacts=[{'GetterSource': 'file://' + path, 'RelativeDest': 'local',
                             'GetterOptions': {'archive': 'false'}}])
    task['Config'].update({'image': 'brought:7', 'load': 'brought.tar', 'cpu_hard_limit': True})
    node.run_job(once(task))
    wait_for('it to run', node.running, limit_s=60)
    assert images() == {'brought:7'}, images()
    config = json.loads(ENGINE.ask('GET', '/containers/%s/json' % ENGINE.containers()[0]['Id']))['HostConfig']
    quota = str(config['CpuQuota'])
    assert config['CpuPeriod'] == 100000 and quota != '0', config
    wait_for('what the kernel says', lambda: quota in log_of(node))
    node.kill()
    ENGINE.ask('DELETE', '/containers/%s?force=1' % ENGINE.containers()[0]['Id'])
    node.start()
    wait_for('its end', node.dead, limit_s=60)
    wait_for('the image to go', lambda: images() == set(), limit_s=60)
    ENGINE.load()
    finish(node)


def why_not():
    """Why there is no Engine here, or None."""
    missing = [name for name in ('dockerd', 'containerd', 'runc', 'curl') if shutil.which(name) is None]
    if os.getuid() != 0:
        return 'needs root: it starts dockerd'
    if missing or not os.path.exists('/bin/busybox'):
        return 'needs docker.io, curl and busybox-static: no %s' % ', '.join(missing or ['busybox'])
    ENGINE.start()
    try:
        wait_for('dockerd to answer', ENGINE.answers, limit_s=60, pause_s=0.1)
    except AssertionError as error:
        return 'dockerd does not start here: %s' % str(error).replace('\n', ' ')[-200:]
    ENGINE.load()
    return None


if __name__ == '__main__':
    reason = why_not()
    if reason is not None:
        ENGINE.end()
        print(reason)
        sys.exit(77)
    try:
        status = tap([
            a_task_sees_its_directories_and_ends_with_its_code,
            crashes_of_the_daemon_and_of_the_engine_are_no_ends,
            what_uses_too_much_memory_is_said_so,
            statistics_are_those_of_the_container,
            a_task_is_in_the_network_of_its_group,
            commands_are_run_as_the_engine_runs_them,
            a_program_that_is_not_there_is_no_start,
            an_image_that_is_brought_along_goes_with_its_task,
        ])
    finally:
        ENGINE.end()
    sys.exit(status)
