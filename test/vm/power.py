"""A machine that keeps nothing but one disk, whose power is switched on and off.

Its kernel boots once, up to where it would mount that disk, and what it is then is put aside; whenever
its power comes it goes on from there, which takes a second instead of ten.  What must differ from boot
to boot comes from outside: the time, and the chance that its boot's id and all others are made of.
"""
import contextlib
import json
import os
import secrets
import shlex
import socket
import subprocess
import tempfile
import threading
import time
from typing import NamedTuple

import machine
from disk import Disk

BOOT_S = 300
MEMORY_MB, DISK_MB = 640, 320
KINDS = ('copies', 'fine', 'damaged', 'state', 'do', 'ack', 'restart', 'collect', 'compact', 'copied',
         'done', 'ended')  # of lines: scenario.py
HISTORY = 1000000  # events that the journal keeps: what it does by itself


class FileSystem(NamedTuple):
    name: str
    whole: tuple          # its superblock, (offset, bytes): disk.py
    options: str = ''     # how it is mounted
    repair: str = 'true'  # what a boot of Debian runs before: half a commit in ext4's log ends a mount


FILE_SYSTEMS = {
    'ext4': FileSystem('ext4', (1024, 1024), repair='e2fsck -p /dev/vdc'),
    'ext4-data': FileSystem('ext4', (1024, 1024), '-o data=journal', 'e2fsck -p /dev/vdc'),
    'xfs': FileSystem('xfs', (0, 512)), 'btrfs': FileSystem('btrfs', (65536, 4096))}

# What a machine does that nothing but the scenario is wanted of: it is its init.
INIT = '''#!/bin/sh
PATH=/usr/sbin:/usr/bin:/sbin:/bin; export PATH
mount -t proc proc /proc 2>/dev/null; mount -t sysfs sysfs /sys 2>/dev/null
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /tmp
ip link set lo up; hostname cairn
stty -F /dev/ttyS1 raw -echo
exec < /dev/ttyS1 > /dev/ttyS1 2> /dev/ttyS0
python3 /tree/test/vm/scenario.py
sync; poweroff -f
'''
# Nothing is written to the root, which is the same each time.
APPEND = machine.straight('/bin/sh /tree/work', 'ro')


class Wrong(Exception):
    """What should never be."""


def make_disk(kind, noted):
    """A file system of KIND, empty."""
    system = FILE_SYSTEMS[kind]
    with tempfile.NamedTemporaryFile(prefix='cairn-disk-', dir=machine.PLACE) as image:
        image.truncate(DISK_MB << 20)
        subprocess.run(['mkfs.' + system.name, '-q', image.name], check=True,
                       stdout=subprocess.DEVNULL)
        return Disk(image.read(), system.whole, noted)


class Bench:
    """Where machines are run: the disk that they have one after the other, what is beside it, and the
    memory of a machine that has booted and waits for its disk."""

    def __init__(self, kind, place, noted=True):
        self.noted = noted  # each write, by the disk
        self.console = machine.console('-' + os.path.basename(place))
        self.guest = None  # that was switched on last
        self.place, self.socket = place, os.path.join(place, 'disk')
        self.tree, self.ready = os.path.join(place, 'tree.img'), os.path.join(place, 'ready')
        self.take_disk(kind)
        machine.tree_disk(INIT, self.tree)
        self._boot()

    def take_disk(self, kind):
        """Another disk, with an empty file system of KIND: the next machine has it, and its place."""
        self.system, self.disk = FILE_SYSTEMS[kind], make_disk(kind, self.noted)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket)
        self.disk.serve(self.socket)

    def command(self, *more):
        return machine.qemu(
            machine.accelerator(), APPEND,
            '-drive', 'file=%s,if=virtio,format=raw,readonly=on' % self.tree,
            '-drive', 'file=nbd+unix:///?socket=%s,if=virtio,format=raw,cache=none' % self.socket,
            '-serial', 'file:' + self.console, '-serial', 'stdio', '-m', str(MEMORY_MB), *more)

    def _boot(self):
        path = os.path.join(self.place, 'control')
        guest = Machine(self.command('-qmp', 'unix:%s,server=on,wait=off' % path))
        try:
            if not guest.is_ready():
                raise Wrong('the machine does not boot; its console is %s' % self.console)
            put_aside(path, self.ready)
        finally:
            guest.cut()

    def power_on(self, first, damage=False, history=HISTORY, limit_s=BOOT_S):
        """A machine that does the scenario with the disk, for LIMIT_S at most; FIRST is where its numbers
        begin.  DAMAGE: to the journal, before the daemon starts; HISTORY: events that it keeps."""
        guest = Machine(self.command('-incoming', 'exec:cat ' + shlex.quote(self.ready)), limit_s)
        self.guest = guest
        guest.told = {'first': first, 'damage': damage, 'history': history,
                      'now': time.time(), 'chance': secrets.token_hex(32),
                      'repair': self.system.repair,
                      'mount': 'mount -t %s %s /dev/vdc /srv' % (self.system.name, self.system.options)}
        return guest

    def cut(self):
        """Whatever runs has no power any more; who listens to it hears its end."""
        if self.guest is not None:
            self.guest.process.kill()


def put_aside(path, image):
    """The machine whose QEMU is controlled by the socket PATH is stopped, and what it is is in IMAGE."""
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(BOOT_S)
        control.connect(path)
        with control.makefile('rw') as lines:
            for command, arguments in (
                    ('qmp_capabilities', {}),
                    ('migrate-set-capabilities',
                     {'capabilities': [{'capability': 'events', 'state': True}]}),
                    ('migrate-set-parameters', {'max-bandwidth': 1 << 40}),
                    ('migrate', {'uri': 'exec:cat > ' + shlex.quote(image)})):
                lines.write(json.dumps({'execute': command, 'arguments': arguments}) + '\n')
                lines.flush()
            for line in lines:
                said = json.loads(line)
                status = said.get('data', {}).get('status')
                if 'error' in said or status == 'failed':
                    raise Wrong('QEMU cannot put a machine aside: %s' % line)
                if status == 'completed':
                    return


class Machine:
    """One life of it, from power on to power off."""

    def __init__(self, command, limit_s=BOOT_S):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, errors='replace')
        self.told = None  # what it waits for
        self.limit = threading.Timer(limit_s, self.process.kill)
        self.limit.start()

    def is_ready(self):
        """Waits until it has booted; False if it has not."""
        return any(line.startswith('ready') for line in self.process.stdout)

    def lines(self):
        """What it says, (kind, value), once it has been told what to do."""
        for line in self.process.stdout:
            kind, _, value = line.strip().partition(' ')
            if kind == 'ready' and self.told is not None:
                self.process.stdin.write(json.dumps(self.told) + '\n')
                self.process.stdin.flush()
                self.told = None
            elif kind in KINDS and value.endswith(('}', ']')):
                yield kind, json.loads(value)

    def cut(self):
        self.limit.cancel()
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
