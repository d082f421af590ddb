"""Power cuts: the scenario of scenario.py on a machine whose power goes at random moments, with a
disk that then forgets what was not flushed, and an audit after each boot.  And the same without the
boots: the disk just before and just after each flush of one run, looked at from outside."""
import concurrent.futures
import contextlib
import glob
import os
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time

import machine
from disk import pieces
from power import BOOT_S, FILE_SYSTEMS, HISTORY, Bench, Wrong
from scenario import commits

CUTS_ON, MOMENTS_ON = tuple(FILE_SYSTEMS), ('ext4', 'ext4-data')  # which can be read from outside
FIRST_STEP = 1000  # jobs of one boot never meet the next one's
DISKS_KEPT, BLOCK = 4, 1 << 16
DAMAGES = 0.15  # of all boots: to the journal, just before it is opened
ANSWER_S = 5  # is long for one
WORLDS, SEEDS = 3, 20  # in how many moments crashes are tried at each point, and worlds begin
AHEAD = 8  # copies of a disk that nobody has looked at yet
HISTORY_SHORT = 100  # events: each commit forgets as many as it makes


class Known:
    """What a node has said that it did, and what it was asked; what must hold of its next state."""

    def __init__(self):
        self.acked, self.asked, self.done, self.boots = {}, {}, {}, set()
        self.copied, self.is_damaged = set(), False

    def hear(self, kind, value):
        if kind == 'do':
            self.asked[value[1]] = value[0]
        elif kind == 'ack':
            self.acked[value[1]] = value[0]
            self.asked.pop(value[1], None)
        elif kind == 'done':
            self.done[value['job']] = value
        elif kind == 'copied':
            self.copied.add(str(value[0]))
        elif kind == 'copies':
            self.check_copies(value)
        elif kind == 'damaged':
            self.is_damaged = True
        elif kind == 'fine' and value[0] != 0 and not self.is_damaged:
            raise Wrong('journal verify: %s' % value[1][:2000])
        elif kind == 'state':
            self.is_damaged = False
            self.check(value)

    def check_copies(self, copies):
        for name in self.copied - set(copies):
            raise Wrong('copy %s of the journal was made and is not there' % name)
        for name, (code, text) in copies.items():
            # Half a copy is none, and says so: its file is not whole, or its directory empty.
            is_half = code == 1 and ('open the journal' in text or 'no journal in' in text)
            if code != 0 and (name in self.copied or not is_half):
                raise Wrong('a copy of the journal: %d, %s' % (code, text[:2000]))
        self.copied = set()

    def check_job(self, name, what, jobs, asked):
        found = jobs.get(name)
        if what == 'run' and found is None:
            # A batch job that has ended, and a collection, and it may be gone.
            if name not in self.done:
                raise Wrong('job %s was acknowledged and is not there' % name)
        elif what == 'run' and found['stop'] and asked.get(name) != 'stop':
            raise Wrong('job %s was stopped by nobody' % name)
        elif what == 'stop' and found is not None and not found['stop']:
            raise Wrong('the stop of %s was acknowledged and is not there' % name)

    def check(self, state):
        if state['boot'] in self.boots:
            raise Wrong('two boots have one id')
        self.boots.add(state['boot'])
        jobs, payloads = state['jobs'], state['payloads']
        for name, what in self.acked.items():
            self.check_job(name, what, jobs, self.asked)
        for alloc in state['allocs']:
            self.check_alloc(alloc, jobs, payloads.pop(alloc['id'], 0))
        if payloads:
            raise Wrong('processes of allocs that nobody knows: %r' % payloads)
        for name, done in self.done.items():
            if state['marks'].get(name, 0) != done['marks']:
                raise Wrong('%s had ended and ran again: %r, %r' % (name, done, state['marks']))
        for name in jobs:
            if name not in self.acked and name not in self.asked:
                raise Wrong('nobody asked for job %s' % name)
        self.asked = {}  # what became of it is known now
        for name, found in jobs.items():
            self.acked[name] = 'stop' if found['stop'] else 'run'

    def check_alloc(self, alloc, jobs, running):
        name = alloc['job']
        if running > 1 or running != (alloc['status'] == 'running'):
            raise Wrong('%d payloads of a %s alloc of %s' % (running, alloc['status'], name))
        if name[0] == 's' and alloc['status'] == 'running' and name in jobs and jobs[name]['stop']:
            raise Wrong('%s was stopped and runs' % name)
        if name[0] == 'b':
            for text in alloc['exits']:
                code = re.match(r'Exit Code: (\d+)', text)
                if code and int(code.group(1)) != int(name[1:]) % 3 and 'unknown' not in text.lower():
                    raise Wrong('an exit of %s was made up: %r' % (name, alloc))


class Moment:
    """When the power goes: at once or some time after the node has said something so often, or after so
    many writes.  Right behind what it has acknowledged, between question and answer, within a commit,
    which may also trim the history, a restart, a collection or the making of a compact copy, on its way
    back, within a salvage."""

    def __init__(self, chance, is_first, disk):
        kinds = ('ack', 'ack', 'do', 'do', 'done', 'restart', 'collect', 'compact')
        self.is_damage = not is_first and chance.random() < DAMAGES
        self.history = chance.choice((HISTORY_SHORT, HISTORY))
        self.kind = 'damaged' if self.is_damage else chance.choice(
            kinds if is_first else kinds + ('fine',))
        self.count = chance.randrange(1, {'ack': 20, 'do': 20, 'done': 6, 'restart': 4}.get(self.kind, 2))
        self.writes = chance.choice((0, chance.randrange(1, 30)))
        self.delay_s = chance.choice((0, chance.uniform(0, 2)))
        self.name = '%s %d%s%s' % (self.kind, self.count,
                                   ' and %d writes' % self.writes if self.writes else '',
                                   ', trimmed' if self.history == HISTORY_SHORT else '')
        self.disk, self.cut, self.timer = disk, None, None

    def hear(self, kind):
        self.count -= kind == self.kind
        if kind != self.kind or self.count != 0:
            return
        if self.writes > 0:
            self.disk.stop_after(self.writes, self.cut)
        else:
            self.timer = threading.Timer(self.delay_s, self.cut)
            self.timer.start()

    def over(self):
        if self.timer is not None:
            self.timer.cancel()


def is_hung(console):
    """Whether the kernel of a machine says that nothing but itself kept its processors."""
    with open(console, encoding='utf-8', errors='replace') as file:
        return 'BUG: soft lockup' in file.read()


def one_boot(bench, known, first, chance):
    """Boots, audits what the last cut has left, works until the power goes; what it was like."""
    begun, disk = time.monotonic(), bench.disk
    moment = Moment(chance, not known.boots, disk)
    guest = bench.power_on(first, moment.is_damage, moment.history)
    moment.cut = guest.process.kill
    told, up_s = {'ack': 0, 'done': 0}, None
    try:
        for what, value in guest.lines():
            if what == 'ended':
                raise Wrong('the daemon did not start: %r' % value)
            known.hear(what, value)
            if what == 'state':
                up_s = time.monotonic() - begun
            told[what] = told.get(what, 0) + 1
            moment.hear(what)
    finally:
        moment.over()
        guest.cut()
    if moment.count > 0 and is_hung(bench.console):
        moment.name = 'a kernel that hung'  # the emulator's fault: its power is cut as any other's
    elif moment.count > 0:
        raise Wrong('it %s, while %r was asked for, after %.0f s' % (
            'did not come back' if up_s is None else 'ended by itself, or said nothing more',
            known.asked, time.monotonic() - begun))
    sectors, lost = disk.cut(chance)
    return 'at %s, %s, %d acknowledged, %d done, %d of %d sectors lost' % (
        moment.name, 'up after %.0f s' % up_s if up_s else 'on its way back', told['ack'],
        told['done'], lost, sectors)


def last_words(console, image, lines=40):
    """What the guest and its daemon have said last, as lines that are no result."""
    with open(console, errors='replace') as said:
        texts = {'console': said.read()}
    texts['log of the daemon'] = subprocess.run(
        ['debugfs', '-R', 'cat /log', image], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, errors='replace', check=False).stdout
    return ''.join('# %s:\n%s' % (name, ''.join('#   %s\n' % line.rstrip()
                                                for line in text.splitlines()[-lines:]))
                   for name, text in texts.items())


def put_disk(path, content):
    """Into the file PATH, which takes no room for what was never written."""
    with open(path, 'wb') as out:
        for at in range(0, len(content), BLOCK):
            block = content[at:at + BLOCK]
            if any(block):
                out.seek(at)
                out.write(block)
        out.truncate(len(content))


def keep(seen):
    """The disk as the machine saw it, in a file, of which the newest few are kept; its name."""
    kept = sorted(glob.glob(os.path.join(machine.PLACE, 'wrong-*.img')), key=os.path.getmtime)
    for path in kept[:1 - DISKS_KEPT]:
        with contextlib.suppress(FileNotFoundError):  # another machine does the same
            os.unlink(path)
    path = os.path.join(machine.PLACE, 'wrong-%d.img' % time.time_ns())
    put_disk(path, seen)
    return path


class Count:
    """The numbers of results that come from several threads, until all of it is over: who interrupts it
    ends the machines, too, and that is no result."""

    def __init__(self):
        self.lock, self.number, self.is_over = threading.Lock(), 0, False

    def tell(self, word, text):
        with self.lock:
            if not self.is_over:
                self.number += 1
                print('%s %d - power cut%s' % (word, self.number, text), flush=True)


def cut_on(kind, share, seed, bench, told):
    """SHARE cuts with a disk of KIND, each of them looked at by the boot after it; what was wrong is said,
    and another node goes on.  How many cuts were wrong."""
    chance, known = random.Random(seed), Known()
    boots, number, wrongs, last = 0, 0, 0, None
    bench.take_disk(kind)
    while number < share and not told.is_over:
        try:
            said = one_boot(bench, known, boots * FIRST_STEP, chance)
        except Wrong as wrong:
            if told.is_over:
                break
            number, wrongs, kept = number + 1, wrongs + 1, keep(bench.disk.seen)
            told.tell('not ok', ': %s\n# the cut before: %s\n# disk: %s, again: ./dev vm cuts %d %d %s\n%s'
                      % (wrong, last, kept, share, seed, kind, last_words(bench.console, kept)))
            known, said = Known(), None
            bench.take_disk(kind)
        else:
            if last is not None:
                number += 1
                told.tell('ok', ' # %s, %s' % (kind, last))
        boots, last = boots + 1, said
    return wrongs


def cuts(count, seed, kinds, machines):
    """COUNT cuts and boots on each of the file systems KINDS, on so many MACHINES at once; 0 if nothing was
    wrong."""
    machine.make()
    machines = max(1, min(machines, count))
    told, wrongs = Count(), 0
    machine.accelerator()  # which is tried out once
    with contextlib.ExitStack() as held, concurrent.futures.ThreadPoolExecutor(machines) as all_machines:
        places = [held.enter_context(tempfile.TemporaryDirectory(prefix='cairn-cuts-', dir=machine.PLACE))
                  for _ in range(machines)]
        benches = list(all_machines.map(lambda place: Bench(kinds[0], place, noted=False), places))
        for kind in kinds:
            machine.say('%d power cuts, %s, seed %d' % (count, kind, seed))
            begun = time.monotonic()
            shares = all_machines.map(
                lambda at: cut_on(kind, count * (at + 1) // machines - count * at // machines, seed + at,
                                  benches[at], told), range(machines))
            try:
                wrong = sum(shares)
            except BaseException:
                told.is_over = True
                for bench in benches:
                    bench.cut()
                raise
            machine.say('%d cuts in %.0f s, %d of them wrong' % (count, time.monotonic() - begun, wrong))
            wrongs += wrong
    print('1..%d' % (count * len(kinds)))
    return 1 if wrongs else 0


# --- every moment of one run ---

def journal_of(image, place):
    """The journal's file on IMAGE, after the file system has looked through its own log; None if there
    is none yet."""
    out = os.path.join(place, 'journal')
    looked = subprocess.run(['e2fsck', '-fy', image], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)
    if looked.returncode not in (0, 1):
        raise Wrong('the file system is damaged:\n' + looked.stdout)
    os.mkdir(out)
    data = os.path.join(out, 'data.mdb')
    subprocess.run(['debugfs', '-R', 'dump /node/client/journal/data.mdb ' + data, image],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return out if os.path.exists(data) and os.path.getsize(data) > 0 else None


def cairn(*arguments):
    done = subprocess.run([os.path.join(machine.BUILD, 'cairn'), *arguments], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise Wrong('cairn %s: status %d\n%s' % (' '.join(arguments), done.returncode, done.stdout))
    return done.stdout


def check_moment(journal, acked, crashes):
    """What was acknowledged before this moment is in JOURNAL, which leads to its own records, and with
    which a node comes back from a boot; CRASHES: and from any of them, at each point."""
    if not acked:
        return  # there may be no journal yet, or half of one
    if journal is None:
        raise Wrong('no journal, and %r was acknowledged' % acked)
    cairn('journal', 'verify', '-dir', journal)
    states = {name: state for state, name in re.findall(
        r'^alloc +\S+ +(\S+) .* ([sb]\d+)\.g\[0\]$',
        cairn('journal', 'list', '-dir', journal), flags=re.M)}
    for name, what in acked.items():
        if what == 'run' and name[0] == 's' and name not in states:
            raise Wrong('job %s was acknowledged and is not there' % name)
        if what == 'stop' and states.get(name) in ('PENDING', 'RUNNING'):
            raise Wrong('the stop of %s was acknowledged, and it is %s' % (name, states[name]))
    cairn('sim', '-from', journal, '-away', 'reboot')
    if crashes:
        cairn('sim', '-from', journal, '-seeds', str(SEEDS), '-base', '1')


def look(place, acked, crashes):
    """At the copy of a disk in PLACE, which is gone then; how many commits its journal has had."""
    try:
        journal = journal_of(os.path.join(place, 'disk.img'), place)
        check_moment(journal, acked, crashes)
        if journal is None:
            return 0
        with open(os.path.join(journal, 'data.mdb'), 'rb') as file:
            return max(commits(file))
    finally:
        shutil.rmtree(place)


def record(acks, bench):
    """Runs the scenario until ACKS answers have come: (moment among the disk's notes, what, job)."""
    guest, heard = bench.power_on(0, limit_s=BOOT_S + acks * ANSWER_S), []
    try:
        for said, value in guest.lines():
            if said == 'ended':
                raise Wrong('the daemon did not start: %r' % value)
            if said == 'ack':  # what it stands on was flushed before it was said
                heard.append((len(bench.disk.notes), value[0], value[1]))
                if len(heard) == acks:
                    return heard
    finally:
        guest.cut()
    raise Wrong('it ended after %d answers; its console is %s' % (len(heard), bench.console))


def some(writes, whole, chance):
    return [piece for offset, data in writes for piece in pieces(offset, data, whole)
            if chance.random() < 0.5]


def write(out, writes):
    for offset, data in writes:
        out.seek(offset)
        out.write(data)
    out.flush()


def disks(begun, notes, chosen, whole, chance, place):
    """The disk before and behind each flush of CHOSEN, which are moments of NOTES, one after the other:
    (moment, "before" or "behind", a directory with a copy of it)."""
    image, waiting = os.path.join(place, 'disk.img'), []
    put_disk(image, begun)
    with open(image, 'r+b') as out:
        for at, note in enumerate(notes):
            if note is not None:
                waiting.append(note)
                continue
            if at in chosen:
                write(out, some(waiting, whole, chance))
                yield at, 'before', copy_of(image, place)
            write(out, waiting)
            if at in chosen:
                yield at, 'behind', copy_of(image, place)
            waiting = []


def copy_of(image, place):
    directory = tempfile.mkdtemp(dir=place)
    # What the image takes no room for is not read either.
    subprocess.run(['cp', '--sparse=always', image, directory], check=True)
    return directory


def look_at(looks, flushes):
    """Waits for LOOKS, (moment, side, what comes of it); how many were wrong, and the most commits."""
    wrongs, most = 0, 0
    for at, side, coming in looks:
        try:
            most = max(most, coming.result())
        except Wrong as wrong:
            wrongs += 1
            print('not ok %d - %s flush %d of %d: %s' % (wrongs, side, flushes.index(at), len(flushes),
                                                         wrong), flush=True)
    return wrongs, most


def moments(acks, most, seed, kind):
    """Each flush of a run with ACKS answers, MOST of them at most: as the last thing that reached the
    disk, and as what did not happen any more, when of that which waits some sectors are there."""
    machine.make()
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix='cairn-moments-', dir=machine.PLACE) as place, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as eyes:
        bench = Bench(kind, place)
        begun, started = bytes(bench.disk.platter), time.monotonic()
        heard = record(acks, bench)
        notes = bench.disk.notes
        flushes = [at for at, note in enumerate(notes) if note is None]
        chosen = sorted(flushes if len(flushes) <= most else chance.sample(flushes, most))
        machine.say('%d answers, %d writes, %d flushes in %.0f s, of which %d are looked at; %s, seed %d'
                    % (acks, len(notes) - len(flushes), len(flushes), time.monotonic() - started,
                       len(chosen), kind, seed))
        special = chosen[::-max(1, len(chosen) // WORLDS)][:WORLDS]
        looks, started = [], time.monotonic()
        for at, side, copy in disks(begun, notes, set(chosen), bench.system.whole, chance, place):
            # What was acknowledged by now stands on an earlier flush.
            acked = {name: what for when, what, name in heard if when <= at}
            looks.append((at, side, eyes.submit(look, copy, acked, at in special and side == 'behind')))
            if len(looks) > AHEAD:
                concurrent.futures.wait([looks[-AHEAD][2]])
        wrongs, made = look_at(looks, flushes)
    machine.say('%d disks in %.0f s, %d of them wrong' % (len(looks), time.monotonic() - started, wrongs))
    if wrongs == 0:
        print('ok 1 - every moment around flushes # %s, %d flushes looked at, %d commits, %d answers'
              % (kind, len(chosen), made, acks))
    print('1..%d' % max(wrongs, 1))
    return 1 if wrongs else 0
