#!/usr/bin/env python3
"""Periodic jobs: launched at their times and by hand, over crashes, and shown."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, Refused, raw_exec, service, tap, wait_for  # noqa: E402

NEVER = '0 0 1 1 * 2099'  # not while this runs


def job(cron, script='echo "$NOMAD_JOB_ID,$NOMAD_JOB_PARENT_ID"', **fields):
    wanted = service(raw_exec('t', script))
    wanted.update(Type='batch', Periodic=dict({'Spec': cron}, **fields))
    return wanted


def started(wanted):
    node = Node()
    node.start()
    assert node.run_job(wanted)['EvalID'] == ''
    return node


def children(node):
    return [one['ID'] for one in node.get('/v1/jobs?prefix=job/periodic-')]


def it_is_launched_at_its_times():
    node = started(job('* * * * * * *'))
    wait_for('three launches', lambda: len(children(node)) >= 3)
    first = children(node)[0]
    wait_for('the end of it', lambda: node.get('/v1/job/' + first)['Status'] == 'dead')
    assert node.cli('alloc', 'logs', '-job', first).stdout == first + ',job\n'
    said = node.cli('job', 'status', 'job').stdout
    assert 'batch/periodic' in said and first in said and 'Next Periodic Launch' in said, said
    assert node.get('/v1/job/job/summary')['Children']['Dead'] >= 1
    assert node.allocs('job') == [] and node.get('/v1/job/job')['Status'] == 'running'
    assert node.get('/v1/jobs?prefix=job')[0]['Periodic'] is True
    node.cli('job', 'stop', '-detach', 'job')
    node.finish()


def each_time_is_launched_once_over_crashes():
    node = started(job('*/2 * * * * * *', 'true'))
    for _ in range(4):
        before = len(children(node))
        wait_for('another launch', lambda count=before: len(children(node)) > count)
        node.kill()
        node.start()
    for name in children(node):
        wait_for('the end of it', lambda one=name: node.get('/v1/job/' + one)['Status'] == 'dead')
        assert len(node.allocs(name)) == 1, name
    node.cli('job', 'stop', '-detach', 'job')  # nothing is launched while all is purged
    node.finish()


def it_is_launched_by_hand_though_it_runs():
    node = started(job(NEVER, 'exec sleep 1000', ProhibitOverlap=True, TimeZone='Europe/Berlin'))
    assert node.get('/v1/job/job')['NextPeriodicLaunch'] == '2098-12-31T23:00:00Z'
    plan = node.put('/v1/job/job/plan', {'Job': job(NEVER)})
    assert plan['NextPeriodicLaunch'] == '2099-01-01T00:00:00Z', plan
    said = node.cli('job', 'periodic', 'force', 'job').stdout
    assert len(children(node)) == 1 and 'running' in said, said
    wait_for('another second', lambda: node.cli('job', 'periodic', 'force', '-detach', 'job',
                                                check=False).returncode == 0)
    assert len(children(node)) == 2
    node.kill()
    node.start()
    assert len(children(node)) == 2
    node.finish()


def what_is_no_time_is_refused():
    node = Node()
    node.start()
    for fields, part in ((dict(cron='61 * * * *'), 'invalid cron spec'),
                         (dict(cron=NEVER, TimeZone='Mars/Base'), 'time zone "Mars/Base"'),
                         (dict(cron=NEVER, TimeZone='../../etc/passwd'), 'IANA time zone'),
                         (dict(cron=NEVER, Specs=['@daily']), 'only cron or crons')):
        try:
            node.run_job(job(**fields))
        except Refused as refusal:
            assert refusal.status == 400 and part in refusal.text, refusal.text
        else:
            raise AssertionError(part)
    assert node.get('/v1/jobs') == []
    node.finish()


sys.exit(tap([it_is_launched_at_its_times, each_time_is_launched_once_over_crashes,
              it_is_launched_by_hand_though_it_runs, what_is_no_time_is_refused]))
