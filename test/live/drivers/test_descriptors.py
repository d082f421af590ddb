#!/usr/bin/env python3
"""A node that is given few descriptors: it takes all it may, and waits quietly for more."""
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import NO_RESCHEDULE, Node, restart_policy, service, sleeper, tap, wait_for  # noqa: E402

TASKS, LEFT = 24, 6
HARD = 24  # descriptors
CALLS, PAUSE_S = 20, 0.15
HZ = os.sysconf('SC_CLK_TCK')


def limits_of(pid):
    with open('/proc/%d/limits' % pid) as limits:
        words = next(line for line in limits if line.startswith('Max open files')).split()
    return int(words[3]), int(words[4])


def table_of(pid):
    """For how many descriptors the kernel has made room."""
    with open('/proc/%d/status' % pid) as status:
        return int(re.search(r'^FDSize:\s*(\d+)', status.read(), re.M)[1])


def work_of(pid):
    """Ticks of CPU and wake-ups of a process, in all of its threads."""
    with open('/proc/%d/stat' % pid) as stat:
        fields = stat.read().rpartition(')')[2].split()
    wakes = 0
    for thread in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/status' % (pid, thread)) as status:
            wakes += int(re.search(r'^voluntary_ctxt_switches:\s*(\d+)', status.read(), re.M)[1])
    return int(fields[11]) + int(fields[12]), wakes


def with_limits(node, soft, hard):
    node.prefix = ['prlimit', '--nofile=%d:%d' % (soft, hard)]


def answers(node):
    try:
        return node.call('GET', '/v1/agent/self', timeout_s=2) is not None
    except OSError:
        return False


def many(node):
    """Allocs of one task each, which is not started again when it has ended."""
    job = service(sleeper(), restart=restart_policy(0))
    job['TaskGroups'][0].update(Count=TASKS, ReschedulePolicy=NO_RESCHEDULE,
                                EphemeralDisk={'SizeMB': 110})
    node.run_job(job)
    wait_for('all tasks', lambda: len(states(node, 'running')) == TASKS)
    wait_for('what they run', lambda: len(sleepers(node)) == TASKS)


def states(node, state):
    """The states of tasks that are in STATE."""
    tasks = [alloc['TaskStates']['t'] for alloc in node.allocs()
             if (alloc.get('TaskStates') or {}).get('t')]
    return [task for task in tasks if task['State'] == state]


def sleepers(node):
    return {pid for pid, line in node.payloads().items() if line == 'sleep 1000'}


def the_soft_limit_is_raised_and_payloads_keep_theirs():
    node = Node()
    with_limits(node, 40, 4096)
    node.start()
    assert limits_of(node.process.pid) == (4096, 4096), limits_of(node.process.pid)
    assert table_of(node.process.pid) == 4096  # at once: with threads each doubling takes some ms
    many(node)
    assert limits_of(node.await_pid('sleep 1000')) == (40, 4096)
    payloads = sleepers(node)
    node.kill()
    node.start()
    wait_for('all tasks', lambda: len(states(node, 'running')) == TASKS)
    assert 'too few' not in node.log()
    assert sleepers(node) == payloads
    node.finish()


def too_few_for_all_payloads_burn_nothing_and_are_made_up_for():
    """The journal, the log and the loop take their share; what is left is not one for each.  That
    they run is seen without one, and so is an end."""
    node = Node()
    node.start()
    many(node)
    payloads = sleepers(node)
    assert len(payloads) == TASKS
    node.kill()
    with_limits(node, HARD, HARD)
    node.start(wait=False)
    wait_for('the restart', lambda: 'too few descriptors' in node.log() or not node.alive())
    assert node.alive(), node.log()
    answered, (ticks, wakes), begun = 0, work_of(node.process.pid), time.monotonic()
    for tried in range(1, CALLS + 1):
        answered += answers(node)
        wait_for('a while', lambda: time.monotonic() - begun > tried * PAUSE_S)
    after = work_of(node.process.pid)
    used = len(os.listdir('/proc/%d/fd' % node.process.pid))
    print('# %d of %d descriptors, %d of %d calls answered: %d ticks of CPU, %d wake-ups in %.1f s'
          % (used, HARD, answered, CALLS, after[0] - ticks, after[1] - wakes, CALLS * PAUSE_S))
    listed = node.cli('journal', 'list', '-dir', node.data, '-kind', 'task').stdout
    assert listed.count('RUNNING') == TASKS, listed
    assert answered == CALLS  # one at a time, by the descriptor that is kept for that
    assert after[0] - ticks < CALLS * PAUSE_S * HZ / 5
    assert after[1] - wakes < 40 * CALLS
    assert sleepers(node) == payloads

    for pid in sorted(payloads)[:TASKS - LEFT]:  # their descriptors come back
        os.kill(pid, signal.SIGKILL)
    wait_for('the ends to be told', lambda: len(states(node, 'dead')) == TASKS - LEFT, limit_s=60)
    wait_for('the others', lambda: len(states(node, 'running')) == LEFT, limit_s=60)
    assert sleepers(node) == set(sorted(payloads)[TASKS - LEFT:])
    assert all(task['Restarts'] == 0 for task in states(node, 'running'))
    node.kill()
    node.prefix = []
    node.start()
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it runs a node with real tasks')
        sys.exit(77)
    sys.exit(tap([
        the_soft_limit_is_raised_and_payloads_keep_theirs,
        too_few_for_all_payloads_burn_nothing_and_are_made_up_for,
    ]))
