#!/usr/bin/env python3
"""The agent as a service: what a manager like systemd hears of it and passes to it, played here;
with systemd itself: test/vm/package.py."""
import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import PATIENCE, Node, service, sleeper, tap, wait_for  # noqa: E402

# Says to the program behind it what only its own pid can be told.
PASSING = '''import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1', LISTEN_FDNAMES='api')
os.execv(sys.argv[2], sys.argv[2:])'''


class Manager:
    """Who is told: a datagram socket, and what has come."""

    def __init__(self, node, **environment):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(os.path.join(node.dir, 'notify'))
        self.said = []
        node.environment.update(NOTIFY_SOCKET=os.path.join(node.dir, 'notify'), **environment)

    def heard(self, text):
        """The first notice with TEXT in it that has come since this was called last."""
        def look():
            try:
                while True:
                    self.said.append(self.socket.recv(4096, socket.MSG_DONTWAIT).decode())
                    if text in self.said[-1]:
                        return self.said[-1]
            except BlockingIOError:
                return None
        return wait_for('notice of ' + text, look)


def passed(node):
    """A socket that listens where NODE is to answer, passed to its agent."""
    listening = socket.socket()
    listening.bind(('127.0.0.1', 0))
    listening.listen(16)
    node.port = listening.getsockname()[1]
    plain = node.command

    def command():  # another port in the configuration, which does not count
        words = plain()
        words[words.index('-http-port') + 1] = '1'
        return [sys.executable, '-c', PASSING, str(listening.fileno())] + words
    node.command = command
    node.passed = (listening.fileno(),)
    return listening


def garbage_from_the_manager_is_one_clear_error():
    for name, value, said in (('NOTIFY_SOCKET', 'somewhere', 'only a path or @name'),
                              ('WATCHDOG_USEC', 'never', 'WATCHDOG_USEC is never')):
        node = Node()
        done = subprocess.run(node.command(), env=dict(os.environ, **{name: value}), text=True,
                              capture_output=True, timeout=20 * PATIENCE)
        assert done.returncode == 1 and said in done.stderr, done
        assert len(done.stderr.splitlines()) == 1, done.stderr
        node.close()


def a_start_that_fails_is_told_with_its_reason():
    node = Node()
    manager = Manager(node)
    os.makedirs(node.data)
    with open(os.path.join(node.data, 'client'), 'w') as out:
        out.write('in the way')
    node.start(wait=False)
    assert 'READY' not in manager.heard('STATUS=cannot start: ')
    assert node.process.wait(20 * PATIENCE) == 1
    node.close()


def ready_is_said_when_the_api_answers():
    node = Node()
    manager = Manager(node)
    node.start(wait=False)
    assert re.fullmatch(r'READY=1\nSTATUS=0 tasks run; API at 127\.0\.0\.1:%d' % node.port,
                        manager.heard('READY'))
    assert node.answers()
    assert node.terminate() == 0
    assert manager.heard('STOPPING=1')
    node.close()


def a_reload_is_said_with_its_time():
    node = Node()
    manager = Manager(node)
    node.start()
    manager.heard('READY=1')
    before = time.monotonic()
    node.process.send_signal(signal.SIGHUP)
    said = re.fullmatch(r'RELOADING=1\nMONOTONIC_USEC=(\d+)', manager.heard('RELOADING'))
    assert before <= int(said.group(1)) / 1e6 <= time.monotonic()
    assert manager.heard('READY=1') == 'READY=1'
    assert node.terminate() == 0
    node.close()


def a_loop_that_turns_says_so_and_one_that_is_stuck_does_not():
    node = Node()
    manager = Manager(node, WATCHDOG_USEC='200000')
    node.start()
    for _ in range(5):
        manager.heard('WATCHDOG=1')
    node.run_job(service(sleeper()))
    wait_for('the task', node.running)
    assert 'STATUS=1 task runs; ' in manager.heard('STATUS=1')
    node.process.send_signal(signal.SIGSTOP)
    wait_for('the daemon to stand', lambda: open('/proc/%d/stat' % node.process.pid).read()
             .rpartition(')')[2].split()[0] == 'T')
    with contextlib.suppress(BlockingIOError):  # what was said before
        while True:
            manager.socket.recv(4096, socket.MSG_DONTWAIT)
    assert not select.select([manager.socket], [], [], 1)[0]
    node.kill()  # as systemd does then
    node.start()
    assert 'STATUS=1 task runs; ' in manager.heard('STATUS=1')
    node.finish()


def tasks_know_nothing_of_the_manager():
    node = Node()
    Manager(node, WATCHDOG_USEC='60000000', CREDENTIALS_DIRECTORY='/run/credentials/x',
            INVOCATION_ID='0', JOURNAL_STREAM='1:2')
    listening = passed(node)
    node.start()
    node.run_job(service(sleeper()))
    wait_for('the task', node.running)
    pid = next(iter(node.payloads()))
    with open('/proc/%d/environ' % pid) as environ:
        names = {line.split('=')[0] for line in environ.read().split('\0')}
    assert not names & {'NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID', 'LISTEN_FDS', 'LISTEN_PID',
                        'LISTEN_FDNAMES', 'CREDENTIALS_DIRECTORY', 'INVOCATION_ID',
                        'JOURNAL_STREAM'}, names
    inode = 'socket:[%d]' % os.fstat(listening.fileno()).st_ino
    fds = '/proc/%d/fd' % pid
    assert inode not in [os.readlink(os.path.join(fds, fd)) for fd in os.listdir(fds)]
    node.finish()


def a_passed_socket_keeps_callers_over_a_restart():
    node = Node()
    listening = passed(node)
    node.start()
    assert node.terminate() == 0
    waiting = socket.create_connection(('127.0.0.1', node.port))  # while there is no agent
    waiting.sendall(b'GET /v1/status/leader HTTP/1.1\r\nHost: localhost\r\n\r\n')
    node.start()
    waiting.settimeout(20 * PATIENCE)
    assert waiting.recv(4096).startswith(b'HTTP/1.1 200 ')
    assert ':%d"' % node.port in node.text('GET', '/v1/status/leader')
    assert node.terminate() == 0
    listening.close()
    node.close()


sys.exit(tap([
    garbage_from_the_manager_is_one_clear_error,
    a_start_that_fails_is_told_with_its_reason,
    ready_is_said_when_the_api_answers,
    a_reload_is_said_with_its_time,
    a_loop_that_turns_says_so_and_one_that_is_stuck_does_not,
    tasks_know_nothing_of_the_manager,
    a_passed_socket_keeps_callers_over_a_restart,
]))
