#!/usr/bin/env python3
"""What a node says of itself and of jobs is true: attributes, warnings, what waits and why."""
import datetime
import json
import os
import platform
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, Refused, raw_exec, restart_policy, service, sleeper, tap, wait_for  # noqa: E402

ARCH = {'x86_64': 'amd64', 'aarch64': 'arm64'}.get(platform.machine(), platform.machine())


def attributes_have_the_values_that_nomad_gives_them():
    node = Node()
    node.start()
    attributes = node.get('/v1/node/%s' % node.get('/v1/nodes')[0]['ID'])['Attributes']
    assert attributes['kernel.name'] == 'linux' and attributes['cpu.arch'] == ARCH, attributes
    assert 'SIGTERM' in attributes['os.signals'].split(',')
    task = raw_exec('t', 'echo "$FACTS" > "${NOMAD_TASK_DIR}/facts"; sleep 1000',
                    Env={'FACTS': '${attr.kernel.name} ${attr.cpu.arch}'})
    node.run_job(service(task))
    where = wait_for('the task', lambda: node.running() and node.alloc('job', 'g')['ID'])
    path = os.path.join(node.data, 'alloc', where, 't', 'local', 'facts')
    wait_for('the facts', lambda: os.path.exists(path) and open(path).read().endswith('\n'))
    assert open(path).read().split() == ['linux', ARCH]
    assert 'kernel.name' in node.cli('node', 'status', '-verbose', '-self').stdout
    node.finish()


def what_is_kept_and_not_acted_on_is_named_where_users_look():
    node = Node()
    node.start()
    job = service(sleeper(), Update={'Stagger': 60000000000}, Spreads=[{'Attribute': '${node.datacenter}'}])
    wanted = ('update (stagger) is kept and not acted on', 'spread is kept and not acted on')
    answers = [node.put('/v1/validate/job', {'Job': job})['Warnings'], node.run_job(job)['Warnings'],
               node.get('/v1/job/job')['Warnings'], node.cli('job', 'status', 'job').stdout]
    file = os.path.join(node.dir, 'job.json')
    with open(file, 'w') as out:
        json.dump(job, out)
    answers += [node.cli('job', verb, file).stdout for verb in ('validate', 'run')]
    for answer in answers:
        for text in wanted:
            assert text in answer, answer
    # What was answered can be submitted again.
    node.run_job(node.get('/v1/job/job'))
    plain = service(sleeper())
    plain['ID'] = 'plain'
    assert node.run_job(plain)['Warnings'] == ''
    node.finish()


SMALL = 'client {\n  memory_total_mb = 1000\n  cpu_total_compute = 1000\n  disk_total_mb = 10000\n}\n'


def what_does_not_fit_waits_says_why_and_is_placed_when_there_is_room():
    node = Node(config=SMALL)
    node.start()
    first = service(sleeper(Resources={'CPU': 100, 'MemoryMB': 900}))
    node.run_job(first)
    second = service(sleeper(Resources={'CPU': 100, 'MemoryMB': 300}), Count=2)
    second['ID'] = 'second'
    answer = node.run_job(second)
    evaluation = node.get('/v1/evaluation/' + answer['EvalID'])
    failed = evaluation['FailedTGAllocs']['g']
    assert failed['DimensionExhausted'] == {'memory': 1} and failed['CoalescedFailures'] == 1, failed
    assert evaluation['QueuedAllocations'] == {'g': 2}
    assert node.get('/v1/evaluation/' + evaluation['BlockedEval'])['Status'] == 'blocked'
    assert node.get('/v1/job/second/summary')['Summary']['g']['Queued'] == 2
    assert node.get('/v1/job/second')['Status'] == 'running'  # its deployment is
    shown = node.cli('job', 'status', 'second').stdout
    assert 'Dimension "memory" exhausted on 1 nodes' in shown, shown
    assert 'failed to place 2 allocations' in shown, shown
    node.kill()
    node.start()
    assert 'Dimension "memory" exhausted' in wait_for(
        'the reason', lambda: (lambda text: text if 'Dimension' in text else None)(
            node.cli('job', 'status', 'second').stdout))
    node.call('DELETE', '/v1/job/job')
    wait_for('both to run', lambda: [alloc['ClientStatus'] for alloc in node.allocs('second')]
             == ['running', 'running'])
    assert node.get('/v1/job/second/summary')['Summary']['g']['Queued'] == 0
    node.finish()


def other_datacenters_wait_and_other_regions_and_namespaces_are_refused():
    node = Node()
    node.start()
    job = service(sleeper())
    job['Datacenters'] = ['dc9', 'x*']
    node.run_job(job)
    shown = node.cli('job', 'status', 'job').stdout
    assert 'No nodes are available in datacenter "dc9"' in shown, shown
    assert node.allocs() == []
    job['Datacenters'] = ['d*1']
    node.run_job(job)
    wait_for('it to run', node.running)
    for field, value, text in (('Region', 'eu', 'No path to region'),
                               ('Namespace', 'foo', 'nonexistent namespace "foo"'),
                               ('NodePool', 'gpu', 'nonexistent node pool "gpu"')):
        try:
            node.run_job(dict(job, ID='other', **{field: value}))
            raise AssertionError('accepted: ' + field)
        except Refused as answer:
            assert text in answer.text, answer
    try:
        node.get('/v1/jobs?region=eu')
        raise AssertionError('answered for another region')
    except Refused as answer:
        assert 'No path to region' in answer.text, answer
    assert len(node.get('/v1/jobs?region=global')) == 1
    node.finish()


def unmet_constraints_wait_and_are_named():
    node = Node(config='client {\n  node_class = "large"\n  meta {\n    rack = "r1"\n  }\n}\n')
    node.start()
    job = service(sleeper(), Constraints=[
        {'LTarget': '${meta.rack}', 'RTarget': '^r[23]$', 'Operand': 'regexp'}])
    answer = node.run_job(job)
    evaluation = node.get('/v1/evaluation/' + answer['EvalID'])
    failed = evaluation['FailedTGAllocs']['g']
    assert failed['ConstraintFiltered'] == {'${meta.rack} regexp ^r[23]$': 1}, failed
    assert failed['ClassFiltered'] == {'large': 1} and failed['NodesFiltered'] == 1, failed
    assert failed['NodesAvailable'] == {'dc1': 1} and failed['NodesExhausted'] == 0, failed
    shown = node.cli('job', 'status', 'job').stdout
    assert 'Constraint "${meta.rack} regexp ^r[23]$": 1 nodes excluded by filter' in shown, shown
    assert 'Class "large": 1 nodes excluded by filter' in shown, shown
    job['TaskGroups'][0]['Constraints'] = [
        {'LTarget': '${attr.nomad.version}', 'RTarget': '>= 1.0', 'Operand': 'version'},
        {'LTarget': '${node.class}', 'RTarget': 'large', 'Operand': '='}]
    node.run_job(job)
    wait_for('it to run', node.running)
    node.finish()


def what_is_reserved_is_no_room_for_allocs():
    node = Node(config=SMALL[:-2] + '  reserved {\n    cpu = 300\n    memory = 100\n    disk = 8000\n'
                                    '  }\n}\n')
    node.start()
    itself = node.get('/v1/node/' + node.get('/v1/nodes')[0]['ID'])
    assert [itself['Resources'][name] for name in ('CPU', 'MemoryMB', 'DiskMB')] == [1000, 1000, 10000]
    assert [itself['Reserved'][name] for name in ('CPU', 'MemoryMB', 'DiskMB')] == [300, 100, 8000]
    assert itself['NodeResources']['Cpu']['CpuShares'] == 1000, itself
    reserved = itself['ReservedResources']
    assert [reserved['Cpu']['CpuShares'], reserved['Memory'], reserved['Disk']] \
        == [300, {'MemoryMB': 100}, {'DiskMB': 8000}], reserved
    attributes = itself['Attributes']
    assert attributes['cpu.totalcompute'] == '1000' and attributes['cpu.usablecompute'] == '700', attributes
    for name, resources, disk in (('cpu', {'CPU': 701, 'MemoryMB': 10}, 200),
                                  ('memory', {'CPU': 10, 'MemoryMB': 901}, 200),
                                  ('disk', {'CPU': 10, 'MemoryMB': 10}, 2001)):
        job = service(sleeper(Resources=resources), EphemeralDisk={'SizeMB': disk})
        answer = node.run_job(dict(job, ID=name))
        failed = node.get('/v1/evaluation/' + answer['EvalID'])['FailedTGAllocs']['g']
        assert failed['DimensionExhausted'] == {name: 1}, failed
        node.call('DELETE', '/v1/job/%s?purge=true' % name)
    node.run_job(service(sleeper(Resources={'CPU': 700, 'MemoryMB': 900}),
                         EphemeralDisk={'SizeMB': 2000}))
    wait_for('it to run', lambda: [alloc['ClientStatus'] for alloc in node.allocs('job')] == ['running'])
    shown = node.cli('node', 'status', '-self').stdout
    assert '700/700 MHz' in shown and '900 MiB/900 MiB' in shown, shown
    node.finish()


def a_plan_says_what_would_change_and_changes_nothing():
    node = Node(config=SMALL)
    node.start()
    job = service(sleeper(Resources={'CPU': 100, 'MemoryMB': 300}), Count=2)
    file = os.path.join(node.dir, 'job.json')

    def plan(**group):
        changed = dict(job, TaskGroups=[dict(job['TaskGroups'][0], **group)])
        with open(file, 'w') as out:
            json.dump(changed, out)
        return node.put('/v1/job/job/plan', {'Job': changed, 'Diff': True})

    def changes():
        done = node.cli('job', 'plan', file, check=False)
        assert done.returncode == 5, done
        return done

    assert plan()['Annotations']['DesiredTGUpdates']['g']['Place'] == 2
    shown = changes().stdout
    assert '+ Task Group: "g" (2 create)' in shown and '-check-index 0' in shown, shown
    assert node.get('/v1/jobs') == []
    node.run_job(job)
    wait_for('both to run', lambda: [alloc['ClientStatus'] for alloc in node.allocs('job')]
             == ['running', 'running'])
    before = node.allocs('job')
    answer = plan()
    assert answer['Diff']['Type'] == 'None' and answer['FailedTGAllocs'] is None, answer
    assert answer['Annotations']['DesiredTGUpdates']['g']['Ignore'] == 2, answer
    assert answer['JobModifyIndex'] == node.get('/v1/job/job')['JobModifyIndex']
    assert node.cli('job', 'plan', file).stdout.startswith('Job: "job"')
    answer = plan(Count=4)
    assert answer['Annotations']['DesiredTGUpdates']['g']['Place'] == 2, answer
    assert answer['FailedTGAllocs']['g']['DimensionExhausted'] == {'memory': 1}, answer
    shown = changes().stdout
    assert 'Count: "2" => "4" (forces create)' in shown, shown
    assert 'failed to place 1 allocation)' in shown and 'Dimension "memory"' in shown, shown
    assert node.allocs('job') == before
    node.finish()


def what_has_failed_is_rescheduled_also_by_the_next_daemon():
    node = Node()
    node.start()
    job = service(raw_exec('t', 'exit 1'), restart=restart_policy(0, 10),
                  ReschedulePolicy={'Attempts': 2, 'Unlimited': False, 'Interval': 3600 * 10**9,
                                    'Delay': 5 * 10**9, 'DelayFunction': 'constant'})
    node.run_job(job)

    def failed(count):
        allocs = [alloc for alloc in node.allocs('job') if alloc['ClientStatus'] == 'failed']
        return sorted(allocs, key=lambda alloc: alloc['CreateTime']) if len(allocs) == count else None

    first = wait_for('the first to fail', lambda: failed(1))[0]
    follow = wait_for('the next try', lambda: node.allocs('job')[0]['FollowupEvalID'])
    evaluation = node.get('/v1/evaluation/' + follow)
    assert evaluation['Status'] == 'pending' and evaluation['TriggeredBy'] == 'alloc-reschedule'
    assert evaluation['StatusDescription'] == 'created for delayed rescheduling', evaluation
    assert 'Future Rescheduling Attempts' in node.cli('job', 'status', 'job').stdout
    assert node.get('/v1/job/job')['Status'] == 'running'  # its deployment is
    node.kill()
    node.start()
    second = wait_for('the second to fail', lambda: failed(2))[1]
    replaced = node.get('/v1/allocation/' + first['ID'])
    assert replaced['NextAllocation'] == second['ID'] and replaced['DesiredStatus'] == 'stop'
    assert replaced['FollowupEvalID'] == second['EvalID'] != '', replaced['FollowupEvalID']
    listed = [alloc for alloc in node.allocs('job') if alloc['ID'] == first['ID']][0]
    assert listed['NextAllocation'] == second['ID'], listed
    assert listed['FollowupEvalID'] == second['EvalID'], listed
    assert second['DesiredStatus'] == 'run', second
    whole = node.get('/v1/allocation/' + second['ID'])
    assert whole['PreviousAllocation'] == first['ID']
    assert [event['PrevAllocID'] for event in whole['RescheduleTracker']['Events']] == [first['ID']]
    assert whole['RescheduleTracker']['LastReschedule'] == 'ok'
    ended = node.get('/v1/allocation/' + first['ID'])['TaskStates']['t']['FinishedAt']
    ended = datetime.datetime.fromisoformat(ended[:26].rstrip('Z') + '+00:00').timestamp()
    assert 4.99 <= second['CreateTime'] / 1e9 - ended, (second['CreateTime'], ended)
    assert 'Reschedule Attempts = 1' in ' '.join(
        node.cli('alloc', 'status', second['ID']).stdout.split())
    third = wait_for('the third to fail', lambda: failed(3))[2]
    assert len(third['RescheduleTracker']['Events']) == 2 and third['FollowupEvalID'] == ''
    assert node.get('/v1/job/job')['Status'] == 'dead'
    node.finish()


def counts_are_preserved_where_that_is_asked_for():
    node = Node()
    node.start()
    node.run_job(service(sleeper(), Count=2))
    node.put('/v1/jobs', {'Job': service(sleeper(), Count=1), 'PreserveCounts': True})
    assert node.get('/v1/job/job')['TaskGroups'][0]['Count'] == 2
    node.finish()


if __name__ == '__main__':
    sys.exit(tap([
        attributes_have_the_values_that_nomad_gives_them,
        what_is_kept_and_not_acted_on_is_named_where_users_look,
        what_does_not_fit_waits_says_why_and_is_placed_when_there_is_room,
        what_is_reserved_is_no_room_for_allocs,
        other_datacenters_wait_and_other_regions_and_namespaces_are_refused,
        unmet_constraints_wait_and_are_named,
        a_plan_says_what_would_change_and_changes_nothing,
        what_has_failed_is_rescheduled_also_by_the_next_daemon,
        counts_are_preserved_where_that_is_asked_for,
    ]))
