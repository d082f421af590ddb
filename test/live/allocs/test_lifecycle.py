#!/usr/bin/env python3
"""Lifecycles as a user drives them: types of jobs, limits, restarts, signals, and what events say."""
import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, PATIENCE, Node, Refused, events, milliseconds, raw_exec,  # noqa: E402
                 restart_policy, sleeper, tap, wait_for)


def job_of(kind, *tasks, **group):
    return {'ID': 'job', 'Name': 'job', 'Type': kind, 'Datacenters': ['dc1'],
            'TaskGroups': [{'Name': 'g', 'RestartPolicy': restart_policy(0),
                            'ReschedulePolicy': NO_RESCHEDULE, 'Tasks': list(tasks), **group}]}


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
    limit_ms = int(4000 * PATIENCE)  # it has to be seen to run before
    node = Node()
    node.start()
    node.run_job(job_of('batch', sleeper(),
                        raw_exec('last', 'exit 0', Lifecycle={'Hook': 'poststop'}),
                        MaxRunDuration=milliseconds(limit_ms)))
    wait_for('the task', node.running)
    node.kill()
    over = time.monotonic() + limit_ms / 1000 + 0.1
    wait_for('the end of its time, with nobody there', lambda: time.monotonic() > over)
    node.start()
    wait_for('its end', ended(node, 'complete'))
    alloc = node.alloc('job', 'g')
    assert alloc['ClientDescription'] == 'allocation exceeded max_run_duration', alloc
    assert 'allocation exceeded max_run_duration' in messages(node, 't'), messages(node, 't')
    assert node.task('job', 'g', 'last')['StartedAt'] in (None, '0001-01-01T00:00:00Z')
    assert node.get('/v1/job/job')['Status'] == 'dead'
    node.finish()


def a_user_restarts_what_runs_and_nothing_that_has_ended():
    node = Node()
    node.start()
    node.run_job(job_of('service', sleeper(), sleeper('other'),
                        raw_exec('init', 'exit 0', Lifecycle={'Hook': 'prestart'})))
    wait_for('the tasks', lambda: node.running() and node.running('other'))
    alloc = node.alloc('job', 'g')['ID']

    def restarted(*times):
        return lambda: node.running() and node.running('other') and times == tuple(
            node.task('job', 'g', task)['Restarts'] for task in ('t', 'other', 'init'))

    node.cli('alloc', 'restart', '-task', 't', alloc)
    wait_for('one restart', restarted(1, 0, 0))
    assert 'User requested task to restart' in messages(node, 't')
    node.kill()
    node.start()
    wait_for('the tasks', restarted(1, 0, 0))
    node.cli('alloc', 'restart', alloc)
    wait_for('a restart of both', restarted(2, 1, 0))
    assert 'User requested running tasks to restart' in messages(node, 'other')
    answer = node.cli('alloc', 'restart', '-all-tasks', '-task', 't', alloc, check=False)
    assert answer.returncode != 0 and 'task name cannot be set' in answer.stdout, answer
    node.cli('alloc', 'signal', '-s', 'SIGKILL', '-task', 'other', alloc)
    wait_for('its end', ended(node, 'failed'))
    signals = [event for event in node.task('job', 'g', 'other')['Events']
               if event['Type'] == 'Signaling']
    assert [event['DisplayMessage'] for event in signals] == ['Task being sent a signal']
    assert signals[0]['Details'] == {'signal': 'SIGKILL'}, signals
    assert 'Task\'s sibling "other" failed' in messages(node, 't')
    node.finish()


def a_user_runs_the_whole_lifecycle_again_over_a_crash():
    node = Node()
    node.start()
    trail = os.path.join(node.dir, 'trail')
    say = 'echo %%s >> %s; ' % trail
    go = os.path.join(node.dir, 'go')
    stubborn = 'trap "%s while [ ! -e %s ]; do sleep 0.05; done; %s exit 0" INT; %s while :; do sleep 0.05; done'
    node.run_job(job_of(
        'service', raw_exec('t', stubborn % (say % 'told', go, say % 'end', say % 'main'),
                            KillTimeout=milliseconds(25000)),
        raw_exec('init', say % 'init', Lifecycle={'Hook': 'prestart'}),
        raw_exec('after', 'until [ "$(tail -n 1 %s)" = main ]; do sleep 0.05; done; ' % trail + say % 'after',
                 Lifecycle={'Hook': 'poststart'}),
        raw_exec('last', say % 'last', Lifecycle={'Hook': 'poststop'})))

    def said():
        with open(trail, encoding='utf-8') as file:
            return file.read().split()

    def dead():
        return node.task('job', 'g', 'after')['State'] == 'dead'

    wait_for('all of it', lambda: node.running() and dead() and
             said() == ['init', 'main', 'after'])
    alloc = node.alloc('job', 'g')['ID']
    node.cli('alloc', 'restart', '-all-tasks', alloc)
    wait_for('the signal', lambda: said()[-1] == 'told')
    node.kill()  # while the main task takes its time to end
    with open(go, 'w', encoding='utf-8'):
        pass
    wait_for('its end, with nobody there', lambda: said()[-1] == 'end')
    node.start()
    wait_for('all of it again', lambda: node.running() and dead() and
             said() == ['init', 'main', 'after', 'told', 'end', 'init', 'main', 'after'])
    for task in ('t', 'init', 'after'):
        assert node.task('job', 'g', task)['Restarts'] == 1, task
        assert 'User requested all tasks to restart' in messages(node, task), messages(node, task)
    assert node.task('job', 'g', 'last')['StartedAt'] in (None, '0001-01-01T00:00:00Z')
    node.cli('job', 'stop', 'job')
    wait_for('its end', ended(node, 'complete'))
    assert said()[-2:] == ['end', 'last'], said()
    answer = node.cli('alloc', 'restart', '-all-tasks', alloc, check=False)
    assert answer.returncode != 0, answer
    node.finish()


def ids_that_run(node):
    return {alloc['ID'] for alloc in allocs_of(node) if alloc['ClientStatus'] == 'running'}


def a_job_is_restarted_so_many_at_a_time():
    node = Node()
    node.start()
    node.run_job(job_of('service', sleeper(), Count=3,
                        Update={'MaxParallel': 1, 'MinHealthyTime': 0}))
    wait_for('its deployment',
             lambda: node.get('/v1/job/job/deployment')['Status'] == 'successful')
    assert len(ids_that_run(node)) == 3
    before = sorted(alloc['ID'] for alloc in allocs_of(node))
    said = node.cli('job', 'restart', '-on-error', 'fail', '-batch-size', '2', 'job').stdout
    assert 'Restarting 3 allocations' in said and 'Job restart finished\n' in said, said
    assert sorted(alloc['ID'] for alloc in allocs_of(node)) == before
    assert all(alloc['TaskStates']['t']['Restarts'] == 1 for alloc in allocs_of(node))
    said = node.cli('job', 'restart', '-on-error', 'fail', '-reschedule', 'job').stdout
    assert said.count('is running') == 3, said
    wait_for('the end of those that were replaced',
             lambda: len(ids_that_run(node)) == 3 and not ids_that_run(node) & set(before))
    listed = {alloc['ID']: alloc for alloc in allocs_of(node)}
    assert all(listed[id]['NextAllocation'] in listed for id in before), listed
    answer = node.cli('job', 'restart', 'job', check=False)  # nobody is there to be asked
    assert answer.returncode == 0, answer.stdout
    answer = node.cli('job', 'restart', '-on-error', 'ask', 'job', check=False)
    assert answer.returncode == 3 and 'nobody can be asked' in answer.stdout, answer
    node.run_job(job_of('service', raw_exec('t', 'exec sleep 999'), Count=3,
                        Update={'MaxParallel': 1, 'MinHealthyTime': 200 * 10**9}))
    wait_for('its allocs', lambda: len(ids_that_run(node)) == 3)
    for on_error, ends in (('fail', 'Stopping job restart due to error'),
                           ('ask', 'Job restart finished with errors')):
        answer = node.cli('job', 'restart', '-yes', '-on-error', on_error, 'job', check=False)
        assert answer.returncode == 1 and ends in answer.stdout, answer
    node.finish()


class Terminal:
    """A command that somebody types at, and what it has said."""

    def __init__(self, node, *arguments):
        self.fd, end = pty.openpty()
        self.said = ''
        self.process = subprocess.Popen(
            [os.path.join(node.build, 'cairn'), *arguments], stdin=end, stdout=end, stderr=end,
            env=dict(os.environ, NOMAD_ADDR='http://127.0.0.1:%d' % node.port),
            preexec_fn=own_terminal, start_new_session=True)
        os.close(end)

    def hear(self):
        if select.select([self.fd], [], [], 0)[0]:
            try:
                self.said += os.read(self.fd, 4096).decode()
            except OSError:  # it has ended
                pass
        return self.said

    def expect(self, text):
        """Waits for TEXT, and forgets all up to its end."""
        wait_for(text, lambda: text in self.hear())
        before, self.said = self.said.split(text, 1)
        return before

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        status = self.process.wait(60 * PATIENCE)
        os.close(self.fd)
        return status


def own_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def somebody_at_a_terminal_is_asked_between_batches_and_at_ctrl_c():
    node = Node()
    node.start()
    go = os.path.join(node.dir, 'go')
    node.run_job(job_of('service', raw_exec(
        't', "trap 'while [ ! -e %s ]; do sleep 0.1; done; exit' TERM; "
        'while :; do sleep 0.1; done' % go, KillSignal='SIGTERM', KillTimeout=milliseconds(25000)),
        Count=3, Update={'MaxParallel': 1, 'MinHealthyTime': 0}))
    wait_for('its deployment',
             lambda: node.get('/v1/job/job/deployment')['Status'] == 'successful')

    def restarts():
        return sorted(alloc['TaskStates']['t']['Restarts'] for alloc in allocs_of(node))

    # while the first alloc is waited for
    terminal = Terminal(node, 'job', 'restart', '-yes', 'job')
    terminal.expect('Restarting running tasks')
    wait_for('the first to be told', lambda: any(
        'Restart Signaled' in events(alloc['TaskStates']['t']) for alloc in allocs_of(node)))
    terminal.type('\x03')
    terminal.expect('End here? [y/N] ')
    open(go, 'w').close()
    terminal.type('what\n')
    terminal.expect('Invalid answer "what"')
    terminal.expect('End here? [y/N] ')
    wait_for('the first', lambda: restarts() == [0, 0, 1])  # nothing follows meanwhile
    terminal.type('\n')
    terminal.expect('Going on')
    terminal.expect('Job restart finished')
    assert terminal.end() == 0
    assert restarts() == [1, 1, 1], restarts()

    # between two batches; a second one is an answer
    terminal = Terminal(node, 'job', 'restart', '-batch-size', '50%', '-batch-wait', '1h', 'job')
    terminal.expect('Waiting 1h0m0s')
    terminal.type('\x03')
    terminal.expect('End here?')
    terminal.type('n\n')
    terminal.expect('Going on')
    terminal.type('\x03')
    terminal.expect('End here?')
    terminal.type('\x03')
    terminal.expect('Job restart canceled')
    assert terminal.end() == 0
    assert restarts() == [1, 2, 2], restarts()

    # before each batch, until somebody says how long to wait
    terminal = Terminal(node, 'job', 'restart', '-batch-wait', 'ask', 'job')
    terminal.expect('Proceed with the next batch? [Y/n/<how long to wait>] ')
    terminal.type('25h\n')
    terminal.expect('Invalid answer "25h"')
    terminal.expect('Proceed with the next batch?')
    terminal.type('1ms\n')
    assert 'Proceed' not in terminal.expect('Job restart finished')
    assert terminal.end() == 0
    assert restarts() == [2, 3, 3], restarts()
    terminal = Terminal(node, 'job', 'restart', '-batch-wait', 'ask', 'job')
    terminal.expect('Proceed with the next batch?')
    terminal.type('\x03')
    terminal.expect('Job restart canceled')
    assert terminal.end() == 0
    assert sum(restarts()) == 9, restarts()
    node.finish()


def a_job_is_evaluated_and_started_where_a_user_asks():
    node = Node()
    node.start()
    node.run_job(job_of('batch', raw_exec('t', 'exit 1'),
                        ReschedulePolicy={'Attempts': 1, 'Interval': 3600 * 10**9,
                                          'Delay': 3600 * 10**9, 'DelayFunction': 'constant'}))
    wait_for('its failure', ended(node, 'failed'))
    first = allocs_of(node)[0]
    assert node.put('/v1/job/job/evaluate')['EvalID'] != ''
    assert len(allocs_of(node)) == 1
    for body in ({'EvalOptions': {}}, {'JobID': 'other'}):
        try:
            node.put('/v1/job/job/evaluate', body)
            raise AssertionError('evaluated: %s' % body)
        except Refused as refused:
            assert 'Job' in str(refused), refused
    node.cli('job', 'eval', '-force-reschedule', '-detach', 'job')
    second = wait_for('the second', lambda: [alloc for alloc in allocs_of(node)
                                             if alloc['ID'] != first['ID']])[0]
    assert node.get('/v1/allocation/' + first['ID'])['NextAllocation'] == second['ID']
    assert second['EvalID'] in [evaluation['ID'] for evaluation in node.get('/v1/evaluations')]
    listed = node.cli('eval', 'list', '-job', 'job', '-status', 'complete', '-verbose').stdout
    assert second['EvalID'] in listed, listed
    assert second['ID'][:8] in node.cli('eval', 'status', second['EvalID']).stdout
    said = node.cli('job', 'start', 'job', check=False)
    assert said.returncode == 1 and 'has not been stopped' in said.stdout, said
    node.cli('job', 'stop', 'job')
    node.cli('job', 'start', '-detach', 'job')
    assert not node.get('/v1/job/job')['Stop']
    said = node.cli('job', 'allocs', 'job', check=False)
    assert said.returncode == 3 and "is Nomad's" in said.stdout, said
    node.finish()


def a_stop_that_skips_its_delays_over_a_crash():
    node = Node()
    node.start()
    slow = {'ShutdownDelay': milliseconds(60000)}
    node.run_job(job_of('service', sleeper(**slow), **slow))
    wait_for('the task', node.running)
    assert 'no-shutdown-delay' in node.cli('alloc', 'stop', '-h').stdout
    begun = time.monotonic()
    node.cli('job', 'stop', '-no-shutdown-delay', 'job')
    assert ended(node, 'complete')() and time.monotonic() - begun < 50
    said = 'Skipping shutdown_delay of 1m0s before killing the task.'
    assert said in messages(node, 't'), messages(node, 't')

    node.run_job(job_of('service', sleeper(**slow)))
    wait_for('the task again', node.running)
    alloc = [alloc['ID'] for alloc in allocs_of(node) if alloc['DesiredStatus'] == 'run'][0]

    def says(kind):
        task = node.get('/v1/allocation/%s' % alloc)['TaskStates']['t']
        return kind in [event['Type'] for event in task['Events']]

    node.cli('job', 'stop', '-detach', 'job')
    wait_for('its delay', lambda: says('Waiting for shutdown delay'))
    node.kill()
    node.start()
    begun = time.monotonic()
    node.cli('alloc', 'stop', '-no-shutdown-delay', alloc)
    wait_for('its end', lambda: [one['ClientStatus'] for one in allocs_of(node)] ==
             ['complete', 'complete'])
    assert time.monotonic() - begun < 50
    assert not says('Skipping shutdown delay')  # it had begun
    node.finish()


def sidecars_end_with_the_mains_and_poststop_follows_all():
    node = Node()
    node.start()
    trail = os.path.join(node.dir, 'trail')
    say = 'echo %%s >> %s; ' % trail
    side = 'trap "%s exit 0" TERM; %s while :; do sleep 0.05; done'
    node.run_job(job_of(
        'batch',
        raw_exec('init', say % 'init', Lifecycle={'Hook': 'prestart'}),
        raw_exec('side', side % (say % 'side-ends', say % 'side'),
                 Lifecycle={'Hook': 'prestart', 'Sidecar': True}, KillSignal='SIGTERM'),
        raw_exec('main', say % 'main' + 'until grep -qx after {0} && grep -qx side {0}; '
                 'do sleep 0.05; done; '.format(trail) + say % 'main-ends'),
        raw_exec('after', say % 'after', Lifecycle={'Hook': 'poststart'}),
        raw_exec('last', say % 'last', Lifecycle={'Hook': 'poststop'})))
    wait_for('its end', ended(node, 'complete'))
    with open(trail) as file:
        lines = file.read().split()
    # What says its word beside others says it when it comes to it: "side" began before "main", and
    # "after" as soon as the first of the others ran.
    assert sorted(lines[:4]) == ['after', 'init', 'main', 'side'], lines
    assert lines.index('init') < min(lines.index('main'), lines.index('after')), lines
    begun = {task: node.task('job', 'g', task)['StartedAt'].rstrip('Z')
             for task in ('side', 'main', 'after')}
    assert begun['side'] < begun['main'] and begun['side'] < begun['after'], begun
    assert lines[4:] == ['main-ends', 'side-ends', 'last'], lines
    assert 'Main tasks in the group died' in messages(node, 'side')
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it runs a node with real tasks')
        sys.exit(77)
    sys.exit(tap([
        a_system_job_has_one_alloc_which_is_not_rescheduled,
        work_of_a_sysbatch_job_is_done_once_for_each_version,
        a_run_is_over_when_its_time_is_also_while_nobody_watches,
        a_user_restarts_what_runs_and_nothing_that_has_ended,
        a_user_runs_the_whole_lifecycle_again_over_a_crash,
        a_job_is_restarted_so_many_at_a_time,
        somebody_at_a_terminal_is_asked_between_batches_and_at_ctrl_c,
        a_job_is_evaluated_and_started_where_a_user_asks,
        a_stop_that_skips_its_delays_over_a_crash,
        sidecars_end_with_the_mains_and_poststop_follows_all,
    ]))
