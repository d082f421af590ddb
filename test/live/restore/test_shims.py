#!/usr/bin/env python3
"""What daemons and shims of released versions said to each other, byte for byte: this daemon obeys such a
shim, and this shim such a daemon.

usage: test/live/restore/test_shims.py               tries all of them
       test/live/restore/test_shims.py make VERSION  keeps what the programs that were built say, for a release

A conversation is a line for each packet or record: who, what, its bytes.  A word of them is hex, or a
NAME=hex whose bytes are another process' next time.  Packets and records only ever get longer, by what
older partners do not look at.
"""
import fcntl
import os
import re
import selectors
import signal
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (Node, exit_codes, milliseconds, raw_exec, service, start_ticks, tap,  # noqa: E402
                 wait_for)

RELEASES = os.path.join(os.path.dirname(__file__), 'releases')
KINDS = {1: 'hello', 3: 'stop', 5: 'signal', 64: 'welcome', 65: 'state', 66: 'reply', 68: 'exit'}
STARTED_AT, EXIT_AT, RECORD_MAX, PACKET_MAX = 512, 2048, 1536, 4096
# What is not the same in the next conversation, as (name, offset, bytes).
STATE = (('newest', 10, 2), ('digest', 16, 8), ('shim', 24, 4), ('payload', 28, 4),
         ('shim_ticks', 32, 8), ('payload_ticks', 40, 8), ('started', 48, 8), ('written', 56, 8),
         ('lost', 64, 8), ('version', 72, 16))
LIVE = {'hello': (('newest', 10, 2),), 'welcome': STATE, 'state': STATE, 'signal': (('ticket', 4, 4),),
        'stop': (('ticket', 4, 4), ('timeout', 16, 8)), 'reply': (('ticket', 4, 4),),
        'exit': (('length', 16, 4), ('seal', 24, 8), ('finished', 48, 8)),
        'started': (('length', 8, 4), ('seal', 16, 8), ('shim', 24, 4), ('payload', 28, 4),
                    ('shim_ticks', 32, 8), ('payload_ticks', 40, 8), ('started', 48, 8),
                    ('digest', 56, 8), ('boot', 64, 40))}
SCRIPT = ('trap "echo got >> said" USR1; trap "exit 4" INT; echo ready >> said; '
          'while :; do sleep 0.01; done')


# --- conversations ---

class Said:
    """One packet or record: its words as (name or None, bytes)."""

    def __init__(self, who, what, words):
        self.who, self.what, self.words = who, what, words

    @classmethod
    def of(cls, who, what, data):
        words, at = [], 0
        for name, offset, size in LIVE[what]:
            words += [(None, data[at:offset]), (name, data[offset:offset + size])]
            at = offset + size
        return cls(who, what, [word for word in words + [(None, data[at:])] if word[1]])

    @classmethod
    def read(cls, line):
        who, what, *words = line.split()
        pairs = [word.rpartition('=') for word in words]
        return cls(who, what, [(name or None, bytes.fromhex(text)) for name, _, text in pairs])

    def line(self):
        return ' '.join([self.who, self.what] + [
            (name + '=' if name else '') + data.hex() for name, data in self.words])

    def bytes(self, **live):
        """With what is LIVE in place of what was then."""
        return b''.join(live.get(name, data) for name, data in self.words)

    def assert_understood_in(self, data, **live):
        """DATA says at least what this says, with what is LIVE."""
        at = 0
        for name, then in self.words:
            now = data[at:at + len(then)]
            if name is None or name in live:
                assert now == live.get(name, then), (self.what, name, at, now.hex(), then.hex())
            elif name == 'newest':
                assert struct.unpack('<H', now) >= struct.unpack('<H', then), (now, then)
            at += len(then)
            assert len(now) == len(then), (self.what, name, at, len(data))


def conversation(release):
    with open(os.path.join(RELEASES, release + '.shim')) as lines:
        return [Said.read(line) for line in lines if not line.startswith('#')]


def heard(said, who, what):
    return next(each for each in said if (each.who, each.what) == (who, what))


# --- a task with a shim ---

class Task:
    """A node whose daemon is dead, with a payload and its shim."""

    def __init__(self):
        self.node = Node()
        self.node.start()
        self.node.run_job(service(raw_exec('t', SCRIPT, KillSignal='SIGINT',
                                           KillTimeout=milliseconds(60000))))
        wait_for('the task', self.node.running)
        self.alloc = self.node.alloc('job', 'g')['ID']
        self.said = os.path.join(self.node.data, 'alloc', self.alloc, 't/said')
        wait_for('the payload', lambda: self.has_said('ready'))
        self.shim = self.node.shims()[0]
        self.node.kill()
        shims = os.path.join(self.node.data, 'client/shim')
        names = sorted(os.listdir(shims))
        self.socket = next(os.path.join(shims, name) for name in names if name.endswith('.sock'))
        self.file = next(os.path.join(shims, name) for name in names if self.alloc in name)
        self.digest = struct.pack('<Q', int(os.path.basename(self.socket)[:-len('.sock')], 16))

    def has_said(self, word):
        if not os.path.exists(self.said):
            return False
        with open(self.said) as lines:
            return word in lines.read().split()

    def record(self, at):
        """The record at AT of the task's file, of the length that it says."""
        with open(self.file, 'rb') as file:
            data = file.read()[at:at + RECORD_MAX]
        return data[:struct.unpack_from('<I', data, 8)[0]]

    def payload(self):
        return struct.unpack_from('<i', self.record(STARTED_AT), 28)[0]

    def live(self, shim):
        """What is true of this task now, with SHIM for its shim."""
        payload = self.payload()
        return {'digest': self.digest, 'shim': struct.pack('<i', shim),
                'payload': struct.pack('<i', payload),
                'shim_ticks': struct.pack('<Q', start_ticks(shim)),
                'payload_ticks': struct.pack('<Q', start_ticks(payload))}

    def drive(self):
        """What makes the daemon say all that it has to say."""
        wait_for('the task', self.node.running)
        self.node.put('/v1/client/allocation/%s/signal' % self.alloc, {'Signal': 'SIGUSR1', 'Task': 't'})
        wait_for('the signal', lambda: self.has_said('got'))
        self.node.call('DELETE', '/v1/job/job')
        state = wait_for('the end', self.node.dead)
        assert exit_codes(state) == [4], exit_codes(state)

    def finish(self):
        self.node.finish()


def packets():
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def connected(path):
    peer = packets()
    peer.settimeout(60)
    peer.connect(path)
    return peer


# --- keeping one ---

def relay(listening, path, keep):
    """Between a daemon and the shim at PATH, until one of them has gone."""
    daemon, _ = listening.accept()
    ends = {daemon: ('daemon', connected(path))}
    ends[ends[daemon][1]] = ('shim', daemon)
    with selectors.DefaultSelector() as ready:
        for end in ends:
            ready.register(end, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                who, other = ends[key.fileobj]
                data = key.fileobj.recv(PACKET_MAX)
                if not data:
                    return
                keep(Said.of(who, KINDS[struct.unpack_from('<H', data)[0]], data))
                other.send(data)


def make(version):
    task = Task()
    real, kept = task.socket + '.real', os.path.join(RELEASES, version + '.shim')
    os.rename(task.socket, real)
    with open(kept, 'w') as out, packets() as listening:
        out.write('# A daemon of %s that comes back, and the shim of a task.\n' % version)
        out.write(Said.of('file', 'started', task.record(STARTED_AT)).line() + '\n')
        out.flush()
        listening.bind(task.socket)
        listening.listen(1)
        child = os.fork()
        if child == 0:
            relay(listening, real, lambda said: (out.write(said.line() + '\n'), out.flush()))
            os._exit(0)
        task.node.start()
        task.drive()
        os.waitpid(child, 0)
    os.rename(real, task.socket)
    task.finish()


# --- trying them ---

def this_shim_obeys(release):
    """A daemon of RELEASE comes back; each answer has in it what its shims answered."""
    said, task = conversation(release), Task()
    live, ticket = task.live(task.shim), {}
    with connected(task.socket) as daemon:
        for each in said:
            if each.who == 'daemon':
                ticket = {name: data for name, data in each.words if name == 'ticket'}
                daemon.send(each.bytes())
                if each.what == 'signal':
                    wait_for('the signal', lambda: task.has_said('got'))
            elif each.who == 'shim':
                each.assert_understood_in(daemon.recv(PACKET_MAX), **live, **ticket)
            else:
                each.assert_understood_in(task.record(STARTED_AT), **live)
    wait_for('the payload to have ended', lambda: not os.path.exists('/proc/%d' % task.shim))
    task.node.start()
    # Nobody here has asked for its stop, so that it starts again.
    assert wait_for('its end', lambda: exit_codes(task.node.task('job', 'g', 't'))) == [4]
    wait_for('the task', task.node.running)
    task.finish()


def play(task, said):
    """A shim of a release, whose task is TASK: this process, until the daemon has gone."""
    held = os.open(task.file, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.unlink(task.socket)
    listening = packets()
    listening.bind(task.socket)
    listening.listen(1)
    yield
    live = task.live(os.getpid())
    daemon, _ = listening.accept()
    ticket = {}
    for each in said:
        if each.who == 'daemon':
            data = daemon.recv(PACKET_MAX)
            each.assert_understood_in(data)
            ticket = {'ticket': data[4:8]}
            if each.what == 'signal':
                os.kill(task.payload(), signal.SIGUSR1)
        elif each.who == 'shim':
            if each.what == 'exit':
                os.kill(task.payload(), signal.SIGKILL)
                os.pwrite(held, each.bytes()[8:], EXIT_AT)
                os.close(held)
            daemon.send(each.bytes(**live, **ticket))


def this_daemon_obeys(release):
    """A shim of RELEASE has kept its task over the upgrade: found, signalled, stopped, heard out."""
    said, task = conversation(release), Task()
    os.kill(task.shim, signal.SIGKILL)
    wait_for('the shim to be gone', lambda: start_ticks(task.shim) is None)
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            playing = play(task, said)
            next(playing)
            os.write(tell, b'.')
            for _ in playing:
                pass
            code = 0
        finally:
            os._exit(code)
    os.close(tell)
    assert os.read(ready, 1) == b'.'
    os.close(ready)
    task.node.start()
    wait_for('the task', task.node.running)
    foreseen = task.node.cli('journal', 'restore', '-dir', task.node.data).stdout
    assert 'pid %d\n' % task.payload() in foreseen, foreseen
    task.drive()
    assert os.waitpid(child, 0)[1] == 0, 'the daemon said something else than then'
    task.finish()


def releases():
    found = sorted(re.sub(r'\.shim$', '', name) for name in os.listdir(RELEASES)
                   if name.endswith('.shim'))
    assert found
    return found


def every_shim_is_obeyed_by_this_daemon():
    for release in releases():
        this_daemon_obeys(release)


def every_daemon_is_obeyed_by_this_shim():
    for release in releases():
        this_shim_obeys(release)


if sys.argv[1:2] == ['make'] and len(sys.argv) == 3:
    make(sys.argv[2])
elif os.getuid() != 0:
    print('needs root: it runs a node with real tasks')
    sys.exit(77)
else:
    sys.exit(tap([every_shim_is_obeyed_by_this_daemon, every_daemon_is_obeyed_by_this_shim]))
