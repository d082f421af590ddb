#!/usr/bin/env python3
"""What runs on a machine whose power may go at any moment: jobs are registered, changed, restarted,
stopped and collected without end, on a node whose data directory is all that the machine keeps.

It is begun on a machine that then waits, time and again, for its power to come: `ready` is said until
a line comes that tells what is different now.

Each line that is printed begins with what it is: `copies` (of the journal, and what journal verify
says of each), `fine` (journal verify before the daemon starts) or `damaged` (in its place: the journal
is refused now), `state` (of the node when it has come back), `do` (about to be asked), `ack` (the
answer has come), `restart`, `collect`, `compact` (about to be asked for, which changes nothing that is
known here), `copied` (the last one has made a copy), `done` (a batch job has ended, as the API says).
Whoever reads them knows what must hold after the next boot: test/vm/cuts.py.
"""
import contextlib
import fcntl
import glob
import json
import os
import random
import select
import shutil
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request

CAIRN, DATA, MARKS, COPIES = '/tree/build/cairn', '/srv/node', '/srv/marks', '/srv/copies'
JOURNAL = DATA + '/client/journal/data.mdb'
ADDRESS = 'http://127.0.0.1:4646'
RNDADDENTROPY, RNDRESEEDCRNG = 0x40085203, 0x5207  # linux/random.h
LIVING_MAX = 4  # services at once
PAGE, TRANSACTION_AT = 4096, 144  # in each of the two heads of a file of LMDB: the number of a commit


def say(kind, value):
    sys.stdout.write('%s %s\n' % (kind, json.dumps(value)))
    sys.stdout.flush()


def power_on():
    """Waits for the power; what it comes with.  Each time the same memory wakes up here, so that no id
    may have been made before, and the time is what it was: neither would be so in a boot."""
    subprocess.run([CAIRN, 'version'], stdout=subprocess.DEVNULL, check=True)  # it is read once
    while True:
        say('ready', [])
        if select.select([sys.stdin], [], [], 0.1)[0]:
            break
    told = json.loads(sys.stdin.readline())
    time.clock_settime(time.CLOCK_REALTIME, told['now'])
    chance = bytes.fromhex(told['chance'])
    with open('/dev/urandom', 'wb') as pool:
        fcntl.ioctl(pool, RNDADDENTROPY, struct.pack('ii', len(chance) * 8, len(chance)) + chance)
        fcntl.ioctl(pool, RNDRESEEDCRNG)
    return told


def ask(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(ADDRESS + path, data=data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
    except urllib.error.HTTPError as error:
        raise AssertionError('%s %s: %s' % (method, path, error.read().decode())) from None
    return json.loads(text) if text.strip() else None


def until(condition):
    while not condition():
        time.sleep(0.05)


def answers():
    try:
        return ask('GET', '/v1/status/leader')
    except (OSError, urllib.error.URLError):
        return False


def task(script, **fields):
    return dict({'Name': 't', 'Driver': 'raw_exec', 'KillTimeout': 1000000000,
                 'Config': {'command': '/bin/sh', 'args': ['-c', script]},
                 'Resources': {'CPU': 20, 'MemoryMB': 16},
                 'LogConfig': {'MaxFiles': 1, 'MaxFileSizeMB': 1}}, **fields)


def job(name, kind, script):
    return {'ID': name, 'Name': name, 'Type': kind, 'Datacenters': ['dc1'], 'TaskGroups': [
        {'Name': 'g', 'Count': 1, 'Tasks': [task(script)], 'EphemeralDisk': {'SizeMB': 10},
         'RestartPolicy': {'Attempts': 3, 'Delay': 1000000, 'Mode': 'fail',
                           'Interval': 3600000000000},
         'ReschedulePolicy': {'Attempts': 0, 'Unlimited': False}}]}


def marks(name):
    """How often the payload of a batch job has begun, by what it has written for good."""
    try:
        with open(os.path.join(MARKS, name)) as lines:
            return len(lines.read().splitlines())
    except FileNotFoundError:
        return 0


def payloads():
    """alloc -> how many generations of it have processes."""
    found = {}
    for path in glob.glob('/sys/fs/cgroup/cairn/*/*.t.*/cgroup.procs'):
        with contextlib.suppress(OSError), open(path) as procs:  # it may go just now
            if procs.read().strip():
                alloc = os.path.basename(os.path.dirname(path)).split('.')[0]
                found[alloc] = found.get(alloc, 0) + 1
    return found


def exits(alloc):
    """What the API says of each end of the alloc's task."""
    return [event.get('DisplayMessage', '') for state in (alloc.get('TaskStates') or {}).values()
            for event in state.get('Events') or [] if event['Type'] == 'Terminated']


def state():
    """When nothing is on its way any more: what the node says, and what there is."""
    def still(allocs):
        return all(alloc['ClientStatus'] in ('complete', 'failed', 'lost') or
                   (alloc['ClientStatus'] == 'running' and alloc['DesiredStatus'] == 'run' and
                    alloc['JobID'].startswith('s')) for alloc in allocs)
    while True:
        allocs = ask('GET', '/v1/allocations')
        found = payloads()
        if still(allocs) and len(found) == sum(alloc['ClientStatus'] == 'running'
                                               for alloc in allocs):
            break
        time.sleep(0.3)  # what is waited for wants the processors, too
    jobs = ask('GET', '/v1/jobs')
    with open('/proc/sys/kernel/random/boot_id') as lines:
        boot = lines.read().strip()
    return {'jobs': {each['ID']: {'stop': each['Stop'], 'status': each['Status']} for each in jobs},
            'allocs': [{'id': each['ID'], 'job': each['JobID'], 'status': each['ClientStatus'],
                        'exits': exits(each)} for each in allocs],
            'boot': boot, 'payloads': found, 'marks': {name: marks(name) for name in os.listdir(MARKS)}}


def work(first):
    """FIRST is a number that no job has had.  What an earlier boot has left running is stopped in its
    turn, too: with each boot there would be more of it, until no work had a place any more."""
    living = [each['ID'] for each in ask('GET', '/v1/jobs')
              if each['ID'].startswith('s') and not each['Stop']]
    batches, number = {}, first
    chance = random.Random()

    def change(what, name, call):
        say('do', [what, name])
        call()
        say('ack', [what, name])
    while True:
        number += 1
        name = 's%d' % number
        change('run', name, lambda: ask('PUT', '/v1/jobs', {'Job': job(
            name, 'service', 'exec sleep 100000')}))
        living.append(name)
        name = 'b%d' % number
        script = 'echo run >> %s/%s; sync %s/%s; exit %d' % (MARKS, name, MARKS, name, number % 3)
        change('run', name, lambda: ask('PUT', '/v1/jobs', {'Job': job(name, 'batch', script)}))
        batches[name] = number
        while len(living) > LIVING_MAX:
            old = living.pop(chance.randrange(len(living)))
            change('stop', old, lambda: ask('DELETE', '/v1/job/%s' % old))
        if chance.random() < 0.3:
            for alloc in ask('GET', '/v1/allocations'):
                if alloc['JobID'] == living[0] and alloc['ClientStatus'] == 'running':
                    say('restart', [])
                    ask('PUT', '/v1/client/allocation/%s/restart' % alloc['ID'], {})
        if chance.random() < 0.2:
            say('collect', [])
            ask('PUT', '/v1/system/gc')
        if chance.random() < 0.2:
            say('compact', [])
            subprocess.run([CAIRN, 'journal', 'compact', '-dir', DATA, '%s/%d' % (COPIES, number)],
                           stdout=subprocess.DEVNULL, check=True)
            say('copied', [number])
        for alloc in ask('GET', '/v1/allocations'):
            if alloc['JobID'] in batches and alloc['ClientStatus'] in ('complete', 'failed'):
                say('done', {'job': alloc['JobID'], 'status': alloc['ClientStatus'],
                             'marks': marks(alloc['JobID'])})
                del batches[alloc['JobID']]


def verified(directory):
    """What journal verify says of DIRECTORY: its code and its words."""
    done = subprocess.run([CAIRN, 'journal', 'verify', '-dir', directory], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return [done.returncode, done.stdout]


def commits(file):
    """The numbers of its last two commits, as the heads of FILE have them."""
    content = file.read(2 * PAGE)
    return [struct.unpack_from('<Q', content, at + TRANSACTION_AT)[0] for at in (0, PAGE)]


def damage():
    """The head that is not of the last commit is gone, as if a disk had lost it: the file is refused,
    and there is nothing in it that could not be read."""
    with open(JOURNAL, 'r+b') as file:
        numbers = commits(file)
        older = PAGE * numbers.index(min(numbers))
        file.seek(older)
        file.write(bytes(PAGE))
        file.flush()
        os.fsync(file.fileno())


def main():
    told = power_on()
    subprocess.run(told['repair'].split(), stdout=sys.stderr, check=False)
    if subprocess.run(told['mount'].split(), stdout=sys.stderr, check=False).returncode != 0:
        say('ended', ['the disk cannot be mounted'])
        return
    os.makedirs(MARKS, exist_ok=True)
    os.makedirs(COPIES, exist_ok=True)
    say('copies', {name: verified(os.path.join(COPIES, name)) for name in os.listdir(COPIES)})
    for name in os.listdir(COPIES):
        shutil.rmtree(os.path.join(COPIES, name))
    for path in glob.glob(os.path.join(os.path.dirname(JOURNAL), 'refused-*.mdb')):
        os.unlink(path)  # as who has looked at it does: hundreds of them have no room
    if os.path.exists(JOURNAL):
        if told['damage']:
            damage()
            say('damaged', [])
        else:
            say('fine', verified(DATA))
    with open('/run/cairn.hcl', 'w') as out:
        out.write('client { journal_max_events = %d }\n' % told['history'])
    with open('/srv/log', 'a') as log:
        daemon = subprocess.Popen([CAIRN, 'agent', '-config', '/run/cairn.hcl', '-data-dir', DATA],
                                  stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                  start_new_session=True)
    until(lambda: daemon.poll() is not None or answers())
    if daemon.poll() is not None:
        with open('/srv/log') as log:
            say('ended', [daemon.returncode, log.read()[-3000:]])
        return
    say('state', state())
    work(told['first'])


if __name__ == '__main__':
    main()
