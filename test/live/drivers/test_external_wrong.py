#!/usr/bin/env python3
"""A driver that is a plugin, and is wrong: it dies in mid-start, fails, forgets, shrugs, or is not well.

The plugin is test/plugins/driver.py.  I-1, I-2, I-8.  In a whole run it waits for 40 s.
"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(__file__))
from external import DriverNode, lacking  # noqa: E402
from lib import Refused, restart_policy, tap, wait_for  # noqa: E402


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


def who_reads_its_output_and_hangs_is_ended():
    node = DriverNode()
    node.begin()
    node.run('sleep 1000')
    node.await_running()
    os.kill(node.readers()[0], signal.SIGSTOP)
    for pid in node.payloads():
        os.kill(pid, signal.SIGKILL)
    wait_for('its end', node.dead)  # which waits for its last output, for some seconds
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


def main():
    if lacking():
        print(lacking())
        return 77
    return tap([a_start_whose_answer_is_lost_is_not_done_twice,
                what_fails_is_said_and_tried_again_or_not,
                what_it_knows_nothing_of_is_no_success,
                who_reads_its_output_and_hangs_is_ended,
                one_that_is_not_well_gets_no_tasks])


if __name__ == '__main__':
    sys.exit(main())
