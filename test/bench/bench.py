#!/usr/bin/env python3
"""Measures cairn against the raw limits of this machine, in one run, and prints a table.

Ratios count: every number of ours stands beside what the machine can do with nothing in between.
usage: test/bench/bench.py [--count N] [--rounds N] [--events N] [--crowd N]
                           [--mocks N]
"""
import argparse
import datetime
import http.client
import json
import os
import platform
import re
import select
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'live'))
from lib import (Node, raw_exec, restart_policy, service, start_ticks,  # noqa: E402
                 wait_for)
from ways import ways_rows  # noqa: E402

import files  # noqa: E402

BUILD = os.environ.get('CAIRN_BUILD', os.path.abspath('build/release'))
TICKS = os.sysconf('SC_CLK_TCK')
# Payloads do nothing: what they ask for is not to be what stops them.
ROOMY = ('client {\n  gc_max_allocs = 100000\n  cpu_total_compute = 2000000000\n'
         '  memory_total_mb = 2000000000\n  disk_total_mb = 2000000000\n}\n')
EXEC_COUNT = 100


class QuietDisk:
    """A small ext4 of its own for the nodes' data.

    ext4 looks at every inode that was deleted in the last minutes before it makes a new one, so on
    a shared file system a round would measure what others, and earlier rounds, have deleted.
    """

    def __init__(self):
        self.image = tempfile.mkstemp(prefix='cairn-bench-', suffix='.img')[1]
        self.place = tempfile.mkdtemp(prefix='cairn-bench-')

    def __enter__(self):
        os.truncate(self.image, 2 << 30)
        subprocess.run(['mkfs.ext4', '-q', self.image], check=True)
        subprocess.run(['mount', '-o', 'loop', self.image, self.place], check=True)
        tempfile.tempdir = self.place

    def __exit__(self, *_):
        tempfile.tempdir = None
        subprocess.run(['umount', self.place], check=True)
        os.unlink(self.image)
        os.rmdir(self.place)


class Fifo:
    """Counts the payloads that say they are alive."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def wait(self, count, limit_s=60):
        end = time.monotonic() + limit_s
        while count > 0:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError('%d payloads never came alive' % count)
            count -= len(os.read(self.fd, 4096))


def job(count, fifo, driver='raw_exec'):
    task = raw_exec('payload', '', Driver=driver)
    task['Config'] = {'command': os.path.join(BUILD, 'test/bench/payload'), 'args': [fifo]}
    if driver == 'exec':
        task['Config'] = {'command': '/payload', 'args': ['/fifo']}
    return {'ID': 'bench', 'Name': 'bench', 'Type': 'service', 'Datacenters': ['dc1'],
            'TaskGroups': [{'Name': 'g', 'Count': count, 'RestartPolicy': restart_policy(0),
                            'Tasks': [task]}]}


def start_quiet(node):
    """A node whose programs have told it what is here: they run beside its first second."""
    node.start()
    time.sleep(1)


def bare_ms(count, fifo, *roots):
    done = subprocess.run([os.path.join(BUILD, 'test/bench/bare'), str(count),
                           os.path.join(BUILD, 'test/bench/payload'), fifo.path, *roots],
                          check=True, capture_output=True, text=True)
    return float(done.stdout)


EXEC_CONFIG = ROOMY + '''client {
  chroot_env {
    "/bin" = "/bin"
    "/etc" = "/etc"
    "/lib" = "/lib"
    "/lib32" = "/lib32"
    "/lib64" = "/lib64"
    "/sbin" = "/sbin"
    "/usr" = "/usr"
    "%s" = "/payload"
    "%s" = "/fifo"
  }
}
'''


def exec_round(count, results):
    """Tasks of exec beside a bare program that makes all that one has (bare.c), and no more."""
    node = Node(BUILD)
    os.chmod(tempfile.tempdir, 0o711)
    os.chmod(node.dir, 0o711)
    fifo = Fifo(os.path.join(node.dir, 'fifo'))
    os.chmod(fifo.path, 0o666)
    roots = os.path.join(node.dir, 'roots')
    os.mkdir(roots)
    results['bare exec'].append(bare_ms(count, fifo, roots))
    node.config = os.path.join(node.dir, 'agent.hcl')
    with open(node.config, 'w') as out:
        out.write(EXEC_CONFIG % (os.path.join(BUILD, 'test/bench/payload'), fifo.path))
    start_quiet(node)
    mark = node.node_mark()
    start = time.monotonic()
    node.run_job(job(count, fifo.path, 'exec'))
    fifo.wait(count)
    results['exec'].append((time.monotonic() - start) * 1e3)
    wait_for('all to be running', lambda: running(node) == count)
    time.sleep(3.5)
    results['exec pss'].append(statistics.mean(memory_kb(pid, 'Pss', 'smaps_rollup')
                                               for pid in node.shims()))
    node.call('DELETE', '/v1/job/bench?purge=true')
    wait_for('the allocs to be removed', lambda: not node.allocs())
    node.audit(mark)
    node.terminate()
    os.close(fifo.fd)
    node.close()


def memory_kb(pid, name, file='status'):
    with open('/proc/%d/%s' % (pid, file)) as status:
        return int(re.search(r'^%s:\s+(\d+) kB' % name, status.read(), re.M).group(1))


def cpu_seconds(pid):
    with open('/proc/%d/stat' % pid) as stat:
        fields = stat.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def wait_dead(pids, limit_s=30):
    """Milliseconds from now until every process of PIDS has ended."""
    start = time.monotonic()
    poll = select.poll()
    fds = {}
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        fds[fd] = pid
        poll.register(fd, select.POLLIN)

    def finish(_=None):
        while fds:
            if time.monotonic() - start > limit_s:
                raise AssertionError('%d payloads never ended' % len(fds))
            for fd, _ in poll.poll(1000):
                poll.unregister(fd)
                os.close(fd)
                del fds[fd]
    return finish


def running(node):
    return sum(alloc['ClientStatus'] == 'running' for alloc in node.allocs('bench'))


def wait_settled(node, limit_s=60):
    """An idle node is one that judges no alloc's health any more."""
    wait_for('deployments to be over', lambda: all(
        deployment['Status'] != 'running' for deployment in node.get('/v1/deployments')), limit_s, 0.5)


def restored_ms(node, started_s):
    """From the start of the process to the line of its log that says all is reattached."""
    def line():
        match = re.findall(r'^(\S+)Z .*restored tasks=(\d+) lost=(\d+)', node.log(), re.M)
        return match[-1] if match else None
    stamp, tasks, lost = wait_for('the restore to end', line)
    if lost != '0':
        raise AssertionError('%s of %s tasks were lost' % (lost, tasks))
    ended = datetime.datetime.fromisoformat(stamp).replace(tzinfo=datetime.timezone.utc)
    return (ended.timestamp() - started_s) * 1e3


def one_round(count, results, idle_s):
    node = Node(BUILD, ROOMY)
    fifo = Fifo(os.path.join(node.dir, 'fifo'))
    results['bare'].append(bare_ms(count, fifo))
    start_quiet(node)
    mark = node.node_mark()
    start = time.monotonic()
    node.run_job(job(count, fifo.path))
    fifo.wait(count)
    results['start'].append((time.monotonic() - start) * 1e3)
    wait_for('all to be running', lambda: running(node) == count)
    time.sleep(3.5)  # let caches be emptied, as they are on an idle node
    results['rss'].append(memory_kb(node.process.pid, 'VmRSS') / 1024)
    shims = node.shims()
    results['pss'].append(statistics.mean(memory_kb(pid, 'Pss', 'smaps_rollup') for pid in shims))
    if idle_s:
        wait_settled(node)
        before = cpu_seconds(node.process.pid)
        time.sleep(idle_s)
        results['idle'].append((cpu_seconds(node.process.pid) - before) / idle_s * 100)
    payloads = [pid for pid, line in node.payloads().items() if 'bench/payload' in line]
    assert len(payloads) == count, '%d payloads' % len(payloads)
    ticks = {pid: start_ticks(pid) for pid in payloads}
    node.kill()
    started = time.time()
    node.start()
    results['restart'].append(restored_ms(node, started))
    assert all(start_ticks(pid) == ticks[pid] for pid in payloads), 'a payload was restarted'
    finish = wait_dead(payloads)
    start = time.monotonic()
    node.call('DELETE', '/v1/job/bench?purge=true')
    finish()
    results['stop'].append((time.monotonic() - start) * 1e3)
    wait_for('the allocs to be removed', lambda: not node.allocs())
    node.audit(mark)
    node.terminate()
    roots = os.path.join(node.dir, 'roots')
    os.mkdir(roots)
    results['bare plain'].append(bare_ms(count, fifo, roots, 'plain'))
    os.close(fifo.fd)
    node.close()


class Asker:
    """Somebody who asks the node something small again and again, before all others on this
    machine; and how long the longest answer took meanwhile."""

    def __init__(self, port):
        self.port, self.longest_ms, self.enough = port, 0, False
        self.thread = threading.Thread(target=self.ask, daemon=True)

    def ask(self):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -10)
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)
        while not self.enough:
            start = time.monotonic()
            connection.request('GET', '/v1/status/leader')
            connection.getresponse().read()
            self.longest_ms = max(self.longest_ms, (time.monotonic() - start) * 1e3)
            time.sleep(0.002)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.enough = True
        self.thread.join()


def crowd_rows(count):
    """How long the API is silent while COUNT allocs are placed, stopped and collected."""
    rows = []

    def step(what, budget, method, path, body, is_done):
        before, start = cpu_seconds(node.process.pid), time.monotonic()
        with Asker(node.port) as asker:
            node.call(method, path, body, timeout_s=60)
            is_done()
        took_s = time.monotonic() - start
        rows.append(('longest silence, %s %s' % (what, format(count, ',')),
                     '%.0f ms' % asker.longest_ms,
                     'all %.1f s, CPU %.1f s' % (took_s, cpu_seconds(node.process.pid) - before),
                     '', budget))

    def statuses():
        return [alloc['ClientStatus'] for alloc in node.get('/v1/allocations?task_states=false')]

    with QuietDisk():
        node = Node(BUILD, ROOMY)
        fifo = Fifo(os.path.join(node.dir, 'fifo'))
        node.start()
        step('place', '500 ms', 'PUT', '/v1/jobs', {'Job': job(count, fifo.path)}, lambda: (
            fifo.wait(count, 300),
            wait_for('all to run', lambda: set(statuses()) == {'running'}, 60, 0.3)))
        time.sleep(3.5)  # let caches be emptied, as they are on an idle node
        rss = memory_kb(node.process.pid, 'VmRSS') / 1024
        node.kill()
        started = time.time()
        node.start()
        restart_ms = restored_ms(node, started)
        step('stop', '500 ms', 'DELETE', '/v1/job/bench', None, lambda: wait_for(
            'all to end', lambda: not set(statuses()) & {'running', 'pending'}, 60, 0.3))
        step('collect', '200 ms', 'PUT', '/v1/system/gc', None, lambda: wait_for(
            'all to be gone', lambda: not statuses(), 60, 0.3))
        node.terminate()
        os.close(fifo.fd)
        node.close()
    what = '%s raw_exec tasks' % format(count, ',')
    rows.append(('RSS, ' + what, '%.1f MB' % rss, '', '', '30 MB'))
    rows.append(('restart, ' + what, '%.0f ms' % restart_ms, '', '', '200 ms'))
    return rows


def mock_rows(count):
    """COUNT allocs whose tasks have no process: what holding them costs the node itself."""
    most = 2000  # of one group
    rows = []
    with QuietDisk():
        node = Node(BUILD, ROOMY + 'plugin "mock_driver" {\n  config {\n    enabled = true\n  }\n}\n')
        node.start()
        start = time.monotonic()
        for number in range(0, count, most):
            jobs = job(min(most, count - number), '')
            jobs['ID'] = jobs['Name'] = 'bench-%d' % number
            jobs['TaskGroups'][0]['Tasks'][0].update(Driver='mock_driver', Config={'run_for': '24h'})
            node.call('PUT', '/v1/jobs', {'Job': jobs}, timeout_s=60)

        def held():
            states = node.call('GET', '/v1/allocations?task_states=false', timeout_s=60)
            return sum(alloc['ClientStatus'] == 'running' for alloc in states) == count
        wait_for('all to run', held, 600, 1)
        took_s = time.monotonic() - start
        peak = memory_kb(node.process.pid, 'VmHWM') / 1024
        wait_settled(node, 120)
        time.sleep(3.5)  # let caches be emptied, as they are on an idle node
        rss = memory_kb(node.process.pid, 'VmRSS') / 1024
        before = cpu_seconds(node.process.pid)
        time.sleep(10)
        idle = (cpu_seconds(node.process.pid) - before) * 10
        node.kill()
        started = time.time()
        node.start()
        restart_ms = restored_ms(node, started)
        wait_for('all to run on', held, 60, 1)
        for jobs in node.get('/v1/jobs'):
            node.call('DELETE', '/v1/job/%s?purge=true' % jobs['ID'], timeout_s=60)
        wait_for('the allocs to be removed', lambda: not node.call(
            'GET', '/v1/allocations?task_states=false', timeout_s=60), 600, 1)
        node.terminate()
        node.close()
    what = '%s mock allocs' % format(count, ',')
    rows.append(('RSS, ' + what, '%.1f MB' % rss, '%.0f when the last runs, after %.1f s' % (
        peak, took_s), '', '150 MB'))
    rows.append(('idle CPU, ' + what, '%.3f %%' % idle, '', '', '0.1 %'))
    rows.append(('restart, ' + what, '%.0f ms' % restart_ms, '', '', ''))
    return rows


class Storage:
    """A storage plugin with COUNT volumes, each call to which takes PAUSE_MS."""
    PLUGIN = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', 'csi', 'plugin.py'))

    def __init__(self, count, pause_ms):
        self.count = count
        self.dir = tempfile.mkdtemp(prefix='cairn-storage-')
        self.names = ['disk-%d[%d]' % (number // 100 * 100, number % 100)
                      for number in range(count)]
        for name in self.names:
            os.mkdir(os.path.join(self.dir, name))
        for name, text in (('pause', str(pause_ms)), ('answers.json', json.dumps(
                {'GetPluginCapabilities': {}, 'NodeGetInfo': {'node_id': 'here'}}))):
            with open(os.path.join(self.dir, name), 'w') as out:
                out.write(text)

    def bare_ms(self):
        """How soon it mounts them all when a client asks it that does nothing else."""
        socket, root = os.path.join(self.dir, 's'), os.path.join(self.dir, 'bare')
        os.mkdir(root)
        with subprocess.Popen(['/usr/bin/python3', self.PLUGIN, socket, self.dir],
                              stdout=subprocess.PIPE, text=True) as plugin:
            assert plugin.stdout.readline() == 'ready\n'
            done = subprocess.run([os.path.join(BUILD, 'test/csi/bench_volumes'), socket, root,
                                   str(self.count)], check=True, capture_output=True, text=True)
            plugin.kill()
        return float(done.stdout.split()[1])

    def run_on(self, node):
        task = raw_exec('plugin', '', CSIPluginConfig={'ID': 'test', 'Type': 'node'}, Config={
            'command': '/usr/bin/python3', 'args': [self.PLUGIN, '-', self.dir]})
        task['Resources']['MemoryMB'] = 500
        node.run_job(dict(service(task), ID='plugin', Name='plugin'))

        def is_healthy():
            plugins = node.get('/v1/plugins?type=csi')
            return plugins and plugins[0]['NodesHealthy'] == 1
        wait_for('the plugin', is_healthy)
        for name in self.names:
            node.put('/v1/volume/csi/' + name, {'Volumes': [{
                'ID': name, 'Name': name, 'ExternalID': name, 'PluginID': 'test',
                'RequestedCapabilities': [{'AccessMode': 'single-node-writer',
                                           'AttachmentMode': 'file-system'}]}]})

    def jobs(self):
        for first in range(0, self.count, 100):
            yield self.job(first, min(100, self.count - first))

    def job(self, first, count):
        made = job(count, '')
        made['ID'] = made['Name'] = 'bench-%d' % first
        main = made['TaskGroups'][0]['Tasks'][0]
        main.update(Driver='mock_driver', Config={'run_for': '24h'})
        # Volumes that no task of a group can see are refused.  This one runs when all is measured.
        made['TaskGroups'][0]['Tasks'].append(dict(
            main, Name='after', Driver='exec', Config={'command': '/bin/true'},
            Lifecycle={'Hook': 'poststop'}))
        made['TaskGroups'][0]['Volumes'] = {'v': {
            'Type': 'csi', 'Source': 'disk-%d' % first, 'PerAlloc': True,
            'AccessMode': 'single-node-writer', 'AttachmentMode': 'file-system'}}
        return made


def users(node):
    """Allocs that run with their volumes."""
    return sum(alloc['ClientStatus'] == 'running' and alloc['JobID'] != 'plugin'
               for alloc in node.get('/v1/allocations?task_states=false'))


def claims(node):
    return sum(volume['CurrentWriters'] for volume in node.get('/v1/volumes?type=csi'))


def last_ms(node, transition, since_s):
    """From SINCE_S to the last time that a volume made this TRANSITION."""
    log = subprocess.run([os.path.join(BUILD, 'cairn'), 'journal', 'log', '-dir', node.data],
                         check=True, capture_output=True, text=True).stdout
    stamps = re.findall(r'(\S+)Z  volume \S+ ' + re.escape(transition), log)
    ended = datetime.datetime.fromisoformat(stamps[-1]).replace(tzinfo=datetime.timezone.utc)
    return (ended.timestamp() - since_s) * 1e3


def volume_round(count, pause_ms, restart_and_idle=False):
    """Milliseconds to mount COUNT volumes, without cairn too; to come back to them; idle CPU."""
    with QuietDisk():
        node = Node(BUILD, ROOMY + 'plugin "mock_driver" {\n  config {\n    enabled = true\n  }\n}\n')
        storage = Storage(count, pause_ms)
        bare = storage.bare_ms()
        node.start()
        storage.run_on(node)
        start = time.time()
        for made in storage.jobs():
            node.run_job(made)
        wait_for('all to run', lambda: users(node) == count, 300, 0.3)
        mounted = last_ms(node, 'PUBLISHING -PUBLISHED-> READY', start)
        restored = idle = 0
        if restart_and_idle:
            node.kill()
            start = time.time()
            node.start()
            wait_for('all to run on', lambda: users(node) == count, 60, 0.3)
            time.sleep(3)
            restored = last_ms(node, 'VERIFYING -MOUNT_FOUND-> READY', start)
            wait_settled(node)
            before = cpu_seconds(node.process.pid)
            time.sleep(60)
            idle = (cpu_seconds(node.process.pid) - before) / 60 * 100
        for made in storage.jobs():
            node.call('DELETE', '/v1/job/%s?purge=true' % made['ID'])
        wait_for('nothing to be mounted', lambda: claims(node) == 0, 300, 0.3)
        node.call('DELETE', '/v1/job/plugin?purge=true')
        wait_for('the allocs to be removed', lambda: not node.allocs(), 60, 0.3)
        node.terminate()
        node.close()
    return mounted, bare, restored, idle


def volume_rows():
    mounted, bare, _, _ = volume_round(100, 100)
    _, _, restored, idle = volume_round(1000, 0, True)
    return [('100 volumes, calls of 100 ms', '%.0f ms' % mounted, 'the calls alone %.0f ms' % bare,
             '%.2f x' % (mounted / bare), '1.5 x'),
            ('restart, 1,000 mounted volumes', '%.0f ms' % restored, '', '', '300 ms'),
            ('idle CPU, 1,000 volumes', '%.3f %%' % idle, '', '', '0.0 %')]


def journal_rates():
    done = subprocess.run([os.path.join(BUILD, 'test/journal/bench_journal')], check=True,
                          capture_output=True, text=True)
    return done.stdout.strip()


def verified(events):
    """Events a second and peak RSS in MB of one `journal verify` of a journal of EVENTS events."""
    done = subprocess.run([os.path.join(BUILD, 'test/inspect/bench_verify'), str(events)],
                          check=True, capture_output=True, text=True)
    rate, peak = re.search(r': (\d+) events/s.* peak RSS (\d+) kB', done.stdout).groups()
    return float(rate), float(peak) / 1024


def worlds_rate(count=20000):
    """Small worlds that the simulator runs in a second on one core, all of them whole."""
    done = subprocess.run([os.path.join(BUILD, 'cairn'), 'sim', '-seeds', str(count), '-base', '1',
                           '-j', '1'], check=True, capture_output=True, text=True)
    return float(re.search(r', (\d+) a second', done.stdout).group(1))


def laboratory_rows(events):
    small, small_peak = verified(events // 10)
    large, large_peak = verified(events)
    return [
        ('verify, %.0f M events' % (events / 1e6), '%.2f M/s' % (large / 1e6),
         'a tenth of them %.2f M/s' % (small / 1e6), '%.2f x' % (large / small), '0.5 M/s'),
        ('verify, peak RSS', '%.1f MB' % large_peak, 'a tenth of them %.1f MB' % small_peak,
         '%.2f x' % (large_peak / small_peak), 'constant'),
        ('small worlds on one core', '%.0f /s' % worlds_rate(), '', '', '1000 /s'),
    ]


def list_rows():
    """Lists of the API against printing the same JSON out of a tree that is there already, and
    changes against the same ones while queries wait for others."""
    done = subprocess.run([os.path.join(BUILD, 'test/agent/api/bench_lists')], check=True,
                          capture_output=True, text=True)
    figures = {}
    for line in done.stdout.splitlines():
        name, ours, least = line.split()[:3]
        figures[name] = float(ours), float(least)

    def row(what, name, least, budget):
        ours, raw = figures[name]
        return (what, '%.1f ms' % ours, '%s %.1f ms' % (least, raw), '%.2f x' % (ours / raw),
                budget)
    return [row('list 2,000 jobs', 'jobs', 'print a ready tree', '10 ms'),
            row('list 2,000 allocs', 'allocs-states', 'print a ready tree', '15 ms'),
            row('100 changes, 100 queries wait', 'parked', 'nobody waits', '1.2 x')]


def turn_rows():
    """A turn that concerns one machine, beside many idle ones against beside 16."""
    done = subprocess.run([os.path.join(BUILD, 'test/core/bench_turn')], check=True,
                          capture_output=True, text=True)
    costs = [float(line.split()[1]) / 1e3 for line in done.stdout.splitlines()]
    return [('a turn beside %s' % what, '%.2f us' % many, 'beside 16 %.2f us' % few,
             '%.2f x' % (many / few), '1.5 x')
            for what, few, many in (('16,000 machines', *costs[:2]), ('2,000 volumes', *costs[2:4]),
                                    ('2,000 claims on its volume', *costs[4:]))]


def language_rows():
    """Job files of 1 MB, against jansson alone that reads the same job from JSON."""
    done = subprocess.run([os.path.join(BUILD, 'test/spec/hcl/bench_hcl')], check=True,
                          capture_output=True, text=True)
    rows = []
    for line, budget in zip(done.stdout.splitlines(), ('20 ms', '')):
        name, ours, bare = line.split()
        rows.append(('1 MB of HCL, %s' % name, '%.1f ms' % float(ours), 'jansson %.1f ms' % float(bare),
                     '%.2f x' % (float(ours) / float(bare)), budget))
    return rows


def csi_row():
    """A call to a CSI plugin that answers at once, against the same call by libcurl alone."""
    done = subprocess.run([os.path.join(BUILD, 'test/csi/bench_client')], check=True,
                          capture_output=True, text=True)
    ours, bare = (float(figure) for figure in done.stdout.split()[1:])
    return [('a call to a CSI plugin', '%.0f us' % ours, 'libcurl alone %.0f us' % bare,
             '%.2f x' % (ours / bare), '1.2 x')]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--count', type=int, default=300)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--crowd', type=int, default=2000, help='allocs that come and go at once')
    parser.add_argument('--mocks', type=int, default=10000, help='allocs that are held')
    parser.add_argument('--events', type=int, default=10000000, help='of the journal to verify')
    options = parser.parse_args()
    results = {name: [] for name in ('bare', 'bare plain', 'start', 'rss', 'pss', 'idle', 'restart',
                                     'stop', 'bare exec', 'exec', 'exec pss')}
    for number in range(options.rounds):
        print('# round %d of %d' % (number + 1, options.rounds), file=sys.stderr)
        with QuietDisk():
            one_round(options.count, results, 20 if number == 0 else 0)
        with QuietDisk():
            exec_round(EXEC_COUNT, results)
    middle = {name: statistics.median(values) for name, values in results.items()}
    cpu = next((line.split(':')[1].strip() for line in open('/proc/cpuinfo')
                if line.startswith('model name')), '?')
    print('machine: %s, %d cores, Linux %s; medians of %d rounds, %d raw_exec tasks\n' % (
        cpu, os.cpu_count(), platform.release(), options.rounds, options.count))
    rows = [
        ('submit to last payload alive', '%.0f ms' % middle['start'],
         'bare spawn %.0f ms' % middle['bare'], '%.2f x' % (middle['start'] / middle['bare']),
         '3 x'),
        ('the same', '%.0f ms' % middle['start'],
         'and all a task has %.0f ms' % middle['bare plain'],
         '%.2f x' % (middle['start'] / middle['bare plain']), ''),
        ('the same of %d exec tasks' % EXEC_COUNT, '%.0f ms' % middle['exec'],
         'bare isolation %.0f ms' % middle['bare exec'],
         '%.2f x' % (middle['exec'] / middle['bare exec']), '1.5 x'),
        ('supervisor PSS, exec', '%.0f kB' % middle['exec pss'], '', '', '100 kB'),
        ('daemon RSS', '%.1f MB' % middle['rss'], '', '', '12 MB'),
        ('supervisor PSS per task', '%.0f kB' % middle['pss'], '', '', '100 kB'),
        ('idle CPU', '%.3f %%' % middle['idle'], '', '', '0.1 %'),
        ('restart to all reattached', '%.0f ms' % middle['restart'], '', '', '50 ms'),
        ('stop all', '%.0f ms' % middle['stop'], '', '', '300 ms'),
    ]
    rows += crowd_rows(options.crowd)
    rows += mock_rows(options.mocks)
    rows += turn_rows()
    rows += language_rows()
    rows += csi_row()
    rows += volume_rows()
    rows += ways_rows(BUILD)
    rows += list_rows()
    rows += [files.artifact_row(BUILD), files.templates_row(BUILD), *files.rendered_rows(BUILD, ROOMY)]
    rows += laboratory_rows(options.events)
    print('%-30s %12s  %-24s %8s  %8s' % ('what', 'cairn', 'raw limit', 'ratio', 'budget'))
    for row in rows:
        print('%-30s %12s  %-24s %8s  %8s' % row)
    print('\njournal:\n' + journal_rates())


if __name__ == "__main__":
    main()
