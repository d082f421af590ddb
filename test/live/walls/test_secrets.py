#!/usr/bin/env python3
"""Secrets of tasks are in memory, and are there again: after a reboot, and when the daemon comes back and misses them;
a crash tells none."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import MountedNode, Node, events, raw_exec, restart_policy, service, tap, wait_for  # noqa: E402

KEEPER = 'echo "own $$" > "$NOMAD_SECRETS_DIR/own"; touch "$NOMAD_TASK_DIR/up"; exec sleep 1000'
RENDERED = {'EmbeddedTmpl': 'token of {{ env "NOMAD_ALLOC_ID" }}', 'DestPath': 'secrets/token',
            'ChangeMode': 'restart'}


def in_task(node, *names):
    return os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'], 't', *names)


def read(path):
    with open(path) as file:
        return file.read()


class SecretNode(MountedNode):
    """Its directory is a mount of its own, which tells its copies of changes or not."""

    def run(self, driver):
        self.start()
        self.run_job(service(raw_exec('t', KEEPER, Driver=driver, Templates=[RENDERED]),
                             restart=restart_policy(0)))
        wait_for('the task', lambda: self.running() and os.path.exists(in_task(self, 'local', 'up')))
        assert read(in_task(self, 'secrets', 'own')).startswith('own ')

    def pid(self):
        return self.await_pid('sleep 1000')

    def seen_by_task(self, driver, name):
        """A file of the task's secrets as the task itself finds it."""
        below = '/secrets' if driver == 'exec' else in_task(self, 'secrets')
        return read('/proc/%d/root%s/%s' % (self.pid(), below, name))


def is_as_it_was(node, driver, pid):
    wait_for('the template', lambda: os.path.exists(in_task(node, 'secrets', 'token')))
    assert node.pid() == pid and events(node.running()).count('Started') == 1, node.running()
    assert 'Restarting' not in events(node.running()), node.running()
    assert node.seen_by_task(driver, 'token') == 'token of ' + node.alloc('job', 'g')['ID']
    assert in_task(node, 'secrets') in node.mounts(), node.mounts()


def missed(propagation, driver, said):
    node = SecretNode(propagation)
    node.run(driver)
    pid, own = node.pid(), read(in_task(node, 'secrets', 'own'))
    node.kill()
    subprocess.run(['umount', in_task_of(node)], check=True)
    node.start()
    wait_for('what was found', lambda: 'are again: ' + said in node.log())
    is_as_it_was(node, driver, pid)
    if said != 'empty':
        assert read(in_task(node, 'secrets', 'own')) == own
    node.kill()
    node.start()
    wait_for('the task', node.running)
    assert node.log(1 << 20).count('are again: ') == 1, node.log()
    node.finish()


def in_task_of(node):
    """The secrets that are mounted; the daemon need not be there."""
    found = [point for point in node.mounts() if point.endswith('/secrets')]
    assert len(found) == 1, found
    return found[0]


def missing_ones_are_mounted_again_and_rendered_into():
    missed('private', 'raw_exec', 'empty')


def those_that_a_payload_lost_with_the_host_come_to_it_again():
    missed('shared', 'exec', 'empty')


def those_that_only_the_payload_sees_come_back_as_they_are():
    missed('private', 'exec', 'those that the task sees')


def a_daemon_in_another_namespace_finds_those_of_its_tasks():
    node = SecretNode('private')
    node.run('raw_exec')
    pid, point = node.pid(), in_task_of(node)
    own = read(point + '/own')
    node.kill()
    node.prefix = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c',
                   'umount "$0" && exec "$@"', point]
    node.start()
    wait_for('what was found', lambda: 'are again: those that the task sees' in node.log())
    wait_for('the task', node.running)
    seen = '/proc/%d/root%s' % (node.process.pid, point)
    assert read(seen + '/own') == own and node.pid() == pid
    with open(seen + '/later', 'w') as file:
        file.write('one file system')
    assert node.seen_by_task('raw_exec', 'later') == 'one file system'
    node.call('DELETE', '/v1/job/job')
    wait_for('its end', lambda: node.alloc('job', 'g')['ClientStatus'] == 'complete')
    assert not os.path.exists(point), 'the directory below went, and the mount of the other with it'
    node.finish()


def a_reboot_renders_them_again_and_tells_nobody():
    node = SecretNode('shared')
    node.boot('10000000-0000-4000-8000-000000000000')
    node.run('raw_exec')
    node.reboot('20000000-0000-4000-8000-000000000000')
    node.start()
    wait_for('the task again', lambda: node.pid_of('sleep 1000') and node.running())
    wait_for('the template', lambda: os.path.exists(in_task(node, 'secrets', 'token')))
    assert 'are again' not in node.log()  # before a start they are made as always
    assert node.running()['Restarts'] == 0 and 'Restart Signaled' not in events(node.running())
    assert in_task(node, 'secrets') in node.mounts()
    node.finish()


def a_daemon_that_crashes_tells_none():
    """Neither a core file nor its last words, though cores are allowed to it and to its tasks."""
    node = Node()
    node.prefix = ['env', '--chdir=' + node.dir, 'prlimit', '--core=unlimited', '--']
    node.start()
    node.run_job(service(raw_exec('t', 'ulimit -c >local/cores; exec sleep 1000',
                                  Env={'WORD': 'swordfish'}, Templates=[dict(
                                      RENDERED, EmbeddedTmpl='swordfish', Envvars=False)]),
                         restart=restart_policy(0)))
    wait_for('the task', lambda: node.running() and node.pid_of('sleep 1000'))
    assert read(in_task(node, 'local', 'cores')) == 'unlimited\n'
    for number in (signal.SIGSEGV, signal.SIGABRT):
        os.kill(node.process.pid, number)
        _, status = os.waitpid(node.process.pid, 0)
        node.process.returncode = -number
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == number, status
        assert not os.WCOREDUMP(status), 'it wrote a core'
        assert 'swordfish' not in node.log(1 << 20)
        node.start()
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it mounts')
        sys.exit(77)
    sys.exit(tap([
        missing_ones_are_mounted_again_and_rendered_into,
        those_that_a_payload_lost_with_the_host_come_to_it_again,
        those_that_only_the_payload_sees_come_back_as_they_are,
        a_daemon_in_another_namespace_finds_those_of_its_tasks,
        a_reboot_renders_them_again_and_tells_nobody,
        a_daemon_that_crashes_tells_none,
    ]))
