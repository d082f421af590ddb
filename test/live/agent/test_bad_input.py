#!/usr/bin/env python3
"""Bad input gets one clear error, and nothing is lost (issue 2, part 9)."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (Node, Refused, raw_exec, restart_policy, service, sleeper,  # noqa: E402
                 tap, wait_for)

GOOD = '''job "ok" {
  datacenters = ["dc1"]
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
    }
  }
}
'''


def run_file(node, text, name='job.hcl'):
    path = os.path.join(node.dir, name)
    with open(path, 'w') as out:
        out.write(text)
    return node.cli('job', 'run', '-detach', path, check=False)


def expect(done, *parts):
    assert done.returncode != 0, 'accepted:\n' + done.stdout
    for part in parts:
        assert part in done.stdout, '%r is not in:\n%s' % (part, done.stdout)
    assert 'Traceback' not in done.stdout and 'assert' not in done.stdout.lower()


def end(node):
    assert node.get('/v1/jobs') == [], 'something was registered'
    assert node.terminate() == 0
    node.close()


def malformed_job_names_file_line_and_column():
    node = Node()
    node.start()
    expect(run_file(node, GOOD.replace('["1000"]', '["1000"')), 'job.hcl:9:7')
    expect(run_file(node, '{"Job": {"ID": }}', 'job.json'), 'job.json')
    expect(run_file(node, ''), 'job')
    end(node)


def unknown_driver_is_named():
    node = Node()
    node.start()
    expect(run_file(node, GOOD.replace('raw_exec', 'raw_exce')), 'raw_exce')
    end(node)


def missing_command_is_named():
    node = Node()
    node.start()
    expect(run_file(node, GOOD.replace('command = "/bin/sleep"', '')), 'command')
    end(node)


def misspelt_key_gets_a_hint():
    node = Node()
    node.start()
    expect(run_file(node, GOOD.replace('datacenters', 'datacentres')), 'datacentres',
           'datacenters')
    end(node)


def a_command_that_does_not_exist_fails_the_task_and_says_so():
    node = Node()
    node.start()
    task = raw_exec('t', '')
    task['Config'] = {'command': '/no/such/program'}
    node.run_job({'ID': 'j', 'Name': 'j', 'Type': 'batch', 'Datacenters': ['dc1'],
                  'TaskGroups': [{'Name': 'g', 'Count': 1, 'RestartPolicy': restart_policy(0),
                                  'Tasks': [task]}]})
    state = wait_for('the failure', lambda: (lambda s: s and s['State'] == 'dead' and s)(
        node.task('j', 'g', 't')))
    told = ' '.join(event['DisplayMessage'] for event in state['Events'])
    assert state['Failed'] and '/no/such/program' in told, told
    node.call('DELETE', '/v1/job/j?purge=true')
    wait_for('the job to be forgotten', lambda: not node.get('/v1/jobs'))
    end(node)


def a_second_daemon_on_one_directory_names_the_first():
    node = Node()
    node.start()
    done = subprocess.run(node.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode != 0 and str(node.process.pid) in done.stdout, done.stdout
    assert node.get('/v1/agent/self')
    end(node)


def an_address_in_use_is_one_clear_error():
    node, other = Node(), Node()
    node.start()
    other.port = node.port
    done = subprocess.run(other.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode != 0 and 'in use' in done.stdout, done.stdout
    other.close()
    end(node)


def a_client_without_a_daemon_says_what_to_do():
    node = Node()
    done = node.cli('job', 'status', check=False)
    assert done.returncode != 0 and 'cairn agent' in done.stdout, done.stdout
    node.close()


def a_journal_that_is_none_is_refused_and_untouched():
    node = Node()
    journal = os.path.join(node.data, 'client/journal')
    os.makedirs(journal)
    path = os.path.join(journal, 'data.mdb')
    with open(path, 'wb') as out:
        out.write(b'not a journal' * 1000)
    done = subprocess.run(node.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode != 0 and path.rsplit('/', 1)[0] in done.stdout, done.stdout
    with open(path, 'rb') as kept:
        assert kept.read() == b'not a journal' * 1000
    node.close()


def a_job_too_large_to_be_stored_is_refused_and_disturbs_nobody():
    node = Node()
    node.start()
    large = service(sleeper(), Meta={'m': 'x' * (5 << 20)})
    try:
        node.run_job(large)
        raise AssertionError('accepted')
    except Refused as refused:
        assert refused.status == 400 and 'too large' in refused.text, refused
    assert 'cannot be written' not in node.log(), node.log()
    end(node)


def a_field_of_another_type_is_not_passed_over():
    """A task that is no text is not all tasks, and an index that is not to be enforced says so itself."""
    node = Node()
    node.start()
    job = service(sleeper())
    node.run_job(job)
    pid = wait_for('the task', node.running) and node.await_pid('sleep 1000')
    alloc = '/v1/client/allocation/' + node.alloc('job', 'g')['ID']
    deployed = node.get('/v1/deployments')[0]['ID']
    deployment, drain = '/v1/deployment/%s/' + deployed, '/v1/node/%s/drain' % node.get('/v1/nodes')[0]['ID']
    for path, body in (alloc + '/restart', {'TaskName': 5}), (alloc + '/restart', {'AllTasks': 'yes'}), \
                      (alloc + '/signal', {'Signal': 'SIGKILL', 'Task': 5}), \
                      ('/v1/jobs', {'Job': dict(job, Priority=60), 'EnforceIndex': 'true', 'JobModifyIndex': 1}), \
                      ('/v1/jobs', {'Job': dict(job, Priority=60), 'EnforceIndex': True, 'JobModifyIndex': '1'}), \
                      ('/v1/jobs', {'Job': dict(job, Priority=60), 'PreserveCounts': 1}), \
                      ('/v1/job/job/plan', {'Job': job, 'Diff': 1}), \
                      ('/v1/job/job/evaluate', {'JobID': 'job', 'EvalOptions': {'ForceReschedule': 'yes'}}), \
                      ('/v1/job/job/scale', {'Target': {'Group': 'g'}, 'Count': 2, 'Message': 5}), \
                      ('/v1/job/job/revert', {'JobID': 'job', 'JobVersion': 0, 'EnforcePriorVersion': '7'}), \
                      (drain, {'DrainSpec': {'IgnoreSystemJobs': 'no'}}), (drain, {'MarkEligible': 'yes'}), \
                      (deployment % 'pause', {'DeploymentID': deployed, 'Pause': 'true'}), \
                      (deployment % 'promote', {'DeploymentID': deployed, 'All': 1}):
        try:
            node.put(path, body)
            raise AssertionError((path, body))
        except Refused as refused:
            assert refused.status == 400 and 'must be' in refused.text, (path, body, refused)
    node.put(alloc + '/signal', {'Signal': 'SIGCONT', 'Task': None})
    assert node.get('/v1/job/job')['Priority'] == 50 and node.pid_of('sleep 1000') == pid
    node.finish()


def a_bad_configuration_names_its_place():
    node = Node(config='client {\n  enabeld = true\n}\n')
    done = subprocess.run(node.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode != 0 and 'agent.hcl:2' in done.stdout and 'enabeld' in done.stdout, \
        done.stdout
    node.close()


def a_task_that_no_driver_would_start_is_refused_with_its_job():
    node = Node()
    node.start()
    for name in ('.web', '..', 'a/b', 'alloc', 't' * 96):
        try:
            node.run_job(service(sleeper(name)))
            raise AssertionError('accepted: ' + name)
        except Refused as refused:
            assert refused.status == 400 and 'the name of a task' in refused.text, refused
    end(node)


def the_longest_name_with_slashes_runs_and_is_found_after_a_restart():
    node = Node()
    node.start()
    names = {'job': 'team/sync/periodic-' + '1' * 76, 'group': 'a/' + 'g' * 93, 'task': 't' * 95}
    assert {len(name) for name in names.values()} == {95}
    job = service(sleeper(names['task']), Name=names['group'])
    job['ID'] = names['job']
    node.run_job(job)
    wait_for('the task to run', lambda: node.running(**names))
    node.kill()
    node.start()
    assert node.running(**names)
    for path in (names['job'], names['job'].replace('/', '%2F')):
        allocs = node.get('/v1/job/%s/allocations' % path)
        assert [alloc['Name'] for alloc in allocs] == ['%s.%s[0]' % (names['job'], names['group'])]
        assert node.get('/v1/job/' + path)['ID'] == names['job']
    try:
        node.run_job(dict(job, ID=names['job'] + '1'))
        raise AssertionError('accepted')
    except Refused as refused:
        assert refused.status == 400 and 'it may have 95 bytes' in refused.text, refused
    node.finish()


if __name__ == '__main__':
    sys.exit(tap([
        malformed_job_names_file_line_and_column,
        unknown_driver_is_named,
        missing_command_is_named,
        misspelt_key_gets_a_hint,
        a_command_that_does_not_exist_fails_the_task_and_says_so,
        a_second_daemon_on_one_directory_names_the_first,
        an_address_in_use_is_one_clear_error,
        a_client_without_a_daemon_says_what_to_do,
        a_journal_that_is_none_is_refused_and_untouched,
        a_job_too_large_to_be_stored_is_refused_and_disturbs_nobody,
        a_field_of_another_type_is_not_passed_over,
        a_bad_configuration_names_its_place,
        a_task_that_no_driver_would_start_is_refused_with_its_job,
        the_longest_name_with_slashes_runs_and_is_found_after_a_restart,
    ]))
