#!/usr/bin/env python3
"""How long after the begin of its kernel a machine has all its tasks running again, beside the same
machine when cairn does not start: `./dev vm boot-time` installs cairn for good, runs so many tasks,
cuts the power, and boots what is left in turn with and without cairn.  The clock is the
kernel's own, /proc/uptime.  What the machine could do at all is measured where cairn does not start:
as many processes that sleep, which nobody knows anything of.

usage, on the machine: test/vm/boot_time.py begin COUNT | look COUNT
"""
import datetime
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import machine

COUNT, ROUNDS, MEMORY_MB = 300, 3, 4096
RUN = 'test/vm/boot_time.py'
TREE = '/sys/fs/cgroup/cairn.slice/cairn-tasks.service'
TASKS = TREE + '/*/*.t.*/cgroup.procs'

# Then its power goes: who is told to end, as in a shutdown, writes down how it ended.
INSTALL = '''set -e
cp build/cairn* /usr/bin/
cp agent/*.service /etc/systemd/system/
mkdir -p /etc/cairn
cp agent/debian/cairn.hcl /etc/cairn/
groupadd --system cairn
systemctl daemon-reload
systemctl enable --now cairn
python3 %s begin %d
sync
echo "ended 0"
sleep 1  # its line to the host is slow
echo b > /proc/sysrq-trigger
sleep 100
'''
# Python starts when nothing else is to be done any more, and who waits for that costs nearly nothing:
# each task is a payload and its shim.
LOOK = '''if systemctl --quiet is-active cairn; then
    until read -r there < %s/pids.current && [ "$there" -ge %d ]; do sleep 1; done
fi
exec python3 %s look %d
'''
WITHOUT = 'systemd.mask=cairn.service systemd.mask=cairn-tasks.service '


# --- on the machine ---

def begin(count):
    import local
    task = {'Name': 't', 'Driver': 'raw_exec', 'Config': {'command': '/bin/sleep', 'args': ['100000']},
            'Resources': {'CPU': 1, 'MemoryMB': 10}, 'LogConfig': {'MaxFiles': 1, 'MaxFileSizeMB': 1}}
    local.ask('PUT', '/v1/jobs', {'Job': {
        'ID': 'job', 'Name': 'job', 'Type': 'service', 'Datacenters': ['dc1'], 'TaskGroups': [
            {'Name': 'g', 'Count': count, 'Tasks': [task], 'EphemeralDisk': {'SizeMB': 10}}]}})
    while sum(alloc['ClientStatus'] == 'running' for alloc in local.ask('GET', '/v1/allocations')) < count:
        time.sleep(1)


def reached(unit):
    """Seconds from the begin of the kernel until UNIT was active; 0 if it is not."""
    said = subprocess.run(['systemctl', 'show', '--value', '-p', 'ActiveEnterTimestampMonotonic', unit],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    return int(said) / 1e6


def told(text, offset_s):
    """Seconds from the begin of the kernel until the time TEXT of the API."""
    whole = datetime.datetime.fromisoformat(re.sub(r'(\.\d+)?Z$', '+00:00', text)).timestamp()
    part = re.search(r'\.\d+', text)
    return whole + float(part[0] if part else 0) - offset_s


def sleeps(pid):
    with open('/proc/%d/syscall' % pid) as now:
        return now.read().startswith('230 ')  # clock_nanosleep


def spawned(count):
    """Seconds from the first of COUNT processes until all of them sleep."""
    begun = time.monotonic()
    waiting = [os.posix_spawn('/bin/sleep', ['sleep', '100000'], {}) for _ in range(count)]
    while waiting:
        waiting = [pid for pid in waiting if not sleeps(pid)]
        time.sleep(0.05)
    return time.monotonic() - begun


def look(count):
    """Says what this boot was like, when all tasks run."""
    seen = {'boot': reached('multi-user.target'), 'api': reached('cairn.service')}
    if seen['api'] == 0:
        seen['bare'] = spawned(count)
    else:
        import local
        offset_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        while True:
            allocs = local.ask('GET', '/v1/allocations')
            if all(alloc['ClientStatus'] == 'running' for alloc in allocs):
                break
            time.sleep(1)
        ticks, starts = os.sysconf('SC_CLK_TCK'), []
        for path in glob.glob(TASKS):
            with open(path) as procs, open('/proc/%s/stat' % procs.read().split()[0]) as stat:
                starts.append(int(stat.read().rpartition(')')[2].split()[19]) / ticks)
        seen.update(first=min(starts), last=max(starts), count=len(starts), told=max(
            told(state['StartedAt'], offset_s) for alloc in allocs
            for state in alloc['TaskStates'].values()))
    print('seen ' + json.dumps(seen))


# --- beside it ---

def boot(root, append, count):
    """What a boot of ROOT with the words APPEND was like; None if it has failed."""
    heard = []
    code = machine.boot(LOOK % (TREE, 2 * count, RUN, count), machine.BOOT_S + machine.TEST_S, 'v2',
                        root=root, append=append, hear=heard.append)
    seen = [json.loads(line[len('seen '):]) for line in heard if line.startswith('seen ')]
    if code != 0 or not seen:
        print(''.join(heard), end='')
        return None
    return seen[0]


def compare(count=COUNT):
    """COUNT tasks; 0 if there are figures, which are printed."""
    machine.make()
    with tempfile.TemporaryDirectory(prefix='cairn-boots-', dir=machine.PLACE) as place:
        disk = os.path.join(place, 'root.img')
        subprocess.run(['cp', '--sparse=always', os.path.join(machine.PLACE, 'root.img'), disk], check=True)
        more = ['-m', str(MEMORY_MB)]
        if machine.boot(INSTALL % (RUN, count), machine.BOOT_S + machine.TEST_S, 'v2',
                        root=machine.Root(disk, keeps=True, more=more)) != 0:
            return 1
        root, without, ours = machine.Root(disk, more=more), [], []
        for _ in range(ROUNDS):
            without.append(boot(root, WITHOUT, count))
            ours.append(boot(root, '', count))
            if None in (without[-1], ours[-1]):
                return 1
            print('without cairn %.1f s, and %.1f s for as many bare processes; with it the API answers after '
                  '%.1f s, the first of %d tasks runs after %.1f s, the last after %.1f s, which is told after '
                  '%.1f s' % (without[-1]['boot'], without[-1]['bare'], ours[-1]['api'], ours[-1]['count'],
                              ours[-1]['first'], ours[-1]['last'], ours[-1]['told']), flush=True)
    bare = statistics.median(each['boot'] for each in without)
    all_run = statistics.median(each['told'] for each in ours)
    spawning = statistics.median(each['bare'] for each in without)
    print('%d tasks run again %.1f s after the begin of a kernel that has booted after %.1f s without cairn: '
          '%+.1f s, of which bare processes alone take %.1f s'
          % (count, all_run, bare, all_run - bare, spawning))
    return 0


if __name__ == '__main__':
    (begin if sys.argv[1] == 'begin' else look)(int(sys.argv[2]))
