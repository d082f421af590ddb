#!/usr/bin/env python3
"""A driver that is a plugin: its tasks are started, told of and ended by it, found again by the next
daemon and by the next plugin, and nothing that they write is lost.

The plugin is test/plugins/driver.py.  I-1, I-3, I-7, I-8, I-32.  In a whole run it waits for 60 s.
"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Refused, events, exit_codes, milliseconds, restart_policy, service, start_ticks, tap, wait_for  # noqa: E402
from plugged import PluginNode, lacking  # noqa: E402

COUNTS = 'i=0; while [ ! -e %s/go ]; do i=$((i+1)); echo line $i; sleep 0.02; done; exit 7'


def task(command, **fields):
    made = {'Name': 't', 'Driver': 'scripts', 'Config': {'command': command},
            'KillTimeout': milliseconds(2000), 'Resources': {'CPU': 50, 'MemoryMB': 32}}
    made.update(fields)
    return made


class DriverNode(PluginNode):
    def __init__(self, config=''):
        super().__init__('scripts', 'driver.py')
        self.write(config)

    def of_driver(self, name='scripts'):
        return self.of_node()['Drivers'].get(name)

    def await_driver(self):
        wait_for('the driver to be healthy', lambda: (self.of_driver() or {}).get('Healthy'), 30)

    def begin(self):
        self.start()
        self.await_driver()

    def run(self, command='exec sleep 1000', restart=None, **fields):
        self.run_job(service(task(command, **fields), restart=restart or restart_policy(0)))

    def go(self):
        """The word that tasks of these tests wait for."""
        open(os.path.join(self.base, 'go'), 'w').close()

    def await_running(self):
        return wait_for('the task to run', self.running)

    def await_calls(self, word, count=1):
        wait_for('%d times %s' % (count, word),
                 lambda: len([call for call in self.lines('calls') if call.startswith(word + ' ')]) >= count,
                 40)  # a plugin is launched again after a pause

    def printed(self, stream='stdout'):
        return self.text('GET', '/v1/client/fs/logs/%s?task=t&type=%s&plain=true' % (
            self.alloc('job', 'g')['ID'], stream))

    def readers(self):
        return [pid for pid in self.shims()
                if open('/proc/%d/cmdline' % pid).read().startswith('cairn-logs')]


def the_node_has_it_and_its_tasks_run():
    node = DriverNode()
    node.begin()
    driver = node.of_driver()
    assert driver['Attributes']['driver.scripts.version'] == '7', driver
    attributes = node.of_node()['Attributes']
    assert attributes['driver.scripts'] == '1' and attributes['driver.scripts.size'] == '4GiB', attributes
    assert attributes['cpu.arch'] != 'abacus'
    assert json.loads(node.lines('config')[0]) == {'shell': '/bin/sh'}
    node.run('echo to out; echo to err >&2; exec sleep 1000', Env={'SECRET_WORD': 'hunter2'},
             Config={'command': 'echo to out; echo to err >&2; exec sleep 1000 # ${NOMAD_TASK_NAME}',
                     'codes': ['7', 8]})
    state = node.await_running()
    wait_for('its output', lambda: node.printed() == 'to out\n' and node.printed('stderr') == 'to err\n')
    told = json.loads(node.lines('started')[0])
    alloc = node.alloc('job', 'g')['ID']
    assert told['config'] == {'command': 'echo to out; echo to err >&2; exec sleep 1000 # t',
                              'codes': [7, 8], 'quiet': False}, told
    assert told['id'] == '%s/t/00000001' % alloc and told['alloc'] == alloc, told
    assert told['job'] == ['job', 'job', 'default'] and told['group'] == 'g', told
    assert (told['cpu'], told['memory']) == (50, 32 << 20), told
    assert told['node'][1] == node.get('/v1/nodes')[0]['ID'], told
    assert told['env']['SECRET_WORD'] == 'hunter2' and told['env']['NOMAD_TASK_NAME'] == 't', told
    said = [event for event in node.running()['Events'] if event['Type'] == 'Driver']
    assert [event['DisplayMessage'] for event in said] == ['a shell is looked for'], said
    # What a task was told is its own: neither in the log, nor for others to read.
    assert 'hunter2' not in node.log(1 << 20)
    for root, _, files in os.walk(os.path.join(node.data, 'client')):
        for name in files:
            path = os.path.join(root, name)
            if os.path.isfile(path) and b'hunter2' in open(path, 'rb').read():
                assert os.stat(path).st_mode & 0o77 == 0, path
    node.put('/v1/client/allocation/%s/signal' % alloc, {'Signal': 'SIGUSR1', 'Task': 't'})
    node.await_calls('signal:SIGUSR1')
    wait_for('its end', node.dead)
    assert exit_codes(node.dead()) == [128 + signal.SIGUSR1], events(node.dead())
    assert state['Restarts'] == 0
    node.finish()


def nothing_is_lost_when_all_die():
    node = DriverNode()
    node.begin()
    node.run(COUNTS % node.base)
    node.await_running()
    wait_for('output', lambda: 'line 20\n' in node.printed())
    node.kill()                                            # the daemon
    node.start()
    node.await_calls('recover')
    node.kill_plugin()                                     # its plugin
    node.await_calls('recover', 2)
    os.kill(node.readers()[0], signal.SIGKILL)             # who reads its output
    wait_for('the next one to read', lambda: len(node.readers()) == 1)
    node.kill()                                            # all of them
    node.kill_plugin()
    node.start()
    node.await_calls('recover', 3)
    node.go()
    wait_for('its end', node.dead)
    assert exit_codes(node.dead()) == [7], node.dead()
    lines = node.printed().split('\n')[:-1]
    assert lines == ['line %d' % (i + 1) for i in range(len(lines))] and len(lines) > 20, lines
    assert len(node.lines('started')) == 1
    assert len(node.lines('config')) == 3, 'once for each process'
    node.finish()


def an_end_is_told_once_whoever_was_away():
    node = DriverNode()
    node.begin()
    node.run('while [ ! -e %s/go ]; do sleep 0.02; done; exit 3' % node.base)
    node.await_running()
    node.kill()
    node.kill_plugin()
    node.go()
    wait_for('it to have ended', lambda: not node.payloads())
    node.start()
    wait_for('its end', node.dead, 30)
    assert exit_codes(node.dead()) == [3], node.dead()
    node.finish()


def a_stop_goes_on_over_a_crash_and_ends_by_force():
    node = DriverNode()
    node.begin()
    node.run('trap "" TERM INT; sleep 1000', KillTimeout=milliseconds(1000))
    node.await_running()
    node.misbehave('deaf')
    node.call('DELETE', '/v1/job/job')
    node.await_calls('stop:')
    node.kill()
    node.start()
    node.await_calls('stop:', 2)
    node.misbehave(None)
    node.kill_plugin()                # the next one hears it, too, and what time is left: none
    wait_for('its end', lambda: node.dead() and not node.payloads(), 40)
    node.finish()


def a_start_whose_answer_is_lost_is_not_done_twice():
    for word in ('dies', 'dies-late'):
        node = DriverNode()
        node.begin()
        node.misbehave(word)
        node.run(restart=restart_policy(3, 300))
        wait_for('its start', lambda: node.lines('started'))
        node.misbehave(None)
        wait_for('the next start', lambda: node.running() and len(node.lines('started')) == 2, 40)
        ids = [json.loads(line)['id'][-1] for line in node.lines('started')]
        assert ids == ['1', '2'], (word, ids)
        shells = [line for line in node.payloads().values() if line.startswith('/bin/sh')]
        assert len(shells) == 1, shells
        node.finish()


def what_fails_is_said_and_tried_again_or_not():
    for word, restarts, why in (('fails', False, 'no such luck'), ('may-come', True, 'no such luck'),
                                ('garbage', False, "the task's handle is missing")):
        node = DriverNode()
        node.begin()
        node.misbehave(word)
        node.run(restart=restart_policy(2, 50))
        wait_for('failures', lambda: len(node.lines('started')) == (3 if restarts else 1) and node.dead())
        said = [event['DisplayMessage'] for event in node.dead()['Events']
                if event['Type'] == 'Driver Failure']
        assert said and all(why in one for one in said), said
        assert not node.payloads(), node.payloads()
        node.finish()
    node = DriverNode()
    node.begin()
    node.run(Config={'command': 'true', 'unheard': 1})
    wait_for('its failure', node.dead)
    assert 'unheard' in json.dumps(node.dead()['Events']) and not node.lines('started')
    node.finish()


def what_it_knows_nothing_of_is_no_success():
    for word, why in (('forgets', 'nothing of it is left'), ('shrugs', 'it got lost in the mail')):
        node = DriverNode()
        node.begin()
        node.run('sleep 1000')
        node.await_running()
        node.misbehave(word)
        if word == 'forgets':
            node.kill_plugin()
        else:
            for pid in node.payloads():
                os.kill(pid, signal.SIGKILL)
        wait_for('its end', node.dead, 40)
        assert node.dead()['Failed'] and why in json.dumps(node.dead()['Events']), node.dead()
        for pid in node.payloads():
            os.kill(pid, signal.SIGKILL)
        node.misbehave(None)
        node.finish()


def one_that_is_not_well_gets_no_tasks():
    node = DriverNode()
    node.misbehave('ill')
    node.start()
    node.await_state('READY')
    wait_for('its state', lambda: (node.of_driver() or {}).get('HealthDescription') == 'it feels ill')
    assert not node.of_driver()['Healthy'] and node.of_driver()['Detected']
    node.run()
    assert node.alloc('job', 'g') is None
    node.misbehave(None)
    node.await_running()
    node.finish()
    node = DriverNode()
    node.misbehave('taken')
    node.start()
    assert "one of the agent's own" in node.await_state('REJECTED')['Description']
    try:
        node.run()
        raise AssertionError('a driver that nobody has was taken')
    except Refused as refused:
        assert 'unknown driver' in refused.text, refused
    node.close()
    node = DriverNode('client {\n options = { "driver.denylist" = "scripts" }\n}')
    node.start()
    node.await_state('READY')
    assert 'denylist' in node.of_driver()['HealthDescription'] and not node.of_driver()['Detected']
    node.close()


def tasks_wait_for_a_plugin_that_is_named_again():
    node = DriverNode()
    node.begin()
    node.run(COUNTS % node.base)
    node.await_running()
    node.kill()
    node.write(blocks='')
    node.start()
    wait_for('the plugin to end', lambda: not node.processes() and node.plugin() is None)
    assert node.payloads() and node.running()
    node.kill()
    node.write()
    node.start()
    node.await_calls('recover')
    node.go()
    wait_for('its end', node.dead)
    assert exit_codes(node.dead()) == [7], node.dead()
    node.finish()
    # Another configuration is another process, and the same task.
    node = DriverNode()
    node.begin()
    node.run(COUNTS % node.base)
    node.await_running()
    pid = node.plugin()['Pid']
    node.kill()
    node.write(plugin='shell = "/bin/dash"')
    node.start()
    node.await_calls('recover')
    assert node.await_ready() != pid and start_ticks(pid) is None
    node.go()
    wait_for('its end', node.dead)
    assert exit_codes(node.dead()) == [7], node.dead()
    node.finish()


def commands_run_in_its_tasks_without_input():
    node = DriverNode()
    node.begin()
    node.run()
    node.await_running()
    alloc = node.alloc('job', 'g')['ID']

    def run(*words, flags=('-i=false', '-t=false')):
        return node.cli('alloc', 'exec', *flags, '-task', 't', alloc, *words, check=False)

    done = run('/bin/sh', '-c', 'echo $NOMAD_TASK_NAME; exit 3')
    assert (done.returncode, done.stdout) == (3, 't\n'), done
    done = run('/bin/sh', '-c', 'i=0; while [ $i -lt 10000 ]; do i=$((i+1)); echo line $i; done')
    assert done.stdout.split('\n')[:-1] == ['line %d' % (i + 1) for i in range(10000)]
    done = run('/bin/cat', flags=('-i=true', '-t=true'))
    assert done.returncode != 0 and 'gets no terminal and no input' in done.stdout, done
    node.misbehave('shrugs')
    done = run('/bin/true')
    assert done.returncode != 0 and 'it got lost in the mail' in done.stdout, done
    node.misbehave(None)
    node.finish()


def main():
    if lacking():
        print(lacking())
        return 77
    return tap([the_node_has_it_and_its_tasks_run,
                nothing_is_lost_when_all_die,
                an_end_is_told_once_whoever_was_away,
                a_stop_goes_on_over_a_crash_and_ends_by_force,
                a_start_whose_answer_is_lost_is_not_done_twice,
                what_fails_is_said_and_tried_again_or_not,
                what_it_knows_nothing_of_is_no_success,
                one_that_is_not_well_gets_no_tasks,
                tasks_wait_for_a_plugin_that_is_named_again,
                commands_run_in_its_tasks_without_input])


if __name__ == '__main__':
    sys.exit(main())
