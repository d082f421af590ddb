#!/usr/bin/env python3
"""Drivers that are missing, denied or unwell: what asks for them waits, and is placed when it can be."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import BUILD, Node, service, sleeper, tap, wait_for  # noqa: E402


def open_node(config, *flags):
    node = Node(config=config)
    command = node.command
    node.command = lambda: command() + list(flags)
    node.start()
    wait_for('the drivers to be known', lambda: ' drivers: docker=' in node.log())
    return node


def itself(node):
    return node.get('/v1/node/%s' % node.get('/v1/nodes')[0]['ID'])


def drivers(node):
    return itself(node)['Drivers']


def node_events(node):
    return itself(node)['Events']


def missing(node, group='g'):
    """What the evaluation that waits says of the group."""
    for evaluation in node.get('/v1/evaluations'):
        failed = (evaluation.get('FailedTGAllocs') or {}).get(group)
        if evaluation['Status'] == 'blocked' and failed:
            return failed['ConstraintFiltered']
    return None


def a_denied_driver_is_waited_for_until_another_configuration():
    node = open_node('client {\n  options {\n    "driver.denylist" = "raw_exec"\n  }\n}\n')
    seen = drivers(node)['raw_exec']
    assert not seen['Detected'] and not seen['Healthy'], seen
    assert seen['HealthDescription'] == 'not allowed by driver.denylist', seen
    assert ' raw_exec=undetected (not allowed by driver.denylist)' in node.log(), node.log()
    node.run_job(service(sleeper()))
    wait_for('the reason', lambda: missing(node) == {'missing drivers': 1})
    assert not node.allocs()
    plan = node.put('/v1/job/job/plan', {'Job': service(sleeper()), 'Diff': True})
    assert plan['FailedTGAllocs']['g']['ConstraintFiltered'] == {'missing drivers': 1}, plan
    told = node.cli('job', 'status', 'job').stdout
    assert 'missing drivers' in told, told
    node.kill()
    with open(node.config, 'w') as out:
        out.write('client {\n  options {\n    "driver.allowlist" = "raw_exec,exec"\n  }\n}\n')
    node.start()
    wait_for('it to run', node.running)
    assert not drivers(node)['mock_driver']['Detected']
    node.finish()


def a_driver_that_gets_well_is_used_at_once_and_says_since_when():
    shims = Node()  # its directory is where the supervisor's program is to be
    shim = os.path.join(shims.dir, 'cairn-shim')
    os.symlink(os.path.join(BUILD, 'cairn-parse'), os.path.join(shims.dir, 'cairn-parse'))
    node = open_node('', '-shim', shim)
    before = drivers(node)['raw_exec']
    assert before['Detected'] and not before['Healthy'], before
    assert 'No such file' in before['HealthDescription'], before
    node.run_job(service(sleeper()))
    wait_for('the reason', lambda: missing(node) == {'missing drivers': 1})
    os.symlink(os.path.join(BUILD, 'cairn-shim'), shim)
    wait_for('it to run', node.running)
    after = drivers(node)['raw_exec']
    assert after['Healthy'] and after['HealthDescription'] == 'Healthy', after
    assert after['UpdateTime'] > before['UpdateTime'], (before, after)
    assert missing(node) is None
    assert 'driver is healthy driver=raw_exec' in node.log(), node.log()
    events = node_events(node)
    assert [(event['Details']['driver'], event['Message']) for event in events][-1] == (
        'raw_exec', 'Healthy'), events
    node.kill()
    node.start()
    assert drivers(node)['raw_exec']['UpdateTime'] == after['UpdateTime']
    assert node_events(node) == events, (node_events(node), events)
    assert 'raw_exec: Healthy' in node.cli('node', 'status', '-self').stdout
    node.finish()
    shims.close()


def what_runs_by_a_driver_that_goes_runs_on_and_what_comes_waits():
    node = open_node('plugin "mock_driver" {\n  config {\n    enabled = true\n'
                     '    shutdown_periodic_after = true\n'
                     '    shutdown_periodic_duration = "2s"\n  }\n}\n')
    task = dict(sleeper(), Driver='mock_driver', Config={'run_for': '1h'})
    node.run_job(service(task))
    wait_for('it to run', node.running)
    wait_for('its driver to go', lambda: not drivers(node)['mock_driver']['Healthy'])
    node.run_job(dict(service(task), ID='late', Name='late'))
    wait_for('the reason', lambda: missing(node) == {'missing drivers': 1})
    assert node.running() and not node.allocs('late')
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it makes cgroups')
        sys.exit(77)
    sys.exit(tap([
        a_denied_driver_is_waited_for_until_another_configuration,
        a_driver_that_gets_well_is_used_at_once_and_says_since_when,
        what_runs_by_a_driver_that_goes_runs_on_and_what_comes_waits,
    ]))
