#!/usr/bin/env python3
"""The same task of the driver exec here and on a node of Nomad, where this machine has its program
(CAIRN_NOMAD, or "nomad" on the PATH): what it sees, signals, mounts, opens and exhausts."""
import contextlib
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, free_port, raw_exec, restart_policy, service, tap, wait_for  # noqa: E402

NOMAD = os.environ.get('CAIRN_NOMAD') or shutil.which('nomad')
CGROUPS = '/sys/fs/cgroup/**/nomad'  # that a node of Nomad makes, and leaves

# What the probe runs, and the links by which it is found: Nomad copies its root for each task.
TOOLS = ('id readlink ls grep touch mount unshare true mknod chown hostname dd ping tr env sed '
         'sort head tail sleep').split()


def root():
    """chroot_env of both: the tools and what they are linked with."""
    files = {'/etc/passwd', '/etc/group'}
    for tool in ['/bin/sh'] + list(filter(None, map(shutil.which, TOOLS))):
        linked = subprocess.run(['ldd', os.path.realpath(tool)], check=False, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        files |= {tool} | {word for word in linked.split() if word.startswith('/')}
    return 'client {\n  chroot_env {\n%s  }\n}\n' % ''.join(
        '    "%s" = "%s"\n' % (os.path.realpath(path), path) for path in sorted(files))


CONFIG = '''data_dir  = "%(dir)s/data"
bind_addr = "127.0.0.1"
ports {
  http = %(http)d
  rpc  = %(rpc)d
  serf = %(serf)d
}
advertise {
  http = "127.0.0.1"
  rpc  = "127.0.0.1"
  serf = "127.0.0.1"
}
server {
  enabled          = true
  bootstrap_expect = 1
}
client {
  enabled           = true
  network_interface = "lo"
  cpu_total_compute = 4000
  options = {
    "driver.allowlist"     = "exec"
    "fingerprint.denylist" = "env_aws,env_azure,env_digitalocean,env_gce"
  }
}
consul {
  auto_advertise   = false
  client_auto_join = false
}
disable_update_check = true
'''

# A line for each question: its name, and what came of it.
PROBE = r'''
say() { echo "$1 $2"; }
try() { name=$1; shift; if "$@" > /dev/null 2>&1; then say "$name" yes; else say "$name" no; fi; }
say user "$(id -un)"
say groups "$(id -Gn)"
say pid $$
say directory "$PWD"
for name in mnt pid ipc uts net user cgroup; do
    say "namespace-$name" "$(readlink /proc/self/ns/$name)"
done
while read key value; do
    case $key in Cap???:|NoNewPrivs:|Seccomp:) say "$key" "$value" ;; esac
done < /proc/self/status
try sees-others test "$(ls -d /proc/[0-9]* | grep -c .)" -gt 12
try signal-daemon kill -0 DAEMON
try signal-parent kill -0 $PPID
try sees-host test -e HOST
try sees-root ls /root
try writes-root touch /probe
try writes-etc touch /etc/probe
try writes-usr touch /usr/probe
try writes-sys test -w /sys/kernel/uevent_helper
try writes-proc test -w /proc/sys/kernel/core_pattern
try writes-local touch /local/probe
try writes-secrets touch /secrets/probe
try writes-alloc touch /alloc/data/probe
try mounts mount -t tmpfs none /tmp
try unshares unshare -m true
try makes-devices mknod /local/device b 1 0
try changes-owner chown root /local/probe
try names-host hostname probe
try opens-memory dd if=/dev/mem count=1
try opens-messages dd if=/dev/kmsg count=0
try opens-disk dd if=/dev/vda count=1
try opens-null dd if=/dev/null count=1
try opens-random dd if=/dev/urandom count=1
try raw-socket ping -c1 -w1 127.0.0.1
say descriptors "$(ls /proc/self/fd | tr '\n' ' ')"
say open-files "$(ulimit -n)"
for name in $(env | sed -n 's/^\(NOMAD_[A-Z_]*\)=.*/\1/p' | sort); do
    say "variable-$name" there
done
exec 2> /dev/null
(head -c 400m /dev/zero | tail -c 300m) > /dev/null
say exhausts-memory $?
echo end
'''

FEWER = 'who is not root has net_bind_service and what the task adds, not all of a container'
FROM_THE_HOST = 'what is of the host is there as it is, read-only, and not copied for each task'

# What differs, and may: name -> why.
REASONS = {
    'CapInh:': FEWER, 'CapPrm:': FEWER, 'CapEff:': FEWER, 'CapAmb:': FEWER,
    'NoNewPrivs:': 'no program of the task gains rights',
    'changes-owner': FEWER,
    'makes-devices': FEWER,
    'groups': 'nobody is in his own group, and not in that of root',
    'writes-etc': FROM_THE_HOST,
    'writes-usr': FROM_THE_HOST,
    'variable-NOMAD_CPU_CORES': 'only a task that has cores of its own is told of them',
    'variable-NOMAD_PARENT_CGROUP': 'it names a cgroup of Nomad\'s own making',
}


def script(daemon, directory):
    return PROBE.replace('DAEMON', str(daemon)).replace('HOST', directory)


def job(text):
    task = raw_exec('t', '(%s) > /local/said 2>&1; exec sleep 1000' % text, Driver='exec',
                    Resources={'CPU': 50, 'MemoryMB': 64})
    return service(task, restart=restart_policy(0))


def answers(path):
    def whole():
        if not os.path.exists(path):
            return None
        with open(path) as file:
            lines = file.read().splitlines()
        return lines if lines[-1:] == ['end'] else None

    said = dict(line.partition(' ')[::2] for line in wait_for(path, whole)[:-1])
    for name in [name for name in said if name.startswith('namespace-')]:
        own = os.readlink('/proc/self/ns/' + name.partition('-')[2])
        said[name] = "the host's" if said[name] == own else 'its own'
    return said


def here():
    node = Node(config=root())
    os.chmod(node.dir, 0o711)  # tasks of nobody have to reach what is theirs
    node.start()
    node.run_job(job(script(node.process.pid, node.dir)))
    wait_for('the task', node.running)
    said = answers(os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'], 't/local/said'))
    node.finish()
    return said


class Beside:
    """A server and node of Nomad."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix='cairn-beside-')
        os.chmod(self.dir, 0o711)
        self.port = free_port()
        self.cgroups = set(glob.glob(CGROUPS, recursive=True))
        path = os.path.join(self.dir, 'agent.hcl')
        with open(path, 'w') as out:
            out.write(CONFIG % {'dir': self.dir, 'http': self.port, 'rpc': free_port(),
                                'serf': free_port()} + root())
        with open(os.path.join(self.dir, 'log'), 'w') as log:
            self.process = subprocess.Popen(
                ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', NOMAD, 'agent',
                 '-config', path], stdout=log, stderr=log, start_new_session=True)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request('http://127.0.0.1:%d%s' % (self.port, path), data,
                                         method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def quietly(self, path):
        try:
            return self.call('GET', path)
        except OSError:
            return []

    def close(self):
        try:
            self.call('DELETE', '/v1/job/job?purge=true')
            wait_for('the end of its task', lambda: all(
                alloc['ClientStatus'] not in ('pending', 'running')
                for alloc in self.quietly('/v1/allocations')))
        finally:
            self.process.kill()  # and with it all of its namespaces: helpers and mounts
            self.process.wait()
            for top in set(glob.glob(CGROUPS, recursive=True)) - self.cgroups:
                wait_for('the end of ' + top, lambda: remove_tree(top))
            shutil.rmtree(self.dir, ignore_errors=True)


def remove_tree(top):
    """Directories only, as cgroups have them; True when all are gone."""
    for path, _, _ in os.walk(top, topdown=False):
        with contextlib.suppress(OSError):  # something in it is still ending
            os.rmdir(path)
    return not os.path.exists(top)


def there():
    nomad = Beside()
    try:
        # One that asks its server before that has a key for it tries again up to 30 s later.
        wait_for('its node', lambda: any(node['Status'] == 'ready'
                                         for node in nomad.quietly('/v1/nodes')), 90)
        nomad.call('PUT', '/v1/jobs', {'Job': job(script(nomad.process.pid, nomad.dir))})
        [alloc] = wait_for('its alloc', lambda: [
            alloc for alloc in nomad.quietly('/v1/allocations')
            if alloc['ClientStatus'] == 'running'])
        return answers(os.path.join(nomad.dir, 'data/alloc', alloc['ID'], 't/local/said'))
    finally:
        nomad.close()


def what_a_task_of_exec_can_do_is_what_it_can_in_nomad():
    if NOMAD is None:
        return 'no nomad on this machine'
    ours, theirs = here(), there()
    asked = {'user', 'CapBnd:', 'mounts', 'exhausts-memory'}
    assert set(ours) >= asked and set(theirs) >= asked, (ours, theirs)
    differ = {name: (ours.get(name), theirs.get(name)) for name in sorted(set(ours) | set(theirs))
              if ours.get(name) != theirs.get(name)}
    assert set(differ) <= set(REASONS), json.dumps(
        {name: both for name, both in differ.items() if name not in REASONS}, indent=1)


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it makes namespaces')
        sys.exit(77)
    sys.exit(tap([what_a_task_of_exec_can_do_is_what_it_can_in_nomad]))
