#!/usr/bin/env python3
"""A whole machine for cairn: Debian's own kernel and root, made of its packages alone, under QEMU.

It has cgroup v2 and nothing else, where no other word comes first, no network, and no memory: each
boot begins with the root as it was made, beside a disk with this tree's tests and the daemon that was
built.  The first time it is made, which takes some minutes; it is kept in build/vm until its recipe
changes.

usage: test/vm/machine.py [backports] [CGROUPS] VERB ...
       test/vm/machine.py make              only that
       test/vm/machine.py live ROOM/TEST... live tests, as drivers/exec, in one boot
       test/vm/machine.py run COMMAND       a shell command, in the tree on the machine: on the one
                                            that runs, or on one for it alone
       test/vm/machine.py boot              one that runs on, with this cairn under systemd, and a disk
       test/vm/machine.py cut               takes its power away; the next boot has its disk again
       test/vm/machine.py package           test/vm/package.py, with what ./dev package has built, then
                                            an orderly shutdown and the boot after it: shutdown.py
       test/vm/machine.py boot-time [COUNT] from boot until so many tasks run again, 300 if not said,
                                            beside a boot without cairn: test/vm/boot_time.py
       test/vm/machine.py cuts N [SEED] [FS...]  N power cuts on each FS, with an audit after each; on as
                                            many machines at once as CAIRN_MACHINES says, or else one
       test/vm/machine.py moments N [MOST] [FS]  the disk after each flush of a run with N answers
       test/vm/machine.py shell             a root shell on its console; `poweroff -f` ends it

backports: with the newer kernel of Debian's backports, as a machine of its own in build/vm-backports.
CGROUPS: v2 alone; v1, whose controllers have a hierarchy each; hybrid, which is v1 beside a v2 without
controllers.
FS, the disk's file system: ext4, ext4-data (which keeps data in its log, too); for cuts xfs or btrfs.
"""
import contextlib
import functools
import glob
import hashlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERNEL = os.environ.get('CAIRN_VM_KERNEL', '')  # "backports", or Debian's usual one
PLACE = os.path.join(TREE, 'build', 'vm' + ('-' + KERNEL if KERNEL else ''))
BUILD = os.environ.get('CAIRN_BUILD', os.path.join(TREE, 'build', 'debug'))
PROBE_S, BOOT_S, TEST_S = 20, 300, 1500  # emulation is slow, and so are busy hosts
ROOT_MB = 8192  # of which a tenth is written: jobs ask for more disk than they use
CONSOLES_KEPT = 8
CONSOLE_LINES = 20  # told of one that failed

IMAGE = 'linux-image-cloud-amd64' + ('/bookworm-' + KERNEL if KERNEL else '')
PACKAGES = '''initramfs-tools systemd-sysv udev kmod procps util-linux iproute2
    iptables containernetworking-plugins e2fsprogs python3 libjansson4 libnettle8 libcap2 liblmdb0
    libmpfr6 libpcre2-8-0 libunistring2 libyaml-0-2 libmicrohttpd12 libev4 libcurl3-gnutls libprotobuf-c1 libwslay1 libmsgpackc2
    libarchive13'''.split() + [IMAGE]

# What nobody here asks of systemd: emulated, each unit of it takes a moment of every boot, and each
# generator one of every daemon-reload, too.  A file without content masks.
UNITS_MASKED = '''getty.target timers.target modprobe@.service dev-hugepages.mount dev-mqueue.mount
    sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount
    proc-sys-fs-binfmt_misc.automount systemd-binfmt.service systemd-sysusers.service systemd-update-utmp.service
    systemd-update-utmp-runlevel.service systemd-user-sessions.service systemd-journal-flush.service
    systemd-random-seed.service systemd-pstore.service systemd-machine-id-commit.service e2scrub_reap.service
    systemd-modules-load.service systemd-udev-trigger.service systemd-ask-password-console.path
    systemd-ask-password-wall.path systemd-logind.service'''.split()
GENERATORS_MASKED = '''cryptsetup fstab getty gpt-auto hibernate-resume integritysetup rc-local run system-update
    sysv veritysetup'''.split()
FILES = {
    'etc/hostname': 'cairn\n',
    'etc/fstab': '',
    'etc/machine-id': 'ca12' * 8 + '\n',  # without one systemd looks through all units at each boot
    'etc/systemd/journald.conf.d/machine.conf': '[Journal]\nStorage=volatile\nCompress=no\nReadKMsg=no\nAudit=no\n',
    **{'etc/systemd/system/' + unit: '' for unit in UNITS_MASKED},
    **{'etc/systemd/system-generators/systemd-%s-generator' % name: '' for name in GENERATORS_MASKED},
    'etc/systemd/system/work.service': '''[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'stty -F /dev/ttyS1 raw; cd /tree; ./work > /dev/ttyS1 2>&1; \\
    echo "ended $?" > /dev/ttyS1; systemctl poweroff -f'
''',
}
# What systemd of Debian 12 makes of cgroups, by words to the kernel.
CGROUPS = {'v2': '', 'hybrid': 'systemd.unified_cgroup_hierarchy=0 ',
           'v1': 'systemd.unified_cgroup_hierarchy=0 systemd.legacy_systemd_cgroup_controller=1 '}
# What the initrd has to find the root with; all else it would have is for other machines.
MODULES = {'conf.d/cairn': 'MODULES=list\nCOMPRESS=gzip\n', 'modules': 'virtio_pci\nvirtio_blk\next4\n'}


def say(text):
    print('== ' + text, file=sys.stderr, flush=True)


def put(root, files):
    for name, text in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as out:
            out.write(text)


def disk(directory, image, size_mb):
    with open(image, 'w') as out:
        out.truncate(size_mb << 20)
    subprocess.run(['mke2fs', '-q', '-t', 'ext4', '-d', directory, image], check=True)


def recipe():
    what = repr((PACKAGES, FILES, MODULES, ROOT_MB)) + inspect.getsource(make)
    return hashlib.sha256(what.encode()).hexdigest()


def sources(work):
    """The file that says where this machine has its packages from; with the suite of the newer kernel, a
    copy in WORK."""
    found = [path for path in ('/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list')
             if os.path.exists(path)][:1]
    if not KERNEL or not found:
        return found
    with open(found[0]) as own:
        text = own.read()
    suite, path = 'bookworm-' + KERNEL, os.path.join(work, os.path.basename(found[0]))
    text = re.sub(r'^Suites:.*\bbookworm(?!\S).*', r'\g<0> ' + suite, text, flags=re.M)
    text = re.sub(r'^(deb .*\s)bookworm(\s.*)$', r'\g<0>\n\g<1>' + suite + r'\g<2>', text, flags=re.M)
    with open(path, 'w') as out:
        out.write(text)
    return [path]


def make():
    """The root's image, kernel and initrd in PLACE, of this recipe."""
    mark = os.path.join(PLACE, 'recipe')
    if os.path.exists(mark) and open(mark).read() == recipe():
        return
    say('making the machine (some minutes, once)')
    shutil.rmtree(PLACE, ignore_errors=True)
    os.makedirs(PLACE)
    with tempfile.TemporaryDirectory(prefix='cairn-vm-', dir=PLACE) as work:
        root, hook = os.path.join(work, 'root'), os.path.join(work, 'hook')
        put(os.path.join(work, 'initramfs'), MODULES)
        with open(hook, 'w') as out:  # before the kernel comes, which makes an initrd
            out.write('#!/bin/sh\nmkdir -p "$1/etc/initramfs-tools"\n'
                      'cp -r %s/initramfs/. "$1/etc/initramfs-tools"\n' % work)
        os.chmod(hook, 0o755)
        subprocess.run(['mmdebstrap', '--quiet', '--variant=minbase', '--format=directory',
                        '--include=' + ','.join(PACKAGES), '--essential-hook=' + hook,
                        '--dpkgopt=path-exclude=/usr/share/doc/*',
                        '--dpkgopt=path-exclude=/usr/share/man/*',
                        '--dpkgopt=path-exclude=/usr/share/locale/*', 'bookworm', root, *sources(work)],
                       check=True, stdout=sys.stderr)
        put(root, FILES)
        os.mkdir(os.path.join(root, 'tree'))
        for name in ('vmlinuz', 'initrd.img'):
            shutil.copy(glob.glob(os.path.join(root, 'boot', name + '-*'))[0],
                        os.path.join(PLACE, name))
        disk(root, os.path.join(PLACE, 'root.img'), ROOT_MB)
    with open(mark, 'w') as out:
        out.write(recipe())


class Root(NamedTuple):
    """A machine's root, and what it has MORE than others."""
    image: str = os.path.join(PLACE, 'root.img')
    keeps: bool = False  # what is written to it
    more: list = []


def straight(init, mode):
    """Words to the kernel, the last ones, that lead to INIT on the root, mounted by MODE, beside the tree:
    the initrd's own way asks for whatever devices there may be, its shell does what is needed."""
    return ('rdinit=/bin/sh -- -c "mount -t devtmpfs dev /dev; exec < /dev/console > /dev/console 2>&1; '
            'modprobe -a virtio_pci virtio_blk ext4; '
            'mount -t ext4 -o %s /dev/vda /root; mount -t ext4 -o ro /dev/vdb /root/tree; '
            'mount -t devtmpfs dev /root/dev; exec run-init /root %s"' % (mode, init))


def processor(accel):
    """What is emulated has what is quick to emulate: no instruction that moves bytes one by one, no checks
    at each access to a program's memory, page tables of four levels.  And none that QEMU 7.2 emulates
    wrongly now and then: cmpxchg16b left all flags set to chance, which ended kernels in the midst of work."""
    return 'max' if accel == 'kvm' else 'max,-erms,-fsrm,-smap,-smep,-la57,-cx16'


def qemu(accel, append, *more, root=Root()):
    return ['qemu-system-x86_64', '-machine', 'q35', '-accel', accel, '-cpu', processor(accel), '-smp', '2',
            '-m', '1536', '-nodefaults', '-no-reboot', '-display', 'none',
            '-kernel', os.path.join(PLACE, 'vmlinuz'), '-initrd', os.path.join(PLACE, 'initrd.img'),
            # A kernel that panics ends its machine, one that goes on after an oops waits for what never comes; on a busy host its look at the timer may fail, and it
            # would think ill of the processors' clock, beside which all others are slow to read.
            '-append', 'console=ttyS0 root=/dev/vda rw quiet panic=-1 oops=panic no_timer_check tsc=reliable '
                       'mitigations=off nokaslr cryptomgr.notests ' + append,
            '-drive', 'file=%s,if=virtio,format=raw,snapshot=%s,cache=unsafe'
            % (root.image, 'off' if root.keeps else 'on'), *root.more, *more]


def accelerator():
    """KVM where a kernel really begins under it: there are hosts where the device is there, and the
    guest never leaves its firmware."""
    known = os.path.join(PLACE, 'accelerator')
    if not os.path.exists(known):
        found = 'tcg,thread=multi'
        if os.access('/dev/kvm', os.R_OK | os.W_OK):
            try:
                said = subprocess.run(qemu('kvm', 'panic=-1 init=/none', '-serial', 'stdio'),
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                      timeout=PROBE_S, check=False).stdout
                found = 'kvm' if 'Kernel panic' in said else found
            except subprocess.TimeoutExpired:
                pass
        with open(known, 'w') as out:
            out.write(found)
    return open(known).read()


def packages(to):
    """Three versions of the package that was built, the last one with a program that restores nothing."""
    built = glob.glob(os.path.join(TREE, 'build', 'package', 'cairn_*.deb'))
    if not built:
        return
    os.makedirs(to)
    for number in (1, 2, 3):
        with tempfile.TemporaryDirectory(prefix='cairn-deb-', dir=PLACE) as place:
            root = os.path.join(place, 'root')
            subprocess.run(['dpkg-deb', '-R', built[0], root], check=True)
            control, program = os.path.join(root, 'DEBIAN', 'control'), os.path.join(root, 'usr/bin/cairn')
            with open(control) as was:
                text = re.sub('^Version: .*', 'Version: 0.%d' % number, was.read(), flags=re.M)
            with open(control, 'w') as out:
                out.write(text)
            if number == 3:
                with open(program, 'w') as out:
                    out.write('#!/bin/sh\necho "cairn: a world that failed"\nexit 1\n')
            subprocess.run(['dpkg-deb', '-Znone', '--root-owner-group', '-b', root,
                            os.path.join(to, 'cairn_%d.deb' % number)], check=True,
                           stdout=subprocess.DEVNULL)


def tree_disk(work, image, packed=False):
    """What is tried, and the script WORK that the machine is booted for; PACKED: the packages, too."""
    with tempfile.TemporaryDirectory(prefix='cairn-tree-', dir=PLACE) as tree:
        shutil.copytree(os.path.join(TREE, 'test'), os.path.join(tree, 'test'),
                        ignore=shutil.ignore_patterns('__pycache__', 'golden'))
        os.makedirs(os.path.join(tree, 'build'))
        os.makedirs(os.path.join(tree, 'agent', 'debian'))
        for name in glob.glob('agent/*.service', root_dir=TREE) + ['agent/debian/cairn.hcl']:
            shutil.copy(os.path.join(TREE, name), os.path.join(tree, name))
        for program in ('cairn', 'cairn-shim', 'cairn-fetch', 'cairn-parse'):
            shutil.copy(os.path.join(BUILD, program), os.path.join(tree, 'build', program))
        if packed:
            packages(os.path.join(tree, 'build', 'package'))
        put(tree, {'work': '#!/bin/sh\nexport CAIRN_BUILD=/tree/build CAIRN_PATIENCE=5 PYTHONDONTWRITEBYTECODE=1\n' + work})
        os.chmod(os.path.join(tree, 'work'), 0o755)
        disk(tree, image, 512)


def console(name=''):
    """Where the machine NAME of this process says what its kernel has to say: it is kept when it has ended,
    of the newest few."""
    kept = sorted(glob.glob(os.path.join(PLACE, 'console-*.log')), key=os.path.getmtime)
    for path in kept[:-CONSOLES_KEPT]:
        with contextlib.suppress(FileNotFoundError):  # another machine does the same
            os.unlink(path)
    return os.path.join(PLACE, 'console-%d%s.log' % (os.getpid(), name))


def under_systemd(cgroups, append=''):
    return CGROUPS[cgroups] + append + 'systemd.wants=work.service ' + straight('/sbin/init', 'rw')


def boot(work, limit_s, cgroups, packed=False, root=Root(), append='',
         hear=functools.partial(print, end='', flush=True)):
    """Runs WORK on the machine, each line of whose output we HEAR; its exit code.  APPEND: words for
    its kernel and systemd."""
    make()
    accel, said = accelerator(), console()
    with tempfile.TemporaryDirectory(prefix='cairn-run-', dir=PLACE) as run:
        image = os.path.join(run, 'tree.img')
        tree_disk(work, image, packed)
        say('booting (%s)' % accel)
        machine = subprocess.Popen(
            qemu(accel, under_systemd(cgroups, append),
                 '-drive', 'file=%s,if=virtio,format=raw,readonly=on' % image,
                 '-serial', 'file:' + said, '-serial', 'stdio', root=root),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors='replace')
        code = None
        try:
            for line in watched(machine, limit_s):
                ended = re.match(r'ended (\d+)\s*$', line)
                if ended:
                    code = int(ended.group(1))
                else:
                    hear(line)
            machine.wait(60)
        except subprocess.TimeoutExpired:
            pass
        finally:
            machine.kill()
            machine.wait()
    if code is None or machine.returncode != 0:
        say('the machine did not end its work within %d s; its console is %s' % (limit_s, said))
        with open(said, errors='replace') as lines:
            print(''.join('# ' + line for line in lines.readlines()[-CONSOLE_LINES:]), flush=True)
    return 1 if code is None or machine.returncode != 0 else code


def watched(machine, limit_s):
    """Lines of its output; it is ended after LIMIT_S."""
    timer = threading.Timer(limit_s, machine.kill)
    timer.start()
    try:
        yield from machine.stdout
    finally:
        timer.cancel()


def live_path(name):
    """The file of the live test NAME, "drivers/exec"."""
    room, _, test = name.rpartition('/')
    return 'test/live/%s/test_%s.py' % (room, test)


LIVE = '''code=0
for test in %s; do
    echo "# $test"
    timeout %d python3 $test || code=1
done
exit $code
'''


# Both boots run it.  The first one ends by an orderly shutdown.
PACKAGE = '''if [ -e /var/lib/cairn-shutdown ]; then
    exec python3 test/vm/shutdown.py look
fi
python3 test/vm/package.py build/package
code=$?
python3 test/vm/shutdown.py begin build/package/cairn_1.deb || code=1
echo "ended $code"
systemctl poweroff && sleep 600
poweroff -f
'''


def package(cgroups):
    """The life of the package, an orderly shutdown, and what the next boot finds.  That is a machine of its
    own with the same disk: one that boots itself waits for minutes in its firmware when it was up for long."""
    make()
    with tempfile.TemporaryDirectory(prefix='cairn-root-', dir=PLACE) as place:
        root = Root(os.path.join(place, 'root.img'), keeps=True)
        subprocess.run(['cp', '--sparse=always', Root().image, root.image], check=True)
        codes = [boot(PACKAGE, BOOT_S + TEST_S, cgroups, packed=packed, root=root) for packed in (True, False)]
    return max(codes)


def usage():
    print(__doc__.strip(), file=sys.stderr)
    return 2


def main():
    words = sys.argv[1:]
    if words[:1] == ['backports']:
        return subprocess.run([sys.executable, __file__, *words[1:]], check=False,
                              env=dict(os.environ, CAIRN_VM_KERNEL=words[0])).returncode
    cgroups = words.pop(0) if words[:1] and words[0] in CGROUPS else 'v2'
    verb, rest = (words[0] if words else ''), words[1:]
    if verb == 'make' and not rest:
        make()
    elif verb == 'live' and rest and all(os.path.exists(os.path.join(TREE, live_path(name))) for name in rest):
        return boot(LIVE % (' '.join(map(live_path, rest)), TEST_S), BOOT_S + TEST_S * len(rest), cgroups)
    elif verb == 'package' and not rest:
        return package(cgroups)
    elif verb in ('boot', 'cut') and not rest:
        import running
        return running.boot(cgroups) if verb == 'boot' else running.cut()
    elif verb == 'run' and len(rest) == 1:
        import running
        if running.keeper() is not None:
            return running.run(rest[0])
        return boot(rest[0] + '\n', BOOT_S + TEST_S, cgroups)
    elif verb == 'boot-time' and (not rest or (len(rest) == 1 and rest[0].isdigit())):
        import boot_time
        return boot_time.compare(*map(int, rest))
    elif verb in ('cuts', 'moments') and rest:
        import cuts  # which boots machines
        numbers = [int(word) for word in rest if word.isdigit()]
        kinds, seed = rest[len(numbers):], time.time_ns() & 0xffffff
        machines = os.environ.get('CAIRN_MACHINES', '1')
        if not machines.isdigit() or not 1 <= len(numbers) <= 2 or not set(kinds) <= set(getattr(cuts, verb.upper() + '_ON')):
            return usage()
        if verb == 'cuts':
            return cuts.cuts(numbers[0], *(numbers[1:] or [seed]), kinds or ['ext4'], int(machines))
        if len(kinds) <= 1:
            return cuts.moments(numbers[0], *(numbers[1:] or [1 << 30]), seed, (kinds or ['ext4'])[0])
        return usage()
    elif verb == 'shell' and not rest:
        make()
        return subprocess.run(qemu(accelerator(), 'init=/bin/bash', '-serial', 'stdio'),
                              check=False).returncode
    else:
        return usage()
    return 0


if __name__ == '__main__':
    sys.exit(main())
