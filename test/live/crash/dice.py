#!/usr/bin/env python3
"""Dice: what may happen to a node happens to it in an order that nobody chose.

A node gets jobs with everything on them, and whatever dice say: newer versions, stops, restarts, signals;
its daemon, its shims and its payloads are killed or stand still, the machine boots, somebody unmounts what
is in use.  Then all jobs are stopped.  Nothing may be stuck, and of nothing may anything be left.

usage: test/live/crash/dice.py [--volumes] [--steps N] [SEED...]    three that nobody has seen

With --volumes the jobs share what a storage plugin mounts that counts its publishes (plugin.py).  The same
seed draws the same steps, and not the same moments: what fails is told with its steps, and its journal is
kept."""
import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, Refused, milliseconds, raw_exec, restart_policy, service, wait_for  # noqa: E402
from storage import Storage, job  # noqa: E402

NAMES = ['a', 'b', 'c', 'd']
SHARED = 'multi-node-multi-writer'
TRAPPING = 'trap "exit 0" TERM; while :; do sleep 0.2; done'
SETTLES_S = 120  # a plugin's call that was given up is waited out for 45 of them


class Run:
    """One node, and the dice for it."""
    kinds = ['register'] * 5 + ['stop', 'stop', 'purge', 'kill', 'kill', 'kill', 'terminate', 'kill_shim',
                                'halt_shim', 'kill_payload', 'restart', 'signal', 'boot', 'collect']

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.steps, self.boots = [], 0
        self.begin()

    def begin(self):
        self.node = Node(config='plugin "raw_exec" {\n  config {\n    enabled = true\n  }\n}\n')
        os.chmod(self.node.dir, 0o711)
        self.node.start()

    def chance(self, of):
        return self.dice.random() < of

    # --- what may happen ---

    def task(self, name, script, **fields):
        driver = 'exec' if self.chance(0.7) else 'raw_exec'
        return dict(raw_exec(name, script, **fields), Driver=driver, KillTimeout=milliseconds(300))

    def a_job(self, name):
        made = service(self.task('main', TRAPPING, Leader=True, Templates=[{
            'EmbeddedTmpl': '{{ env "NOMAD_ALLOC_ID" }} %d' % len(self.steps), 'DestPath': 'local/x',
            'ChangeMode': self.dice.choice(['restart', 'noop'])}]), restart=restart_policy(3, 200))
        group = made['TaskGroups'][0]
        for one in (self.task('before', 'sleep 0.1', Lifecycle={'Hook': 'prestart'}),
                    self.task('beside', 'exec sleep 1000', Lifecycle={'Hook': 'prestart', 'Sidecar': True}),
                    self.task('behind', 'sleep 0.2', Lifecycle={'Hook': 'poststop'})):
            if self.chance(0.6):
                group['Tasks'].append(one)
        if self.chance(0.6):
            group['Networks'] = [{'Mode': 'host', 'DynamicPorts': [{'Label': 'www'}]}]
        group['Count'] = self.dice.choice([1, 1, 2, 3])
        group['ShutdownDelay'] = milliseconds(self.dice.choice([0, 0, 300]))
        group['EphemeralDisk'] = {'SizeMB': 300, 'Sticky': self.chance(0.5)}
        group['Update'] = {'MaxParallel': 1, 'MinHealthyTime': milliseconds(100),
                           'HealthyDeadline': milliseconds(5000),
                           'ProgressDeadline': milliseconds(10000),
                           'Canary': self.dice.choice([0, 0, 1])}
        return dict(made, ID=name, Name=name)

    def register(self):
        self.node.run_job(self.a_job(self.dice.choice(NAMES)))

    def stop(self, how=''):
        self.node.call('DELETE', '/v1/job/%s%s' % (self.dice.choice(NAMES), how))

    def purge(self):
        self.stop('?purge=true')

    def back(self):
        time.sleep(self.dice.choice([0, 0.3, 1]))
        self.node.start()

    def kill(self):
        self.node.kill()
        self.back()

    def terminate(self):
        self.node.terminate()
        self.back()

    def send(self, pids, number):
        pids = sorted(pids)
        if pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.dice.choice(pids), number)

    def kill_shim(self):
        self.send(self.node.shims(), signal.SIGKILL)

    def halt_shim(self):
        self.send(self.node.shims(), signal.SIGSTOP)

    def kill_payload(self):
        self.send(self.node.payloads(), signal.SIGKILL)

    def ask_one(self, verb, body):
        running = [alloc['ID'] for alloc in self.node.get('/v1/allocations')
                   if alloc['ClientStatus'] == 'running' and alloc['JobID'] in NAMES]
        if running:
            self.node.put('/v1/client/allocation/%s/%s' % (self.dice.choice(running), verb), body)

    def restart(self):
        self.ask_one('restart', self.dice.choice([{}, {'AllTasks': True}]))

    def signal(self):
        self.ask_one('signal', {'Signal': 'SIGUSR1'})

    def boot(self):
        self.boots += 1
        self.node.reboot('%08d-2222-4333-8444-555555555555' % self.boots)
        self.node.start()

    def collect(self):
        self.node.put('/v1/system/gc', {})

    # --- the run ---

    def step(self):
        kind = self.dice.choice(self.kinds)
        self.steps.append(kind)
        try:
            getattr(self, kind)()
        except Refused as answer:  # what is not there, or is under way already
            self.steps[-1] += ' (%s)' % str(answer)[:60]
        time.sleep(self.dice.choice([0, 0, 0.1, 0.5, 2]))

    def is_settled(self):
        return not [alloc for alloc in self.node.get('/v1/allocations') if alloc['JobID'] in NAMES
                    and alloc['ClientStatus'] in ('running', 'pending')]

    def settle(self):
        for name in NAMES:
            with contextlib.suppress(Refused):
                self.node.call('DELETE', '/v1/job/' + name)
        wait_for('all to end', self.is_settled, SETTLES_S)

    def finish(self):
        self.node.finish()

    def give_up(self):
        """Where what is to be looked at is kept."""
        self.node.kill()
        kept = tempfile.mkdtemp(prefix='cairn-dice-')
        shutil.copytree(os.path.join(self.node.data, 'client', 'journal'), os.path.join(kept, 'journal'))
        shutil.copy(self.node.output, kept)
        self.node.close()
        return kept


class VolumesRun(Run):
    kinds = ['register'] * 4 + ['stop', 'stop', 'purge', 'kill', 'kill', 'kill_plugin', 'kill_both', 'unmount',
                                'restart', 'boot']

    def begin(self):
        self.storage = Storage('one', 'two')
        self.node = self.storage.node
        open(self.storage.path('counted'), 'w').close()
        self.storage.run_plugin()
        for disk in ('one', 'two'):
            self.storage.register(disk, SHARED)

    def a_job(self, name):
        disk = 'one' if NAMES.index(name) % 2 else 'two'
        return job('exec sleep %d' % self.dice.randrange(100, 2000), disk, access=SHARED, name=name)

    def kill_plugin(self):
        pid = self.storage.plugin_pid()
        self.send([] if pid is None else [pid], signal.SIGKILL)

    def kill_both(self):
        self.kill_plugin()
        self.kill()

    def unmount(self):
        mounts = sorted(mount for mount in self.node.mounts() if '/per-alloc/' in mount)
        if mounts:
            subprocess.run(['nsenter', '-m', '-t', str(self.node.process.pid), 'umount', '-l',
                            self.dice.choice(mounts)], check=False)

    def is_settled(self):
        return super().is_settled() and not [
            volume for volume in self.node.get('/v1/volumes?type=csi')
            if volume['CurrentReaders'] + volume['CurrentWriters'] > 0]

    def finish(self):
        self.storage.finish()

    def give_up(self):
        kept = super().give_up()
        shutil.rmtree(self.storage.dir)
        return kept


def run(kind, seed, count):
    """What went wrong, None: nothing."""
    one = kind(seed)
    try:
        for _ in range(count):
            one.step()
        one.settle()
        one.finish()
        return None
    except Exception as error:  # whatever it was: told with its steps, and the next seed has its turn
        return '%s: %s\nsteps: %s\nkept in %s' % (type(error).__name__, error, ', '.join(one.steps),
                                                  one.give_up())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--volumes', action='store_true', help='jobs share volumes of a plugin')
    parser.add_argument('--steps', type=int, default=60)
    parser.add_argument('seeds', nargs='*', type=int)
    options = parser.parse_args()
    failed = 0
    for seed in options.seeds or random.sample(range(1, 1 << 31), 3):
        begun = time.monotonic()
        wrong = run(VolumesRun if options.volumes else Run, seed, options.steps)
        failed += wrong is not None
        print('%s - seed %d in %.0f s%s' % ('ok' if wrong is None else 'not ok', seed,
                                            time.monotonic() - begun,
                                            '' if wrong is None else '\n# ' + wrong.replace('\n', '\n# ')),
              flush=True)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
