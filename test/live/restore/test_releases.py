#!/usr/bin/env python3
"""Data directories of released versions, each as a killed daemon left it, restored by this one.

usage: test/live/restore/test_releases.py               tries all of them
       test/live/restore/test_releases.py make VERSION  keeps one of the daemon that was built, for a release

A digest goes by the names of fields that are not zero, so that what an older version has left stays as
it was made, whatever fields its records get.
"""
import gzip
import os
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, Node, exit_codes, raw_exec, restart_policy, service,  # noqa: E402
                 sleeper, tap, wait_for)

RELEASES = os.path.join(os.path.dirname(__file__), 'releases')


def job(name, kind, *tasks, **more):
    made = service(*tasks, **more)
    made['ID'] = made['Name'] = name
    made['Type'] = kind
    return made


def make(version):
    """A service with a sidecar, batch work that has ended well and badly, a task that waits to be
    started again, a job that was stopped."""
    node = Node()
    node.start()
    node.run_job(job('web', 'service', sleeper(),
                     raw_exec('beside', 'exec sleep 2000',
                              Lifecycle={'Hook': 'prestart', 'Sidecar': True})))
    node.run_job(job('done', 'batch', raw_exec('t', 'exit 0')))
    node.run_job(job('broken', 'batch', raw_exec('t', 'exit 7'), restart=restart_policy(0),
                     ReschedulePolicy=NO_RESCHEDULE))
    node.run_job(job('waits', 'service', raw_exec('t', 'exit 3'),
                     restart=restart_policy(5, 600000)))
    node.run_job(job('stopped', 'service', sleeper()))
    wait_for('the services', lambda: node.running(job='web') and node.running('beside', job='web')
             and node.running(job='stopped'))
    node.call('DELETE', '/v1/job/stopped')
    for name in ('done', 'broken', 'stopped'):
        wait_for('the end of ' + name, lambda: node.dead(job=name))
    wait_for('the restart delay',
             lambda: 'BACKOFF' in node.cli('journal', 'list', '-dir', node.data).stdout)
    node.kill()
    os.makedirs(RELEASES, exist_ok=True)
    with open(os.path.join(RELEASES, version + '.tar.gz'), 'wb') as out, \
            gzip.GzipFile(filename='', mode='wb', fileobj=out, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode='w') as archive:
        for name in ('alloc', 'client/journal/data.mdb', 'client/shim'):
            archive.add(os.path.join(node.data, name), name, filter=undated)
    node.close()


def undated(member):
    member.mtime = 0
    return member if member.isdir() or member.isreg() else None


def node_of(release):
    node = Node()
    os.makedirs(node.data, mode=0o711)
    with tarfile.open(os.path.join(RELEASES, release + '.tar.gz')) as archive:
        archive.extractall(node.data)
    return node


def stands(release):
    """Its history leads to its records, and worlds that begin with it come back from all crashes."""
    node = node_of(release)
    assert node.cli('journal', 'verify', '-dir', node.data).stdout.startswith('ok: ')
    said = node.cli('sim', '-from', node.data, '-seeds', '300', '-base', '1').stdout
    assert 'this version restores this node' in said, said
    node.close()


def lives_on(release):
    """A daemon takes it up: another boot, so that what ran starts again, and nothing else does."""
    node = node_of(release)
    plain = node.command
    node.command = lambda: plain() + ['-take-over']
    node.boot('11111111-2222-4333-8444-555555555555')
    node.start()
    wait_for('the service', lambda: node.running(job='web') and node.running('beside', job='web'))
    assert exit_codes(node.dead(job='done')) == [0]
    assert exit_codes(node.dead(job='broken')) == [7]
    assert node.alloc('broken', 'g')['ClientStatus'] == 'failed'
    assert node.dead(job='stopped')
    assert sorted(node.payloads().values()) == ['sleep 1000', 'sleep 2000'], node.payloads()
    node.finish()


def releases():
    found = sorted(name[:-len('.tar.gz')] for name in os.listdir(RELEASES)
                   if name.endswith('.tar.gz'))
    assert found
    return found


def every_journal_stands():
    for release in releases():
        stands(release)


def every_journal_lives_on():
    for release in releases():
        lives_on(release)


if sys.argv[1:2] == ['make'] and len(sys.argv) == 3:
    make(sys.argv[2])
else:
    sys.exit(tap([every_journal_stands, every_journal_lives_on]))
