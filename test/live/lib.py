"""A node of its own for a live test: start, kill, ask, and audit what is left behind.

Everything lives in one temporary directory; payloads are found by a mark in their environment, so
that the audit sees orphans whatever their parent is.
"""
import atexit
import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import traceback
import urllib.error
import urllib.request

BUILD = os.environ.get('CAIRN_BUILD', os.path.abspath('build/debug'))
PATIENCE = float(os.environ.get('CAIRN_PATIENCE', '1'))  # of a machine that is slow by nature
PF_EXITING = 0x4  # of <linux/sched.h>


def wait_for(what, condition, limit_s=20.0, pause_s=0.01):
    """Waits until CONDITION() is true and returns its value; fails with WHAT after LIMIT_S."""
    end = time.monotonic() + limit_s * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError('waited %g s in vain for %s' % (limit_s, what))
        time.sleep(pause_s)


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def start_ticks(pid):
    """Field 22 of /proc/PID/stat, None if the process is gone, a zombie or about to be one: what ends
    has left its cgroup, and has no command line any more, before its state says so."""
    try:
        with open('/proc/%d/stat' % pid) as stat:
            fields = stat.read().rpartition(')')[2].split()
        return None if fields[0] in 'ZX' or int(fields[6]) & PF_EXITING else int(fields[19])
    except (FileNotFoundError, ProcessLookupError):
        return None


def end_processes(pids):
    """Kills them, and waits until they hold no file and no directory any more."""
    ends = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it may have ended with another
            ends.append(os.pidfd_open(pid))
            signal.pidfd_send_signal(ends[-1], signal.SIGKILL)
    for end in ends:
        assert select.select([end], [], [], 10 * PATIENCE)[0], 'a killed process does not end'
        os.close(end)


def words_of(pid):
    """The environment and the command line of a process.  Within an exec it has neither for a moment,
    though whoever waits for the exec may have been told already; what runs no file has none ever, and
    raises FileNotFoundError."""
    end = time.monotonic() + PATIENCE
    while True:
        os.readlink('/proc/%s/exe' % pid)
        with open('/proc/%s/cmdline' % pid, 'rb') as cmdline:
            line = cmdline.read()
        with open('/proc/%s/environ' % pid, 'rb') as environ:
            environment = environ.read()
        if line or time.monotonic() > end:
            return environment, line.replace(b'\0', b' ').decode(errors='replace').strip()
        time.sleep(0.001)


def has_bridges():
    """True if groups can have networks with mode bridge."""
    return os.path.exists('/usr/lib/cni/bridge') and shutil.which('iptables') is not None


def remove_bridge(bridge, subnet):
    """A node's, and the rule that lets its SUBNET in, which daemons that begin at once add once
    each; nothing where there is none."""
    subprocess.run(['ip', 'link', 'delete', bridge], check=False, stderr=subprocess.DEVNULL)
    delete = ['iptables', '-w', '-D', 'NOMAD-ADMIN', '-o', bridge, '-d', subnet, '-j', 'ACCEPT']
    while subprocess.run(delete, check=False, stderr=subprocess.DEVNULL).returncode == 0:
        pass


class Refused(Exception):
    """An HTTP answer that is no success."""

    def __init__(self, status, text):
        super().__init__('%d %s' % (status, text))
        self.status, self.text = status, text


class Node:
    all = []

    def __init__(self, build=BUILD, config=''):
        self.build = build
        self.dir = tempfile.mkdtemp(prefix='cairn-live-')
        self.data = os.path.join(self.dir, 'data')
        self.mark = 'CAIRN_TEST_MARK=' + os.path.basename(self.dir)
        self.port = free_port()
        self.process = None
        self.output = os.path.join(self.dir, 'daemon.log')
        self.config, self.token = None, None
        if config:
            self.config = os.path.join(self.dir, 'agent.hcl')
            with open(self.config, 'w') as out:
                out.write(config)
        self.seen = set()  # ids of allocs
        self.environment = {}
        self.prefix = []
        self.passed = ()  # descriptors that the daemon inherits
        Node.all.append(self)
        atexit.register(self.close)

    # --- the daemon ---

    def command(self):
        command = self.prefix + [os.path.join(self.build, 'cairn'), 'agent', '-data-dir', self.data,
                   '-bind', '127.0.0.1', '-http-port', str(self.port)]
        return command + (['-config', self.config] if self.config else [])

    def start(self, crash_at=None, stop_at=None, wait=True):
        env = dict(os.environ, CAIRN_TEST_MARK=os.path.basename(self.dir), **self.environment)
        if crash_at is not None:
            env['CAIRN_CRASH_AT'] = str(crash_at)
        if stop_at is not None:
            env['CAIRN_STOP_AT'] = str(stop_at)
        with open(self.output, 'ab') as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=env, pass_fds=self.passed,
                                            start_new_session=True)
        if wait:
            wait_for('the daemon to answer', self.answers)

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError('the daemon ended with %d:\n%s'
                                 % (self.process.returncode, self.log()))
        try:
            self.text('GET', '/v1/status/leader')
            return True
        except (OSError, urllib.error.URLError):
            return False

    def alive(self):
        return self.process is not None and self.process.poll() is None

    @classmethod
    def alive_ones(cls):
        return [node for node in cls.all if node.alive()]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def boot(self, boot_id):
        """From now on the daemon sees this boot id, as after a reboot."""
        path = os.path.join(self.dir, 'boot_id')
        with open(path, 'w') as out:
            out.write(boot_id + '\n')
        self.prefix = ['unshare', '--mount', '--propagation', 'unchanged', 'sh', '-c',
                       'mount --make-private /proc && mount --bind "$0" '
                       '/proc/sys/kernel/random/boot_id && exec "$@"', path]

    def reboot(self, boot_id):
        """Ends the daemon and takes away what a reboot takes away; the disk stays.  Then start()."""
        self.kill()
        end_processes(self.shims() + list(self.payloads()))
        wait_for('every process to end', lambda: not self.shims() and not self.payloads())
        for point in sorted(self.mounts(), key=len, reverse=True):  # of a shared namespace
            subprocess.run(['umount', point], check=True)
        self.boot(boot_id)

    def terminate(self):
        self.process.terminate()
        return self.process.wait(timeout=20 * PATIENCE)

    def log(self, bytes_max=8000):
        if not os.path.exists(self.output):
            return ''
        with open(self.output, errors='replace') as log:
            return log.read()[-bytes_max:]

    # --- asking ---

    def text(self, method, path, body=None, timeout_s=10):
        data = None if body is None else json.dumps(body).encode()
        headers = {'X-Nomad-Token': self.token} if self.token else {}
        request = urllib.request.Request('http://127.0.0.1:%d%s' % (self.port, path), data=data,
                                         method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout_s * PATIENCE) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode()) from None

    def call(self, method, path, body=None, timeout_s=10):
        text = self.text(method, path, body, timeout_s)
        return json.loads(text) if text.strip() else None

    def get(self, path):
        return self.call('GET', path)

    def put(self, path, body=None):
        return self.call('PUT', path, body)

    def cli(self, *arguments, check=True, **options):
        env = dict(os.environ, NOMAD_ADDR='http://127.0.0.1:%d' % self.port,
                   NOMAD_TOKEN=self.token or '')
        done = subprocess.run([os.path.join(self.build, 'cairn'), *arguments], env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60 * PATIENCE, **options)
        if check and done.returncode != 0:
            raise AssertionError('cairn %s: status %d\n%s' % (' '.join(arguments),
                                                             done.returncode, done.stdout))
        return done

    def run_job(self, job):
        return self.put('/v1/jobs', {'Job': job})

    def allocs(self, job=None):
        allocs = self.get('/v1/allocations')
        self.seen.update(alloc['ID'] for alloc in allocs)
        return [alloc for alloc in allocs if job is None or alloc['JobID'] == job]

    def alloc(self, job, group, index=0):
        """The newest alloc of a group, None if there is none."""
        found = [alloc for alloc in self.allocs(job)
                 if alloc['TaskGroup'] == group and alloc['Name'].endswith('[%d]' % index)]
        return max(found, key=lambda alloc: alloc['CreateTime'], default=None)

    def task(self, job, group, task, index=0):
        alloc = self.alloc(job, group, index)
        return ((alloc or {}).get('TaskStates') or {}).get(task)

    def running(self, task='t', job='job', group='g'):
        """The task's state while it runs, else None."""
        state = self.task(job, group, task)
        return state if state and state['State'] == 'running' else None

    def dead(self, task='t', job='job', group='g'):
        """The task's state once it has ended for good, else None."""
        state = self.task(job, group, task)
        return state if state and state['State'] == 'dead' else None

    def plight(self):
        """What somebody wants to know of it whose test has failed: its allocs, and its last words."""
        lines = []
        with contextlib.suppress(OSError, urllib.error.URLError, ValueError, Refused):
            for alloc in self.get('/v1/allocations?task_states=true'):
                lines.append('%s.%s %s' % (alloc['JobID'], alloc['TaskGroup'], alloc['ClientStatus']))
                for name, state in (alloc['TaskStates'] or {}).items():
                    lines.append('  %s %s, restarts %d: %s' % (name, state['State'], state['Restarts'],
                                                               ', '.join(events(state)[-6:])))
        lines += ['  %d %s' % (pid, line[:100]) for pid, line in self.payloads().items()]
        return '\n'.join(lines) + '\nthe daemon said last:\n' + self.log(2500) + '\n'

    # --- the world ---

    def pid_of(self, command):
        """The payload whose command line is COMMAND, None if there is none."""
        return next((pid for pid, line in self.payloads().items() if line == command), None)

    def await_pid(self, command):
        """The same, after the shell that was started has become it."""
        return wait_for('the payload ' + command, lambda: self.pid_of(command))

    def payloads(self):
        """pid -> command line of every live process that carries our mark, but the daemon's, and those
        that it is just making: until their exec they have its memory, and with it its name."""
        found, own = {}, None
        if self.process is not None and self.process.poll() is None:
            own = words_of(self.process.pid)[1]
        for name in os.listdir('/proc'):
            if not name.isdigit():
                continue
            try:
                environ, line = words_of(name)
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            ours = self.mark.encode() in environ.split(b'\0')
            if ours and line and line != own and start_ticks(int(name)) is not None \
                    and (self.process is None or int(name) != self.process.pid):
                found[int(name)] = line
        return found

    def shims(self):
        shim = os.path.join(self.build, 'cairn-shim')
        found = []
        for name in os.listdir('/proc'):
            if not name.isdigit():
                continue
            try:
                with open('/proc/%s/cmdline' % name, 'rb') as cmdline:
                    words = cmdline.read().decode(errors='replace').split('\0')
                cwd = os.readlink('/proc/%s/cwd' % name)
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if words[0].endswith(('cairn-shim', 'cairn-logs')) and cwd.startswith(self.data):
                found.append(int(name))
        return found

    def node_mark(self):
        return self.get('/v1/agent/self')['stats']['client']['node_id'][:8]

    def cgroups(self, mark):
        found = []
        for root, folders, _ in os.walk('/sys/fs/cgroup'):
            if root.endswith(('/cairn/' + mark, '/cairn/%s-cores' % mark)):
                found += [os.path.join(root, name) for name in folders]
        return found

    def networks(self, mark):
        """Namespaces, what is noted of them, leases of addresses and rules: what allocs of this
        node have, and of each that it was ever told of."""
        try:
            found = ['/run/netns/' + name for name in os.listdir('/run/netns')
                     if name.startswith('cairn-%s-' % mark)]
        except FileNotFoundError:
            found = []
        notes = os.path.join(self.data, 'client', 'network')
        if os.path.isdir(notes):
            found += [os.path.join(notes, name) for name in os.listdir(notes) if name != 'lock']
        if not self.seen or not os.path.isdir('/var/run/cni'):
            return found
        for root, _, files in os.walk('/var/run/cni'):
            for name in files:
                path = os.path.join(root, name)
                with contextlib.suppress(FileNotFoundError):  # another node's may go meanwhile
                    with open(path, errors='replace') as lease:
                        if lease.read().split('\r\n')[0] in self.seen:
                            found.append(path)
        rules = subprocess.run(['iptables-save'], check=False, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True).stdout
        return found + [line for line in rules.splitlines()
                        if any(alloc in line for alloc in self.seen)]

    def mounts(self):
        """Of the daemon's namespace, which after boot() is one of its own."""
        with open('/proc/%s/mountinfo' % (self.process.pid if self.alive() else 'self')) as table:
            return [line.split()[4] for line in table if line.split()[4].startswith(self.dir)]

    # --- the end ---

    def audit(self, mark):
        """What must not be left when every alloc has been destroyed (restore-failures 1)."""
        def leftovers():
            tasks = [path for path in self.cgroups(mark) if not path.endswith(('/shims', '/share'))]
            return [('process', pid, line) for pid, line in self.payloads().items()
                    if 'cairn-shim' not in line] + \
                [('shim', pid) for pid in self.shims()] + [('cgroup', path) for path in tasks] + \
                [('mount', path) for path in self.mounts()] + \
                [('network', what) for what in self.networks(mark)]

        try:
            wait_for('nothing to be left', lambda: not leftovers(), limit_s=20)
        except AssertionError:
            raise AssertionError('left behind: %r' % leftovers()) from None

    def purge(self):
        """Every job, those that another one has launched meanwhile, too, until nothing of them is left."""
        purged = set()

        def none_is_new():
            new = [job['ID'] for job in self.get('/v1/jobs') if job['ID'] not in purged]
            for name in new:
                try:
                    self.call('DELETE', '/v1/job/%s?purge=true' % name)
                except Refused as answer:  # purged before, and gone by now
                    assert answer.status == 404, answer
            purged.update(new)
            return not new

        wait_for('no job to be new', none_is_new)
        wait_for('the allocs to be gone', lambda: not self.allocs())

    def finish(self):
        """Purges every job, audits, and ends the daemon."""
        mark = self.node_mark()
        self.allocs()
        self.purge()
        self.audit(mark)
        assert self.terminate() == 0
        assert not [path for path in self.cgroups(mark) if path.endswith('/share')]
        self.close()

    def close(self):
        atexit.unregister(self.close)
        if self.alive():
            self.process.kill()
            self.process.wait()
        for pid in list(self.payloads()) + self.shims():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:  # a cgroup cannot be removed before its last process is reaped
            wait_for('the end', lambda: not self.payloads() and not self.shims(), limit_s=5)
        except AssertionError:
            pass  # the rest is cleaned up all the same
        for path in sorted(self.mounts(), key=len, reverse=True):
            subprocess.run(['umount', '-l', path], check=False)
        # Only what is ours: other nodes make cgroups at the same time.
        for mark in set(re.findall(r' started node=([0-9a-f]{8})-', self.log(1 << 20))):
            for root, _, _ in os.walk('/sys/fs/cgroup'):
                if root.endswith(('/cairn/' + mark, '/cairn/%s-cores' % mark)):
                    self._remove_empty_cgroup(root)
            if os.path.exists('/run/cairn/' + mark):  # the lock of a killed daemon
                os.unlink('/run/cairn/' + mark)
        shutil.rmtree(self.dir, ignore_errors=True)

    @staticmethod
    def _remove_empty_cgroup(root):
        def is_removed(path):
            try:
                os.rmdir(path)
            except FileNotFoundError:
                pass
            except OSError:
                return False
            return True

        for path, _, _ in os.walk(root, topdown=False):
            try:  # helpers end when they see that the daemon has
                wait_for('it to be empty', lambda path=path: is_removed(path), limit_s=5)
            except AssertionError:
                pass  # what is left in it was told of
        try:
            os.rmdir(os.path.dirname(root))
        except OSError:
            pass


class MountedNode(Node):
    """Its directory is a mount of its own: "shared" as systemd makes all of them, or "private"."""

    def __init__(self, propagation, config=''):
        super().__init__(config=config)
        subprocess.run(['mount', '--bind', self.dir, self.dir], check=True)
        subprocess.run(['mount', '--make-' + propagation, self.dir], check=True)
        os.chmod(self.dir, 0o711)

    def mounts(self):
        return [point for point in super().mounts() if point != self.dir]

    def close(self):
        super().close()
        subprocess.run(['umount', '-q', self.dir], check=False)
        if os.path.isdir(self.dir):
            os.rmdir(self.dir)


def raw_exec(name, script, **fields):
    """A task that runs SCRIPT with sh."""
    task = {'Name': name, 'Driver': 'raw_exec',
            'Config': {'command': '/bin/sh', 'args': ['-c', script]},
            'Resources': {'CPU': 50, 'MemoryMB': 32}}
    task.update(fields)
    return task


def sleeper(name='t', **fields):
    return raw_exec(name, 'exec sleep 1000', KillTimeout=milliseconds(2000), **fields)


def service(*tasks, restart=None, **fields):
    """A job "job" with one group "g"."""
    group = {'Name': 'g', 'Count': 1, 'Tasks': list(tasks),
             'RestartPolicy': restart or restart_policy(10, 10)}
    group.update(fields)
    return {'ID': 'job', 'Name': 'job', 'Type': 'service', 'Datacenters': ['dc1'],
            'TaskGroups': [group]}


def milliseconds(number):
    return number * 1000000


def restart_policy(attempts, delay_ms=0, mode='fail', interval_s=3600):
    return {'Attempts': attempts, 'Delay': milliseconds(delay_ms), 'Mode': mode,
            'Interval': interval_s * 1000000000}


NO_RESCHEDULE = {'Attempts': 0, 'Unlimited': False}


def events(state):
    return [event['Type'] for event in (state or {}).get('Events') or []]


def exit_codes(state):
    found = []
    for event in (state or {}).get('Events') or []:
        match = re.match(r'Exit Code: (-?\d+)', event.get('DisplayMessage') or '')
        if event['Type'] == 'Terminated' and match:
            found.append(int(match.group(1)))
    return found


def flip(path, key, behind):
    """Flips a bit of byte BEHIND of each value that stands under KEY in a data file of LMDB, old
    copies included; says how many.  Nothing else is touched: what pages say of themselves stays
    whole."""
    with open(path, 'r+b') as store:
        bytes_ = store.read()
        count, at = 0, bytes_.find(key)
        while at >= 0:
            low, high, flags, key_length = struct.unpack_from('<4H', bytes_, at - 8)
            lower, upper = struct.unpack_from('<2H', bytes_, at // 4096 * 4096 + 12)
            number, kind = struct.unpack_from('<Q2xH', bytes_, at // 4096 * 4096)
            place = None
            # A leaf knows its number and what it is; what continues a large value may hold the same
            # words, and no entry.  Below `upper` lies what is left of an earlier use of the page, under
            # what is there now.
            if (number, kind) == (at // 4096, 2) and key_length == len(key) \
                    and at % 4096 - 8 >= upper > lower and low + (high << 16) > behind:
                place = at + len(key) if flags == 0 else flags == 1 and far_value(bytes_, at + len(key))
            if place:
                store.seek(place + behind)
                store.write(bytes([bytes_[place + behind] ^ 0x40]))
                count += 1
            at = bytes_.find(key, at + 1)
    return count


def far_value(bytes_, at):
    """Where a value begins that is too large for its page, whose number stands AT; or None."""
    page = struct.unpack_from('<Q', bytes_, at)[0] * 4096
    is_there = page + 4096 <= len(bytes_) \
        and struct.unpack_from('<Q2xH', bytes_, page) == (page // 4096, 4)
    return page + 16 if is_there else None


def tap(tests, each_needs_the_last=False):
    """Runs functions in order, one TAP line each; the exit status for sys.exit."""
    failed = 0
    for number, test in enumerate(tests, 1):
        name = test.__name__.replace('_', ' ')
        try:
            reason = test()
        except Exception:  # told as a failure, and the next one runs
            failed += 1
            print('not ok %d - %s' % (number, name))
            story = traceback.format_exc() + ''.join(node.plight() for node in Node.alive_ones())
            print('# ' + story.replace('\n', '\n# '), flush=True)
            if each_needs_the_last:
                print('Bail out! The rest needs that.', flush=True)
                return 1
            continue
        print('ok %d - %s%s' % (number, name, ' # SKIP ' + reason if reason else ''), flush=True)
    print('1..%d' % len(tests))
    return 1 if failed else 0
