#!/usr/bin/env python3
"""Tasks of mock_driver on a real node: no process, and all the same kept over crashes and reboots."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, PATIENCE, Node, Refused, events, exit_codes,  # noqa: E402
                 restart_policy, service, tap, wait_for)

ENABLED = 'plugin "mock_driver" {\n  config {\n    enabled = true\n  }\n}\n'


def mock(name='t', **config):
    return {'Name': name, 'Driver': 'mock_driver', 'Config': config,
            'Resources': {'CPU': 50, 'MemoryMB': 32}}


def open_node(config=ENABLED):
    node = Node(config=config)
    node.start()
    return node


def output(node):
    path = os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'], 'alloc/logs/t.stdout.0')
    with open(path) as file:
        return file.read()


def a_task_without_a_process_is_the_same_after_every_crash():
    node = open_node()
    node.run_job(service(mock(run_for='1h', exit_code=3, stdout_string='once\n')))
    state = wait_for('it to run', node.running)
    for _ in range(3):
        node.kill()
        node.start()
        again = wait_for('it to run on', node.running)
        assert (again['StartedAt'], again['Restarts']) == (state['StartedAt'], 0), again
    assert node.payloads() == {} and node.shims() == []
    assert output(node) == 'once\n'
    node.call('DELETE', '/v1/job/job')
    state = wait_for('its end', node.dead)
    assert exit_codes(state) == [3], state
    node.finish()


def an_end_that_nobody_saw_has_its_code_and_its_time():
    node, run_s = open_node(), 3 * PATIENCE  # it has to be seen to run before
    node.run_job(service(mock(run_for='%gs' % run_s, exit_code=4), restart=restart_policy(0),
                         ReschedulePolicy=NO_RESCHEDULE))
    wait_for('it to run', node.running)
    node.kill()
    end = time.time() + run_s + 1.5
    wait_for('its time', lambda: time.time() > end)
    node.start()
    state = wait_for('its end', node.dead)
    assert exit_codes(state) == [4], state
    # However long its way back took the daemon, which has seen it later.
    assert state['FinishedAt'] < time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(end)), state
    node.finish()


def crashes_between_any_two_steps_of_its_start_leave_one_task():
    for crash_at in range(1, 40, 3):
        node = Node(config=ENABLED)
        try:
            node.start(crash_at=crash_at)
        except AssertionError:
            continue  # it dies before it answers: there is nothing of a start yet
        try:
            node.run_job(service(mock(run_for='1h', stdout_string='once\n')))
        except (OSError, Refused):
            pass
        if node.process.poll() is None and crash_at < 30:
            try:
                wait_for('the crash', lambda: node.process.poll() is not None, limit_s=2)
            except AssertionError:
                pass  # it had fewer steps
        if node.process.poll() is None:
            node.kill()
        node.start()
        if node.get('/v1/jobs'):
            wait_for('it to run', node.running)
            assert output(node) == 'once\n', crash_at
        node.finish()


def a_reboot_loses_it_and_it_starts_again():
    node = open_node()
    node.run_job(service(mock(run_for='1h')))
    first = wait_for('it to run', node.running)
    node.kill()
    node.boot('6d3b7a58-6bd8-4c05-a6f7-26a0c3e2c111')
    node.start()
    state = wait_for('it to run again', lambda: (node.running() or first)['StartedAt'] >
                     first['StartedAt'] and node.running())
    assert exit_codes(state) == [-1] and 'Failed Restoring Task' in events(state), state
    assert state['Restarts'] == 0, state  # a reboot is not its fault
    node.finish()


def whatever_is_run_in_it_is_what_its_config_says():
    node = open_node()
    said = {'run_for': '300ms', 'exit_code': 7, 'stdout_string': 'out\n', 'stdout_repeat': 2,
            'stdout_repeat_duration': '50ms', 'stderr_string': 'err\n'}
    node.run_job(service(mock(run_for='1h', exec_command=said)))
    wait_for('it to run', node.running)
    for _ in range(2):  # also of a daemon that has not started it
        alloc = node.alloc('job', 'g')['ID']
        began = time.monotonic()
        done = node.cli('alloc', 'exec', '-i=false', '-t=false', alloc, 'anything', check=False)
        assert done.returncode == 7, done
        assert sorted(done.stdout.split()) == ['err', 'out', 'out', 'out'], done.stdout
        assert time.monotonic() - began >= 0.3
        node.kill()
        node.start()
        wait_for('it to run on', node.running)
    wrong = mock(run_for='1h', exec_command={'exit_err_msg': 'no such thing'})
    short = mock(run_for='%gs' % (3 * PATIENCE), exec_command={'run_for': '1h'})
    for job, task, words in (('wrong', wrong, 'no such thing'),
                             ('mute', mock(run_for='1h'), 'no exec command is configured'),
                             ('short', short, 'the task has ended, and the session with it')):
        node.run_job(dict(service(task), ID=job))
        wait_for(job, lambda: node.running(job=job))
        done = node.cli('alloc', 'exec', '-i=false', '-t=false', node.alloc(job, 'g')['ID'], 'x',
                        check=False)
        assert done.returncode == 1 and words in done.stdout, done
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it makes mounts')
        sys.exit(77)
    sys.exit(tap([
        a_task_without_a_process_is_the_same_after_every_crash,
        an_end_that_nobody_saw_has_its_code_and_its_time,
        crashes_between_any_two_steps_of_its_start_leave_one_task,
        a_reboot_loses_it_and_it_starts_again,
        whatever_is_run_in_it_is_what_its_config_says,
    ]))
