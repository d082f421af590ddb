#!/usr/bin/env python3
"""What must survive a crash, beyond the crash points: lost shims, reboots, damage, orphans."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (Node, events, exit_codes, flip, milliseconds, raw_exec,  # noqa: E402
                 restart_policy, service, sleeper, start_ticks, tap, wait_for)


def shim_killed_while_the_daemon_is_down_means_unknown_exit_and_a_restart():
    """R-10, R-13: the payload is ended first, its exit is unknown and never success."""
    node = Node()
    node.start()
    node.run_job(service(raw_exec('t', 'trap "" TERM INT; while :; do sleep 1; done')))
    wait_for('the task', lambda: node.running())
    node.kill()
    payloads = node.payloads()
    for pid in node.shims():
        os.kill(pid, signal.SIGKILL)
    node.start()
    state = wait_for('the restart', lambda: (node.running() or {}).get('Restarts') == 1
                     and node.running())
    assert exit_codes(state) == [-1], exit_codes(state)
    shells = [pid for pid, line in payloads.items() if 'trap' in line]
    assert shells and all(start_ticks(pid) is None for pid in shells), 'the old payload lives'
    node.finish()


def shim_killed_while_the_daemon_is_up_means_the_same():
    node = Node()
    node.start()
    node.run_job(service(sleeper()))
    wait_for('the task', lambda: node.running())
    old = node.await_pid('sleep 1000')
    for pid in node.shims():
        os.kill(pid, signal.SIGKILL)
    state = wait_for('the restart', lambda: (node.running() or {}).get('Restarts') == 1
                     and node.running())
    assert exit_codes(state) == [-1], exit_codes(state)
    assert start_ticks(old) is None
    node.finish()


def after_a_reboot_tasks_start_again_without_using_up_attempts():
    """R-03, R-11, R-65: no journaled pid or mount is believed; the policy is not charged."""
    node = Node()
    node.boot('11111111-1111-4111-8111-111111111111')
    node.start()
    node.run_job(service(sleeper(), restart=restart_policy(0)))
    wait_for('the task', lambda: node.running())
    old = node.await_pid('sleep 1000')
    node.reboot('22222222-2222-4222-8222-222222222222')
    assert start_ticks(old) is None
    node.start()
    state = wait_for('the task again', lambda: node.pid_of('sleep 1000') and node.running())
    assert state['Restarts'] == 0 and not state['Failed'], state
    assert 'Failed Restoring Task' in events(state), events(state)
    assert node.pid_of('sleep 1000') != old
    node.finish()


def orderly_stop_of_the_daemon_leaves_payloads_running():
    """I-40."""
    node = Node()
    node.start()
    node.run_job(service(sleeper()))
    wait_for('the task', lambda: node.running())
    old = node.await_pid('sleep 1000')
    assert node.terminate() == 0
    assert start_ticks(old) is not None
    node.start()
    state = wait_for('the task', lambda: node.running())
    assert node.pid_of('sleep 1000') == old and events(state).count('Started') == 1
    node.finish()


def a_stop_goes_on_where_the_crash_cut_it():
    """I-9, I-36: the kill timeout goes on while the daemon is down."""
    node = Node()
    node.start()
    ready = os.path.join(node.dir, 'ready')
    node.run_job(service(raw_exec('t', 'trap "" TERM INT; : > %s; while :; do sleep 0.1; done' % ready,
                                  KillTimeout=milliseconds(1500))))
    wait_for('the task', lambda: node.running() and os.path.exists(ready))
    shells = [pid for pid, line in node.payloads().items() if 'trap' in line]
    node.call('DELETE', '/v1/job/job')
    wait_for('the kill signal', lambda: 'Killing' in events(node.task('job', 'g', 't')))
    node.kill()
    wait_for('the kill by the shim', lambda: all(start_ticks(pid) is None for pid in shells))
    node.start()
    state = wait_for('the end', lambda: (lambda s: s and s['State'] == 'dead' and s)(
        node.task('job', 'g', 't')))
    assert exit_codes(state) == [137], exit_codes(state)
    assert events(state)[-1] == 'Killed', events(state)
    node.finish()


def counters_go_on_over_restarts_of_the_daemon():
    """R-08: two allowed restarts are two, whatever happens to the daemon."""
    node = Node()
    node.start()
    node.run_job(service(raw_exec('t', 'sleep 0.3; exit 1'), restart=restart_policy(2, 10)))
    for _ in range(6):
        state = node.task('job', 'g', 't')
        if state and state['State'] == 'dead':
            break
        node.kill()
        node.start()
    state = wait_for('the end', lambda: (lambda s: s and s['State'] == 'dead' and s)(
        node.task('job', 'g', 't')))
    assert state['Failed'] and state['Restarts'] == 2, state['Restarts']
    assert [type_ for type_ in events(state) if type_ != 'Alloc Unhealthy'][-1] == 'Not Restarting', \
        events(state)
    node.finish()


def one_damaged_record_costs_one_alloc():
    """R-21, I-17: quarantined, failed, cleaned up; the other alloc does not notice."""
    node = Node()
    node.start()
    node.run_job(service(sleeper()))
    other = service(raw_exec('u', 'exec sleep 2000'))
    other['ID'] = other['Name'] = 'other'
    node.run_job(other)
    wait_for('both', lambda: node.pid_of('sleep 1000') and node.pid_of('sleep 2000'))
    alloc, kept = node.alloc('job', 'g')['ID'], node.await_pid('sleep 2000')
    node.kill()
    key = b'\x02' + (alloc + '/t').encode()
    assert flip(os.path.join(node.data, 'client/journal/data.mdb'), key, 24) > 0
    node.start()
    found = wait_for('the alloc to fail', lambda: (
        lambda a: a['ClientStatus'] == 'failed' and a)(node.get('/v1/allocation/' + alloc)))
    assert found['ClientStatus'] == 'failed'
    wait_for('its payload to end', lambda: node.pid_of('sleep 1000') is None)
    assert node.pid_of('sleep 2000') == kept
    assert 'quarantine' in node.log()
    node.finish()


def a_damaged_alloc_record_is_ended_from_its_tasks():
    node = Node()
    node.start()
    node.run_job(service(sleeper()))
    wait_for('the task', lambda: node.running())
    node.await_pid('sleep 1000')
    alloc = node.alloc('job', 'g')['ID']
    node.kill()
    assert flip(os.path.join(node.data, 'client/journal/data.mdb'), b'\x03' + alloc.encode(),
                24) > 0
    node.start()
    wait_for('the alloc to fail', lambda: node.get('/v1/allocation/' + alloc)['ClientStatus']
             == 'failed')
    wait_for('its payload to end', lambda: node.pid_of('sleep 1000') is None)
    node.finish()


def a_damaged_specification_costs_no_running_payload():
    """R-21: it is put aside, the payload runs on, and the alloc can still be ended and removed."""
    node = Node()
    node.start()
    node.run_job(service(sleeper()))
    wait_for('the task', node.running)
    alloc, pid = node.alloc('job', 'g')['ID'], node.await_pid('sleep 1000')
    node.kill()
    data = os.path.join(node.data, 'client/journal/data.mdb')
    assert flip(data, b'alloc/' + alloc.encode(), 24) > 0
    node.start()
    wait_for('the task to be found again', node.running)
    assert node.pid_of('sleep 1000') == pid
    assert 'quarantine table=spec' in node.log()
    node.finish()


def a_damaged_job_is_whole_again_when_it_is_registered_again():
    """R-21, I-1: what runs of it is found, not doubled, and is the job's again."""
    node = Node()
    node.start()
    node.run_job(service(sleeper()))
    wait_for('the task', node.running)
    alloc, pid = node.alloc('job', 'g')['ID'], node.await_pid('sleep 1000')
    node.kill()
    data = os.path.join(node.data, 'client/journal/data.mdb')
    assert flip(data, b'job/default/job', 24) > 0
    node.start()
    wait_for('the task to be found again', node.running)
    assert node.pid_of('sleep 1000') == pid
    node.run_job(service(sleeper()))
    wait_for('the job', lambda: node.get('/v1/job/job')['Status'] == 'running')
    assert (node.alloc('job', 'g')['ID'], node.pid_of('sleep 1000')) == (alloc, pid)
    node.run_job(service(sleeper(Meta={'a': 'newer'})))  # as good as any other one
    wait_for('the old alloc to be replaced', lambda: start_ticks(pid) is None and node.running())
    node.await_pid('sleep 1000')
    assert len([line for line in node.payloads().values() if line == 'sleep 1000']) == 1
    node.finish()


def an_empty_journal_beside_living_payloads_is_no_first_start():
    """R-67, I-1: what carries our mark and belongs to nothing is ended, not doubled."""
    node = Node()
    node.start()
    node.run_job(service(sleeper()))
    wait_for('the task', lambda: node.running())
    node.await_pid('sleep 1000')
    alloc = node.alloc('job', 'g')['ID']
    node.kill()
    data = os.path.join(node.data, 'client/journal/data.mdb')
    for kind, name in ((b'\x02', alloc + '/t'), (b'\x03', alloc)):
        assert flip(data, kind + name.encode(), 24) > 0
    node.start()
    wait_for('the orphan to be ended', lambda: node.pid_of('sleep 1000') is None)
    wait_for('its shim to be gone', lambda: not node.shims())
    node.call('DELETE', '/v1/job/job?purge=true')
    node.terminate()
    node.close()


if __name__ == '__main__':
    sys.exit(tap([
        shim_killed_while_the_daemon_is_down_means_unknown_exit_and_a_restart,
        shim_killed_while_the_daemon_is_up_means_the_same,
        after_a_reboot_tasks_start_again_without_using_up_attempts,
        orderly_stop_of_the_daemon_leaves_payloads_running,
        a_stop_goes_on_where_the_crash_cut_it,
        counters_go_on_over_restarts_of_the_daemon,
        one_damaged_record_costs_one_alloc,
        a_damaged_alloc_record_is_ended_from_its_tasks,
        a_damaged_specification_costs_no_running_payload,
        a_damaged_job_is_whole_again_when_it_is_registered_again,
        an_empty_journal_beside_living_payloads_is_no_first_start,
    ]))
