#!/usr/bin/env python3
"""A node that is drained, as an operator drives it: what ends, what waits, and what a crash changes."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, Refused, raw_exec, sleeper, tap, wait_for  # noqa: E402


def job_of(name, kind, task):
    return {'ID': name, 'Name': name, 'Type': kind, 'Datacenters': ['dc1'],
            'TaskGroups': [{'Name': 'g', 'Tasks': [task]}]}


def live(node, job):
    return [alloc['ID'] for alloc in node.allocs()
            if alloc['JobID'] == job and alloc['ClientStatus'] in ('pending', 'running')]


def this(node):
    return node.get('/v1/node/%s' % node.get('/v1/nodes')[0]['ID'])


def a_node_that_is_not_eligible_gets_nothing_and_keeps_what_it_has():
    node = Node()
    node.start()
    node.run_job(job_of('before', 'service', sleeper()))
    wait_for('the task', lambda: live(node, 'before'))
    said = node.cli('node', 'eligibility', '-disable', '-self').stdout
    assert 'scheduling eligibility set: ineligible for scheduling' in said, said
    node.run_job(job_of('after', 'service', sleeper()))
    node.kill()
    node.start()
    assert this(node)['SchedulingEligibility'] == 'ineligible'
    assert live(node, 'before') and not live(node, 'after')
    assert 'No nodes were eligible for evaluation' in node.cli('job', 'status', 'after').stdout
    try:
        node.run_job(job_of('before', 'service', sleeper('other')))
        raise AssertionError('what runs is stopped, and nothing can take its place')
    except Refused as refused:
        assert 'not eligible for scheduling' in refused.text, refused.text
    node.cli('node', 'eligibility', '-enable', '-self')
    wait_for('what has waited', lambda: live(node, 'after'))
    events = [event['Message'] for event in this(node)['Events']]
    assert events[-2:] == ['Node marked as ineligible for scheduling',
                           'Node marked as eligible for scheduling'], events
    node.finish()


def a_drain_goes_on_over_a_crash_and_ends_when_work_is_done():
    node = Node()
    node.start()
    gate = os.path.join(node.dir, 'gate')
    node.run_job(job_of('web', 'service', sleeper()))
    node.run_job(job_of('logs', 'system', sleeper()))
    node.run_job(job_of('work', 'batch', raw_exec('t', 'until [ -e %s ]; do sleep 0.1; done' %
                                                  gate)))
    wait_for('all of them', lambda: all(live(node, job) for job in ('web', 'logs', 'work')))
    node.cli('node', 'drain', '-enable', '-self', '-detach', '-m', 'a new disk')
    wait_for('the end of the service', lambda: not live(node, 'web'))
    node.kill()
    node.start()
    drained = this(node)
    assert drained['DrainStrategy']['Deadline'] == 3600 * 10 ** 9, drained
    assert drained['LastDrain']['Status'] == 'draining', drained
    assert drained['LastDrain']['Meta'] == {'message': 'a new disk'}, drained
    assert live(node, 'logs') and live(node, 'work')
    answer = node.cli('node', 'eligibility', '-enable', '-self', check=False)
    assert answer.returncode != 0 and 'while it is draining' in answer.stdout, answer
    with open(gate, 'w', encoding='utf-8'):
        pass
    wait_for('the end of all', lambda: not live(node, 'work') and not live(node, 'logs'))
    wait_for('its end', lambda: this(node)['DrainStrategy'] is None)
    drained = this(node)
    assert drained['LastDrain']['Status'] == 'complete', drained
    assert drained['SchedulingEligibility'] == 'ineligible', drained
    assert 'Node drain complete' in node.cli('node', 'status', '-self').stdout
    node.cli('node', 'eligibility', '-enable', '-self')
    wait_for('what goes on', lambda: live(node, 'web') and live(node, 'logs'))
    assert not live(node, 'work')
    node.finish()


def a_drain_is_forced_watched_and_taken_back():
    node = Node()
    node.start()
    node.run_job(job_of('work', 'batch', sleeper()))
    wait_for('the work', lambda: live(node, 'work'))
    node.cli('node', 'drain', '-enable', '-self', '-detach', '-no-deadline')
    assert 'no deadline' in node.cli('node', 'status', '-self').stdout
    node.cli('node', 'drain', '-disable', '-self')
    assert this(node)['LastDrain']['Status'] == 'canceled'
    assert live(node, 'work')
    said = node.cli('node', 'drain', '-enable', '-self', '-force').stdout
    assert 'Drain complete for node' in said and not live(node, 'work'), said
    node.cli('node', 'drain', '-disable', '-self', '-keep-ineligible')
    assert this(node)['SchedulingEligibility'] == 'ineligible'
    answer = node.cli('node', 'drain', '-enable', '-force', '-no-deadline', '-self', check=False)
    assert answer.returncode == 3, answer
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it runs a node with real tasks')
        sys.exit(77)
    sys.exit(tap([
        a_node_that_is_not_eligible_gets_nothing_and_keeps_what_it_has,
        a_drain_goes_on_over_a_crash_and_ends_when_work_is_done,
        a_drain_is_forced_watched_and_taken_back,
    ]))
