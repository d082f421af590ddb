#!/usr/bin/env python3
"""A plugin that is a program: launched, configured by its schema, taken over by the next daemon,
launched again when it ends, refused by name when it is none.

The plugin is test/plugins/device.py.  I-3, I-32.
"""
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from devices import DeviceNode, lacking, start_ticks, wait_for  # noqa: E402
from lib import tap  # noqa: E402


def it_is_configured_and_told_of():
    node = DeviceNode(plugin='directory = "%s"\n    flags = [{ k = 1 }]')
    node.start()
    node.await_ready()
    node.await_instances({'a': True, 'b': True})
    config = json.loads(node.lines('config')[0])
    assert config == {'directory': node.devices, 'flags': [{'k': '1'}], 'limit': 7}, config
    group = node.of_node()['NodeResources']['Devices'][0]
    assert (group['Vendor'], group['Type'], group['Name']) == ('test', 'file', 'plain'), group
    assert group['Attributes']['size'] == {'Float': None, 'Int': 4, 'String': None, 'Bool': None,
                                           'Unit': 'GiB'}, group
    node.put_device('c.bad')
    os.unlink(os.path.join(node.devices, 'a'))
    node.await_instances({'b': True, 'c.bad': False})

    def has_stats():
        groups = node.get('/v1/client/stats')['DeviceStats']
        return groups and groups[0]['InstanceStats']['b']

    stats = wait_for('statistics', has_stats)
    assert stats['Summary'] == {'IntNumeratorVal': 0, 'IntDenominatorVal': 9, 'Unit': 'bytes',
                                'Desc': 'of it'}, stats
    assert stats['Stats']['Nested']['inner']['Attributes']['deep']['IntNumeratorVal'] == 5, stats
    assert stats['Timestamp'].startswith('2020-09-13T12:26:40'), stats
    shown = node.cli('node', 'status', '-self', '-verbose', '-stats').stdout
    for words in ('test/file/plain', 'c.bad', 'it has gone bad', 'inner.deep', '0 / 9 bytes', 'READY'):
        assert words in shown, shown
    assert not [word for word in node.log(1 << 20).split('\n') if 'level=ERROR' in word]
    environ = open('/proc/%d/environ' % node.processes()[0]).read()
    assert 'CAIRN_TEST_MARK' not in environ, 'it has all of the daemon\'s environment'
    node.close()


def the_next_daemon_takes_it_over():
    node = DeviceNode()
    node.start()
    pid = node.await_ready()
    ticks = start_ticks(pid)
    node.await_instances({'a': True, 'b': True})
    node.kill()
    assert start_ticks(pid) == ticks, 'it ended with the daemon'
    node.start()
    assert node.await_ready() == pid and start_ticks(pid) == ticks
    # It does not tell its devices again, and it is not configured again.
    node.await_instances({'a': True, 'b': True})
    assert len(node.lines('config')) == 1, node.lines('config')
    assert node.terminate() == 0
    assert start_ticks(pid) == ticks, 'an agent that is stopped leaves it, as it leaves tasks'
    node.start()
    assert node.await_ready() == pid
    # It goes on being watched, though it is nobody's child.
    os.kill(pid, signal.SIGKILL)
    node.await_another(pid)
    assert len(node.processes()) == 1, node.processes()
    node.await_instances({'a': True, 'b': True})
    node.close()


def both_die_at_once_and_at_any_moment():
    node = DeviceNode()
    for pause_s in (0.02, 0.05, 0.1, 0.2, 0.4):  # around its launch, which takes about that long
        node.start(wait=False)
        time.sleep(pause_s)
        node.kill()
    node.start()
    pid = node.await_ready()
    assert node.processes() == [pid], 'two of them run'
    node.kill()
    node.kill_plugin()
    node.start()
    node.await_another(pid)
    assert len(node.processes()) == 1, node.processes()
    node.close()


def another_configuration_is_another_process():
    node = DeviceNode()
    node.start()
    pid = node.await_ready()
    node.kill()
    node.write(plugin='directory = "%s"\n    limit = 8' % node.devices)
    node.start()
    node.await_another(pid)
    assert json.loads(node.lines('config')[-1])['limit'] == 8
    assert start_ticks(pid) is None
    # Nobody names it any more: it ends, and nothing of it stays.
    node.kill()
    node.write(blocks='')
    node.start()
    wait_for('it to be gone', lambda: not node.processes() and node.plugin() is None)
    wait_for('its files to be gone',
             lambda: not os.path.exists(os.path.join(node.data, 'client/plugins/files')))
    assert 'is not run: no block plugin' in node.log(1 << 20)
    assert node.of_node()['NodeResources']['Devices'] == []
    node.close()


def what_is_wrong_with_one_is_said_and_costs_nobody_else():
    wrong = {'foreign': 'it speaks another protocol than "grpc"',
             'babble': 'is not that of a plugin',
             'other': 'neither for devices nor for a driver',
             'future': 'it does not speak version v0.1.0',
             'refuse': 'SetConfig failed: not on this day',
             'endless': 'its schema is too deep'}
    for word, why in wrong.items():
        node = DeviceNode()
        node.misbehave(word)
        node.start()
        plugin = node.await_state('REJECTED')
        assert why in plugin['Description'], (word, plugin)
        assert why.replace('"', '\\"') in node.log(1 << 20), word
        wait_for('its process to end', lambda: not node.processes())
        shown = node.cli('node', 'status', '-self', '-verbose').stdout
        assert 'REJECTED' in shown, shown
        node.close()


def a_configuration_that_does_not_fit_is_refused_without_its_values():
    for plugin, why in (('directory = "/tmp"\n    secret = "hunter2"', 'there is no such argument'),
                        ('directory = "/tmp"\n    limit = "hunter2"', 'limit'),
                        ('limit = 3', 'is required')):
        node = DeviceNode(plugin=plugin)
        node.start()
        assert why in node.await_state('REJECTED')['Description'], node.plugin()
        assert 'hunter2' not in node.log(1 << 20)
        node.close()


def what_may_come_right_is_tried_again():
    for word, why in (('die', 'no such hardware'), ('unwell', 'it does not serve'),
                      ('garbage', 'no message'), ('silent', 'no more of its devices')):
        node = DeviceNode()
        node.misbehave(word)
        node.start()
        wait_for('the trouble with %s to be told' % word,
                 lambda: why in node.log(1 << 20), 60)
        assert node.instances() == {}
        node.misbehave(None)
        wait_for('it to come right', lambda: node.instances() == {'a': True, 'b': True}, 90)
        node.close()


def main():
    if lacking():
        print(lacking())
        return 77
    return tap([it_is_configured_and_told_of,
                the_next_daemon_takes_it_over,
                both_die_at_once_and_at_any_moment,
                another_configuration_is_another_process,
                what_is_wrong_with_one_is_said_and_costs_nobody_else,
                a_configuration_that_does_not_fit_is_refused_without_its_values,
                what_may_come_right_is_tried_again])


if __name__ == '__main__':
    sys.exit(main())
