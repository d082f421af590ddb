"""A machine that runs on in the background, to try things by hand: `boot` starts it with the units of
the package and this tree's cairn, `run` runs a command in it, `cut` takes its power away.  Its disk,
/var/lib/cairn, is kept for the next boot as the cut has left it: what was not flushed may be lost.
After some hours the power goes by itself.
"""
import base64
import contextlib
import fcntl
import os
import random
import re
import signal
import socket
import subprocess
import threading

import machine
from disk import Disk
from power import FILE_SYSTEMS

LIFE_S = 4 * 3600
SIZE_MB, MEMORY_MB = 512, 4096
HERE = os.path.join(machine.PLACE, 'running')
DATA, KEEPER = os.path.join(machine.PLACE, 'data.img'), os.path.join(HERE, 'keeper')
DISK, PORT, TREE = (os.path.join(HERE, name) for name in ('disk', 'port', 'tree.img'))

# What is installed here is gone with the machine, but for the disk; each line that comes is a command.
WORK = '''set -e
mkdir -p /var/lib/cairn /etc/cairn
e2fsck -p /dev/vdc || [ $? -le 2 ]
mount /dev/vdc /var/lib/cairn
getent group cairn > /dev/null || groupadd --system cairn
cp agent/debian/cairn.hcl /etc/cairn/
ln -sf /tree/build/cairn* /usr/bin/
cp agent/*.service /run/systemd/system/
systemctl daemon-reload
systemctl start cairn
export NOMAD_ADDR=unix:///run/cairn/api.sock
set +e
stty -F /dev/ttyS1 raw -echo
echo ready
while read -r line; do
    echo "$line" | base64 -d > /run/command
    sh /run/command < /dev/null 2>&1
    echo "ended $?"
done < /dev/ttyS1
'''


def keeper():
    """The pid of who keeps the machine that runs; None if none does."""
    try:
        with open(KEEPER) as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None  # left by one that ended
    except FileNotFoundError:
        return None
    except BlockingIOError:
        with open(KEEPER) as lock:
            return int(lock.read() or 0)


def clear():
    """What a machine had but its disk and its console is there no more."""
    for path in (DISK, PORT, TREE):
        with contextlib.suppress(FileNotFoundError):  # QEMU, too, tidies up
            os.unlink(path)


def lines_of(port):
    """What it says until it has answered, and then the code: of a command, 0 of its boot."""
    with port.makefile('r', errors='replace') as said, contextlib.suppress(OSError):
        for line in said:
            ended = re.match(r'(?:ended (\d+)|ready)\s*$', line)
            if ended:
                return int(ended.group(1) or 0)
            print(line, end='', flush=True)
    machine.say('the machine does not answer; its console is %s' % os.path.join(HERE, 'console'))
    return 1


def connected():
    port = socket.socket(socket.AF_UNIX)
    port.connect(PORT)
    return port


def boot(cgroups):
    if keeper() is not None:
        machine.say('one runs; ./dev vm cut takes its power away')
        return 1
    machine.make()
    os.makedirs(HERE, exist_ok=True)
    if not os.path.exists(DATA):
        with open(DATA, 'w') as out:
            out.truncate(SIZE_MB << 20)
        subprocess.run(['mkfs.ext4', '-q', DATA], check=True)
    clear()
    machine.tree_disk(WORK, TREE)
    machine.say('booting (%s)' % machine.accelerator())
    told, tells = os.pipe()
    if os.fork() == 0:
        os.close(told)
        os.setsid()
        if os.fork() == 0:
            try:
                keep(cgroups, tells)
            finally:
                os._exit(0)
        os._exit(0)
    os.close(tells)
    os.wait()
    with open(told) as said:  # its port is there
        if said.read() != 'up':
            return 1
    with connected() as port:
        port.settimeout(machine.BOOT_S)
        code = lines_of(port)
    if code == 0:
        machine.say('it runs: ./dev vm run COMMAND, ./dev vm cut')
    return code


def keep(cgroups, tells):
    """Serves the disk of the machine, until its power goes or it ends by itself."""
    with open(KEEPER, 'w') as lock, open(DATA, 'rb') as data:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(str(os.getpid()))
        lock.flush()
        disk = Disk(data.read(), FILE_SYSTEMS['ext4'].whole, noted=False)
        disk.serve(DISK)
        port = socket.socket(socket.AF_UNIX)
        port.bind(PORT)
        port.listen(1)
        guest = subprocess.Popen(machine.qemu(
            machine.accelerator(), machine.under_systemd(cgroups),
            '-drive', 'file=%s,if=virtio,format=raw,readonly=on' % TREE,
            '-drive', 'file=nbd+unix:///?socket=%s,if=virtio,format=raw,cache=none' % DISK,
            '-serial', 'file:' + os.path.join(HERE, 'console'),
            '-chardev', 'socket,id=port,fd=%d,server=on,wait=off' % port.fileno(),
            '-serial', 'chardev:port', '-m', str(MEMORY_MB)), pass_fds=(port.fileno(),), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        signal.signal(signal.SIGTERM, lambda *_: guest.kill())
        threading.Timer(LIFE_S, guest.kill).start()
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.write(tells, b'up')
        os.close(tells)
        guest.wait()
        disk.cut(random.Random())
        with open(DATA, 'r+b') as out:
            out.write(disk.platter)
        clear()


def cut():
    pid = keeper()
    if pid is None:
        machine.say('no machine runs; ./dev vm boot starts one')
        return 1
    with open(KEEPER) as lock:
        os.kill(pid, signal.SIGTERM)
        fcntl.flock(lock, fcntl.LOCK_SH)  # the disk is written when its keeper has ended
    machine.say('the power is off; ./dev vm boot goes on with the disk, %s'
                % os.path.relpath(DATA, machine.TREE))
    return 0


def run(command):
    """Runs COMMAND in the machine, whose output is ours; its exit code."""
    with connected() as port:
        port.sendall(base64.b64encode(command.encode()) + b'\n')
        return lines_of(port)
