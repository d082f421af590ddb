#!/usr/bin/env python3
"""A newer version of a service on a real node takes the place of the older one step by step, as
max_parallel and the health of its tasks say, wherever the daemon dies."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, Node, Refused, events, milliseconds, raw_exec,  # noqa: E402
                 restart_policy, tap, wait_for)


def job_of(seconds, count=3, parallel=1, healthy_ms=300, script=None):
    task = raw_exec('t', script or 'exec sleep %d' % seconds, KillTimeout=milliseconds(2000))
    group = {'Name': 'g', 'Count': count, 'Tasks': [task], 'RestartPolicy': restart_policy(0),
             'ReschedulePolicy': NO_RESCHEDULE,
             'Update': {'MaxParallel': parallel, 'MinHealthyTime': milliseconds(healthy_ms),
                        'HealthyDeadline': milliseconds(60000),
                        'ProgressDeadline': milliseconds(120000)}}
    return {'ID': 'job', 'Name': 'job', 'Type': 'service', 'Datacenters': ['dc1'],
            'TaskGroups': [group]}


def open_node():
    node = Node()
    node.start()
    return node


def deployment(node):
    return node.get('/v1/job/job/deployment')


def await_status(node, version, status):
    wait_for('version %d to be %s' % (version, status), lambda: (
        deployment(node)['JobVersion'], deployment(node)['Status']) == (version, status))


def versions(node):
    """Of the allocs that are to run."""
    return sorted(alloc['JobVersion'] for alloc in node.allocs('job')
                  if alloc['DesiredStatus'] == 'run' and alloc['ClientStatus'] != 'failed')


def counts(node):
    group = deployment(node)['TaskGroups']['g']
    return [group[name] for name in ('DesiredTotal', 'PlacedAllocs', 'HealthyAllocs',
                                     'UnhealthyAllocs')]


def each_one_is_healthy_before_the_next_is_replaced():
    node = open_node()
    node.run_job(job_of(1000))
    await_status(node, 0, 'successful')
    assert counts(node) == [3, 3, 3, 0], counts(node)
    answer = node.run_job(job_of(1001))
    own = node.get('/v1/evaluation/' + answer['EvalID'])['DeploymentID']
    assert deployment(node)['ID'] == own
    await_status(node, 1, 'successful')
    assert counts(node) == [3, 3, 3, 0], counts(node)
    assert versions(node) == [1, 1, 1], versions(node)
    assert [one['JobVersion'] for one in node.get('/v1/deployments')] == [1, 0]
    by = deployment(node)['TaskGroups']['g']['RequireProgressBy']
    assert not by.startswith('0001'), by
    shown = node.cli('deployment', 'status', own[:8]).stdout
    assert 'Progress Deadline' in shown and by[:19] + 'Z' in shown, shown
    assert node.get('/v1/deployment/' + own) == deployment(node)
    new = sorted(node.get('/v1/deployment/allocations/' + own), key=lambda one: one['CreateTime'])
    assert len(new) == 3, new
    for one, following in zip(new, new[1:]):  # whatever the load was
        assert one['DeploymentStatus']['Healthy'], one
        assert one['CreateIndex'] < following['CreateIndex']
        assert one['DeploymentStatus']['Timestamp'][:19] <= \
            node.get('/v1/allocation/' + following['ID'])['DeploymentStatus']['Timestamp'][:19]
    node.finish()


def one_that_fails_leaves_the_others():
    node = open_node()
    node.run_job(job_of(1000))
    await_status(node, 0, 'successful')
    before = await_runners(node, 3)
    node.run_job(job_of(1001, script='exit 3'))
    await_status(node, 1, 'failed')
    assert counts(node)[1:] == [1, 0, 1], counts(node)
    assert versions(node) == [0, 0], versions(node)
    assert len(runners(node) & before) == 2
    assert 'Failed due to unhealthy allocations' in node.cli('job', 'status', 'job').stdout
    node.kill()
    node.start()
    assert deployment(node)['StatusDescription'] == 'Failed due to unhealthy allocations'
    assert versions(node) == [0, 0], versions(node)
    node.run_job(job_of(1000))  # what it was before: who still runs is left alone
    await_status(node, 2, 'successful')
    assert versions(node) == [2, 2, 2], versions(node)
    assert len(runners(node) & before) == 2
    node.finish()


def wherever_the_daemon_dies_it_goes_on():
    node = open_node()
    node.run_job(job_of(1000))
    await_status(node, 0, 'successful')
    node.run_job(job_of(1001))
    for replaced in range(1, 4):
        wait_for('alloc %d' % replaced, lambda: versions(node).count(1) >= replaced)
        node.kill()
        node.start()
        assert len(versions(node)) == 3, versions(node)
    await_status(node, 1, 'successful')
    assert versions(node) == [1, 1, 1], versions(node)
    assert counts(node) == [3, 3, 3, 0], counts(node)
    node.put('/v1/allocation/%s/stop' % node.alloc('job', 'g')['ID'])
    wait_for('another one', lambda: versions(node) == [1, 1, 1])
    node.finish()


def tuned(job, attempts):
    """Another restart policy, which is taken in place."""
    job['TaskGroups'][0]['RestartPolicy'] = restart_policy(attempts)
    return job


def who_goes_on_in_place_is_healthy_by_the_newer_version_or_not():
    node = open_node()
    first = job_of(1000, count=2, healthy_ms=1000)
    node.run_job(first)
    await_status(node, 0, 'successful')
    before = await_runners(node, 2)
    node.run_job(tuned(job_of(1000, count=2, healthy_ms=6000), 3))
    assert deployment(node)['Status'] == 'running', deployment(node)
    assert counts(node) == [2, 2, 0, 0], counts(node)
    own = deployment(node)['ID']
    for alloc in node.allocs('job'):
        alloc = node.get('/v1/allocation/' + alloc['ID'])
        assert alloc['DeploymentID'] == own and alloc['DeploymentStatus'] is None, alloc
    node.kill()
    node.start()
    await_status(node, 1, 'successful')
    assert counts(node) == [2, 2, 2, 0], counts(node)
    assert runners(node) == before
    assert len(node.get('/v1/deployment/allocations/' + own)) == 2
    node.run_job(tuned(job_of(1000, count=2, healthy_ms=20000), 0))  # nothing starts again by it
    assert counts(node) == [2, 2, 0, 0], counts(node)
    os.kill(min(pid for pid, line in node.payloads().items() if line == 'sleep 1000'),
            signal.SIGKILL)
    await_status(node, 2, 'failed')
    assert counts(node) == [2, 2, 0, 1], counts(node)
    [ill] = [alloc for alloc in node.allocs('job') if alloc['ClientStatus'] == 'failed']
    ill = node.get('/v1/allocation/' + ill['ID'])
    assert ill['DeploymentStatus']['Healthy'] is False, ill['DeploymentStatus']
    assert events(ill['TaskStates']['t'])[-1] == 'Alloc Unhealthy', events(ill['TaskStates']['t'])
    assert len(runners(node) & before) == 1
    node.finish()


def who_takes_too_long_after_an_update_in_place_is_unhealthy():
    node = open_node()
    job = job_of(1000, count=1, healthy_ms=300)
    node.run_job(job)
    await_status(node, 0, 'successful')
    slow = tuned(job_of(1000, count=1, healthy_ms=10000), 10)
    updated(slow, HealthyDeadline=milliseconds(10500))
    node.run_job(slow)
    [(pid, _)] = await_runners(node, 1)
    time.sleep(1)  # begun anew, it cannot have lasted for 10 s by then
    os.kill(pid, signal.SIGKILL)
    wait_for('its verdict', lambda: counts(node)[3] == 1)
    alloc = node.alloc('job', 'g')
    assert alloc['ClientStatus'] in ('running', 'pending'), alloc['ClientStatus']
    node.finish()


def updated(job, **update):
    job['TaskGroups'][0]['Update'].update(update)
    return job


def runners(node):
    """The payloads of version 0, and no helper of the daemon's."""
    return {item for item in node.payloads().items() if item[1] == 'sleep 1000'}


def await_runners(node, count):
    """The same, when the shells of COUNT allocs have become them."""
    wait_for('what runs', lambda: len(runners(node)) == count)
    return runners(node)


def steer(node, verb, **body):
    own = deployment(node)['ID']
    return node.put('/v1/deployment/%s/%s' % (verb, own), dict(body, DeploymentID=own))


def canaries_run_beside_the_others_until_a_user_promotes_them():
    node = open_node()
    node.run_job(job_of(1000))
    await_status(node, 0, 'successful')
    before = await_runners(node, 3)
    assert len(before) == 3, before
    node.run_job(updated(job_of(1001), Canary=1))
    group = deployment(node)['TaskGroups']['g']
    assert (group['DesiredCanaries'], len(group['PlacedCanaries'])) == (1, 1), group
    canary = node.get('/v1/allocation/' + group['PlacedCanaries'][0])
    assert canary['DeploymentStatus']['Canary'], canary
    assert versions(node) == [0, 0, 0, 1], versions(node)
    node.kill()
    node.start()
    wait_for('a healthy canary', lambda: counts(node)[2] == 1)
    assert before <= runners(node)
    told = node.cli('job', 'promote', 'job').stdout
    assert 'promoted' in told, told
    await_status(node, 1, 'successful')
    assert versions(node) == [1, 1, 1], versions(node)
    assert group['PlacedCanaries'][0] in [one['ID'] for one in node.allocs('job')
                                          if one['DesiredStatus'] == 'run']
    listed = node.cli('deployment', 'list').stdout
    assert listed.count('completed successfully') == 2, listed
    node.finish()


def what_fails_takes_its_job_back():
    node = open_node()
    node.run_job(job_of(1000))
    await_status(node, 0, 'successful')
    before = await_runners(node, 3)
    node.run_job(updated(job_of(1001, script='exit 3'), AutoRevert=True))
    await_status(node, 2, 'successful')
    failed = node.get('/v1/job/job/deployments')[1]
    assert failed['StatusDescription'] == \
        'Failed due to unhealthy allocations - rolling back to job version 0', failed
    assert versions(node) == [2, 2, 2], versions(node)
    assert len(runners(node) & before) == 2
    kept = node.get('/v1/job/job/versions')['Versions']
    assert [(one['Version'], one['Stable']) for one in kept] == \
        [(2, True), (1, False), (0, True)], kept
    assert not [name for one in kept for name in one if name.startswith('cairn')]
    node.cli('job', 'revert', '-detach', 'job', '0')
    await_status(node, 2, 'successful')  # it says the same: nothing is new
    node.run_job(job_of(1002))
    await_status(node, 3, 'successful')
    node.cli('job', 'revert', '-detach', 'job', '0')
    await_status(node, 4, 'successful')
    node.finish()


def users_hold_it_and_end_it():
    node = open_node()
    node.run_job(job_of(1000))
    await_status(node, 0, 'successful')
    node.run_job(job_of(1001, healthy_ms=6000))
    steer(node, 'pause', Pause=True)
    wait_for('a healthy one', lambda: counts(node)[2] == 1)
    node.kill()
    node.start()
    assert deployment(node)['Status'] == 'paused'
    assert versions(node) == [0, 0, 1], versions(node)
    steer(node, 'pause', Pause=False)
    wait_for('the next one', lambda: versions(node) == [0, 1, 1])
    answer = steer(node, 'fail')
    assert answer['RevertedJobVersion'] is None, answer
    assert deployment(node)['StatusDescription'] == 'Deployment marked as failed'
    assert versions(node) == [0, 1, 1], versions(node)
    for verb, body in (('pause', {'Pause': True}), ('promote', {'All': True}), ('fail', {})):
        try:
            steer(node, verb, **body)
            raise AssertionError(verb)
        except Refused as refused:
            assert refused.status == 400, refused
            assert 'terminal deployment' in refused.text, refused
    node.finish()


def a_user_says_who_is_healthy():
    node = open_node()
    node.run_job(job_of(1000, count=2))
    await_status(node, 0, 'successful')
    node.run_job(updated(job_of(1001, count=2), HealthCheck='manual'))
    own = '/v1/deployment/allocations/' + deployment(node)['ID']
    first, = [one['ID'] for one in node.get(own)]
    wait_for('it to run', lambda: node.get('/v1/allocation/' + first)['ClientStatus'] == 'running')
    for body, words in (({}, 'at least one'),
                        ({'HealthyAllocationIDs': ['x']}, 'unknown alloc "x"'),
                        ({'UnhealthyAllocationIDs': 7}, 'at least one')):
        try:
            steer(node, 'allocation-health', **body)
            raise AssertionError('%s is not refused' % body)
        except Refused as refused:
            assert refused.status == 400 and words in refused.text, refused
    node.kill()
    node.start()
    assert counts(node) == [2, 1, 0, 0], counts(node)
    steer(node, 'allocation-health', HealthyAllocationIDs=[first])
    wait_for('the second', lambda: counts(node)[1:3] == [2, 1])
    second, = [one['ID'] for one in node.get(own) if one['ID'] != first]
    steer(node, 'allocation-health', UnhealthyAllocationIDs=[second])
    await_status(node, 1, 'failed')
    assert counts(node) == [2, 2, 1, 1], counts(node)
    node.kill()
    node.start()
    told = node.get('/v1/allocation/' + second)['DeploymentStatus']
    assert told['Healthy'] is False, told
    try:
        steer(node, 'allocation-health', HealthyAllocationIDs=[second])
        raise AssertionError('it is over')
    except Refused as refused:
        assert 'terminal deployment' in refused.text, refused
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it runs a node with real tasks')
        sys.exit(77)
    sys.exit(tap([
        each_one_is_healthy_before_the_next_is_replaced,
        one_that_fails_leaves_the_others,
        wherever_the_daemon_dies_it_goes_on,
        who_goes_on_in_place_is_healthy_by_the_newer_version_or_not,
        who_takes_too_long_after_an_update_in_place_is_unhealthy,
        canaries_run_beside_the_others_until_a_user_promotes_them,
        what_fails_takes_its_job_back,
        users_hold_it_and_end_it,
        a_user_says_who_is_healthy,
    ]))
