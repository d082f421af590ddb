#!/usr/bin/env python3
"""A driver that is a plugin: its tasks are started, told of and ended by it, found again by the next
daemon and by the next plugin, and nothing that they write is lost.

The plugin is test/plugins/driver.py.  I-1, I-3, I-7, I-8, I-32.  In a whole run it waits for 40 s.
"""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
from external import COUNTS, DriverNode, lacking  # noqa: E402
from lib import events, exit_codes, milliseconds, start_ticks, tap, wait_for  # noqa: E402
from sessions import Session, pids  # noqa: E402


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


def commands_run_in_its_tasks():
    node = DriverNode()
    node.begin()
    node.run()
    node.await_running()
    alloc = node.alloc('job', 'g')['ID']

    def run(*words):
        return node.cli('alloc', 'exec', '-i=false', '-t=false', '-task', 't', alloc, *words, check=False)

    done = run('/bin/sh', '-c', 'echo $NOMAD_TASK_NAME; exit 3')
    assert (done.returncode, done.stdout) == (3, 't\n'), done
    done = run('/bin/sh', '-c', 'i=0; while [ $i -lt 10000 ]; do i=$((i+1)); echo line $i; done')
    assert done.stdout.split('\n')[:-1] == ['line %d' % (i + 1) for i in range(10000)]
    meows = b'meow\n' * 100000  # 500 kB there and back
    done = subprocess.run([os.path.join(node.build, 'cairn'), 'alloc', 'exec', '-t=false', '-task', 't', alloc,
                           '/bin/cat'], env=dict(os.environ, NOMAD_ADDR='http://127.0.0.1:%d' % node.port),
                          input=meows, stdout=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stdout == meows) == (0, True), (done.returncode, len(done.stdout))
    script = ('tty; until [ "$(stty size)" = "33 111" ]; do sleep 0.05; done; read line; echo "got $line"; '
              'cat; echo over; exit 5')
    session = Session(node, alloc, 't', ['/bin/sh', '-c', script], tty=True)
    session.hear_until('/dev/pts/')
    session.send({'tty_size': {'height': 33, 'width': 111}})
    session.type('meow\n')
    session.hear_until('got meow')
    session.send({'stdin': {'close': True}})
    assert session.hear_all().code == 5 and b'over' in session.out['stdout'], session.out
    left = Session(node, alloc, 't', ['/bin/sh', '-c', 'echo up; exec sleep 100015']).hear_until('up')
    wait_for('it to be there', lambda: pids('sleep 100015'))
    left.leave()
    wait_for('what nobody listens to any more to end', lambda: not pids('sleep 100015'))
    node.misbehave('shrugs')
    waiting = Session(node, alloc, 't', ['/bin/sh', '-c', 'read line; exit 4'])
    waiting.type('its input stays open\n')
    assert waiting.hear_all().code != 4 and 'it got lost in the mail' in waiting.closed[1], waiting.closed
    done = run('/bin/true')
    assert done.returncode != 0 and 'it got lost in the mail' in done.stdout, done
    node.misbehave(None)
    node.finish()


def what_its_tasks_use_is_what_the_driver_says():
    node = DriverNode()
    node.begin()
    node.misbehave('shrugs')
    node.run()
    node.await_running()
    alloc = node.alloc('job', 'g')['ID']

    def used():
        """None while it is not known to run."""
        return node.get('/v1/client/allocation/%s/stats' % alloc)['Tasks'].get('t')

    wait_for('it to be asked again', lambda: used() and len(
        [call for call in node.lines('calls') if call.startswith('usage ')]) > 1)
    assert used()['ResourceUsage']['MemoryStats']['RSS'] == 0  # it does not say
    node.misbehave(None)
    wait_for('it to be said', lambda: used()['ResourceUsage']['MemoryStats']['RSS'] >= 3 << 20)
    said = used()
    memory, cpu = said['ResourceUsage']['MemoryStats'], said['ResourceUsage']['CpuStats']
    assert (memory['Cache'], memory['Swap'], memory['Usage'], memory['MaxUsage']) == (
        2 << 20, 3 << 20, 4 << 20, 9 << 20), memory
    assert abs(cpu['UserMode'] - 30) < 1 and abs(cpu['SystemMode'] - 7.5) < 1, cpu
    assert cpu['Percent'] == 37.5 and cpu['ThrottledTime'] == 2000, cpu
    assert said['Timestamp'] // 10**9 == 1700000000 + memory['RSS'] // (1 << 20), said
    node.kill()
    node.start()
    wait_for('it to be said again', lambda: (used() or said)['ResourceUsage']['MemoryStats']['RSS'] < memory['RSS'])
    wait_for('more of it', lambda: used()['ResourceUsage']['MemoryStats']['RSS'] > memory['RSS'])
    assert used()['ResourceUsage']['CpuStats']['Percent'] == 37.5
    node.finish()


def main():
    if lacking():
        print(lacking())
        return 77
    return tap([the_node_has_it_and_its_tasks_run,
                nothing_is_lost_when_all_die,
                an_end_is_told_once_whoever_was_away,
                a_stop_goes_on_over_a_crash_and_ends_by_force,
                tasks_wait_for_a_plugin_that_is_named_again,
                commands_run_in_its_tasks,
                what_its_tasks_use_is_what_the_driver_says])


if __name__ == '__main__':
    sys.exit(main())
