#!/usr/bin/env python3
"""Lifecycles as a user drives them: types of jobs, limits, restarts, signals, and what events say."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import (Node, Refused, events, milliseconds, raw_exec, restart_policy,  # noqa: E402
                 sleeper, tap, wait_for)


def job_of(kind, *tasks, **group):
    return {'ID': 'job', 'Name': 'job', 'Type': kind, 'Datacenters': ['dc1'],
            'TaskGroups': [{'Name': 'g', 'RestartPolicy': restart_policy(0), 'Tasks': list(tasks),
                            **group}]}


def allocs_of(node):
    return [alloc for alloc in node.allocs() if alloc['JobID'] == 'job']


def ended(node, status):
    return lambda: [alloc['ClientStatus'] for alloc in allocs_of(node)] == [status]


def messages(node, task):
    return [event['DisplayMessage'] for event in node.task('job', 'g', task)['Events']]


def a_system_job_has_one_alloc_which_is_not_rescheduled():
    node = Node()
    node.start()
    node.run_job(job_of('system', sleeper()))
    wait_for('the task', node.running)
    assert 'system' in node.cli('job', 'status', 'job').stdout
    os.kill(node.await_pid('sleep 1000'), 9)
    wait_for('its failure', ended(node, 'failed'))
    node.kill()
    node.start()
    assert node.get('/v1/job/job')['Status'] == 'running'
    assert ended(node, 'failed')()
    node.run_job(job_of('system', sleeper()))
    wait_for('another one, as it was asked for', node.running)
    assert len(allocs_of(node)) == 2
    try:
        node.run_job(job_of('system', sleeper(), Count=2))
        raise AssertionError('two allocs of a system job were accepted')
    except Refused as refused:
        assert 'one alloc of each group' in str(refused), refused
    node.finish()


def work_of_a_sysbatch_job_is_done_once_for_each_version():
    node = Node()
    node.start()
    node.run_job(job_of('sysbatch', raw_exec('t', 'exit 3')))
    wait_for('its end', ended(node, 'failed'))
    node.run_job(job_of('sysbatch', raw_exec('t', 'exit 3')))
    node.kill()
    node.start()
    assert ended(node, 'failed')()
    assert node.get('/v1/job/job')['Status'] == 'dead'
    node.run_job(job_of('sysbatch', raw_exec('t', 'exit 0')))
    wait_for('the new version', lambda: sorted(alloc['ClientStatus'] for alloc in
                                               allocs_of(node)) == ['complete', 'failed'])
    node.finish()


def a_run_is_over_when_its_time_is_also_while_nobody_watches():
    node = Node()
    node.start()
    node.run_job(job_of('batch', sleeper(),
                        raw_exec('last', 'exit 0', Lifecycle={'Hook': 'poststop'}),
                        MaxRunDuration=milliseconds(2000)))
    wait_for('the task', node.running)
    node.kill()
    over = time.monotonic() + 2.1
    wait_for('the end of its time, with nobody there', lambda: time.monotonic() > over)
    node.start()
    wait_for('its end', ended(node, 'complete'))
    alloc = node.alloc('job', 'g')
    assert alloc['ClientDescription'] == 'allocation exceeded max_run_duration', alloc
    assert 'allocation exceeded max_run_duration' in messages(node, 't'), messages(node, 't')
    assert node.task('job', 'g', 'last')['StartedAt'] in (None, '0001-01-01T00:00:00Z')
    assert node.get('/v1/job/job')['Status'] == 'dead'
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it runs a node with real tasks')
        sys.exit(77)
    sys.exit(tap([
        a_system_job_has_one_alloc_which_is_not_rescheduled,
        work_of_a_sysbatch_job_is_done_once_for_each_version,
        a_run_is_over_when_its_time_is_also_while_nobody_watches,
    ]))
