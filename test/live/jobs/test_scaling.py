#!/usr/bin/env python3
"""The count of a group is changed by somebody else than its job's author, over HTTP and by the
command line, and what was said of it is kept wherever the daemon dies."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, Refused, sleeper, tap, wait_for  # noqa: E402


def job_of(count=1, **scaling):
    group = {'Name': 'g', 'Count': count, 'Tasks': [sleeper()],
             'Scaling': dict({'Min': 1, 'Max': 4, 'Policy': {'cooldown': '1m', 'check': [
                 {'cpu': [{'query': 'avg_cpu'}]}]}}, **scaling)}
    return {'ID': 'job', 'Name': 'job', 'Type': 'batch', 'Datacenters': ['dc1'],
            'TaskGroups': [group]}


def open_node():
    node = Node()
    node.start()
    return node


def refusal(node, body, status):
    try:
        node.put('/v1/job/job/scale', body)
    except Refused as refused:
        assert refused.status == status, refused
        return refused.text.strip()
    raise AssertionError('%s is not refused' % body)


def scale(node, count, **more):
    return node.put('/v1/job/job/scale', dict({'Count': count, 'Target': {'Group': 'g'}}, **more))


def status_of(node):
    return node.get('/v1/job/job/scale')['TaskGroups']['g']


def await_running(node, count):
    wait_for('%d to run' % count, lambda: status_of(node)['Running'] == count)


def what_is_wrong_is_refused_in_nomads_words():
    node = open_node()
    try:
        node.get('/v1/job/job/scale')
        raise AssertionError('there is no such job')
    except Refused as refused:
        assert refused.status == 404, refused
    assert 'not found' in refusal(node, {'Count': 2, 'Target': {'Group': 'g'}}, 404)
    node.run_job(job_of())
    target = {'Group': 'g'}
    for body, words in (
            ({'Count': 2}, 'missing task group name for scaling action'),
            ({'Count': 2, 'Target': {'Group': 'x'}}, 'does not exist in job'),
            ({'Count': 2, 'Target': {'Group': 'g', 'Job': 'x'}}, 'did not match URL'),
            ({'Count': 2, 'Target': {'Group': 'g', 'Namespace': 'x'}}, 'did not match header'),
            ({'Count': -2, 'Target': target}, "can't be negative"),
            ({'Count': '2', 'Target': target}, 'whole numbers'),
            ({'Count': 1e300, 'Target': target}, 'whole numbers'),
            ({'Count': 2, 'Target': target, 'Error': True}, 'should not contain count'),
            ({'Count': 2, 'Target': target, 'Meta': []}, 'Meta must be an object'),
            ({'Count': 2, 'Target': target, 'Message': 'x' * 5000}, 'there may be 4096'),
            ({'Count': 5, 'Target': target}, 'greater than scaling policy maximum: 5 > 4'),
            ({'Count': 0, 'Target': target}, 'less than scaling policy minimum: 0 < 1')):
        assert words in refusal(node, body, 400), (words, refusal(node, body, 400))
    assert status_of(node)['Events'] is None
    node.finish()


def a_group_is_scaled_and_its_events_outlive_the_daemon():
    node = open_node()
    node.run_job(job_of())
    answer = scale(node, 3, Message='more', Meta={'cpu': 99})
    await_running(node, 3)
    node.kill()
    node.start()
    await_running(node, 3)
    event, = status_of(node)['Events']
    assert (event['Count'], event['PreviousCount'], event['Message'], event['Meta']) == \
        (3, 1, 'more', {'cpu': 99}), event
    assert event['EvalID'] == answer['EvalID'], (event, answer)
    scale(node, None, Message='cannot tell', Error=True)
    first, second = status_of(node)['Events']
    assert first['Error'] and first['Count'] is None and second == event, first
    scale(node, 1)
    await_running(node, 1)
    assert status_of(node)['Desired'] == 1
    node.finish()


def policies_are_found_by_their_ids():
    node = open_node()
    assert node.get('/v1/scaling/policies') == []
    node.run_job(job_of())
    stub, = node.get('/v1/scaling/policies')
    assert stub['Target'] == {'Namespace': 'default', 'Job': 'job', 'Group': 'g'}, stub
    policy = node.get('/v1/scaling/policy/' + stub['ID'])
    assert (policy['Min'], policy['Max'], policy['Enabled'], policy['Type']) == \
        (1, 4, True, 'horizontal'), policy
    assert policy['Policy'] == job_of()['TaskGroups'][0]['Scaling']['Policy'], policy
    assert node.get('/v1/scaling/policies?job=other') == []
    assert node.get('/v1/scaling/policies?type=vertical') == []
    assert node.get('/v1/scaling/policies?prefix=' + stub['ID'][:8]) == [stub]
    try:
        node.get('/v1/scaling/policy/00000000-0000-4000-8000-000000000000')
        raise AssertionError('there is no such policy')
    except Refused as refused:
        assert refused.status == 404 and 'policy not found' in refused.text, refused
    node.run_job(job_of(Enabled=False))
    assert node.get('/v1/scaling/policies')[0]['ID'] == stub['ID']
    assert not node.get('/v1/scaling/policies')[0]['Enabled']
    node.finish()


def the_command_line_does_the_same():
    node = open_node()
    path = os.path.join(node.dir, 'job.hcl')
    with open(path, 'w') as out:
        out.write('''job "job" {
  type = "batch"
  group "g" {
    scaling {
      min = 2
      max = 4
      policy {
        cooldown = "1m"
        check "cpu" {
          query = "avg_cpu"
        }
      }
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
    }
  }
}
''')
    told = node.cli('job', 'run', '-detach', path)
    assert 'WARNING' not in told.stdout.upper(), told.stdout
    await_running(node, 2)  # its min, as nothing else is said
    node.cli('job', 'scale', 'job', '3')
    await_running(node, 3)
    index = node.get('/v1/job/job')['JobModifyIndex']
    told = node.cli('job', 'scale', '-check-index', str(index + 1), 'job', 'g', '4', check=False)
    assert told.returncode == 1 and 'conflicting job modify index' in told.stdout, told
    told = node.cli('job', 'scale', '-check-index', str(index), '-detach', 'job', 'g', '4')
    assert told.stdout.startswith('Job scale successful\nEvaluation ID: '), told.stdout
    await_running(node, 4)
    for arguments, words in ((('job', 'x', '2'), 'group x not found'),
                             (('job', 'many'), 'not "many"'),
                             (('job', '5'), 'policy maximum: 5 > 4')):
        told = node.cli('job', 'scale', *arguments, check=False)
        assert told.returncode != 0 and words in told.stdout, told
    events = node.cli('job', 'scaling-events', '-verbose', 'job').stdout.splitlines()
    assert events[0].split()[:3] == ['Task', 'Group', 'Count'], events
    assert [line.split()[1:3] for line in events[1:]] == [['4', '3'], ['3', '2']], events
    listed = node.cli('scaling', 'policy', 'list').stdout.splitlines()
    assert listed[1].split()[1:] == ['true', 'horizontal',
                                     'Namespace:default,Job:job,Group:g'], listed
    shown = node.cli('scaling', 'policy', 'info', listed[1].split()[0]).stdout
    assert 'Max     = 4' in shown and '"query": "avg_cpu"' in shown, shown
    node.finish()


if __name__ == '__main__':
    sys.exit(tap([what_is_wrong_is_refused_in_nomads_words,
                  a_group_is_scaled_and_its_events_outlive_the_daemon,
                  policies_are_found_by_their_ids,
                  the_command_line_does_the_same]))
