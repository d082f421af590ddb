#!/usr/bin/env python3
"""Data directories that were copied, moved and restored: no two agents are ever one node."""
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, service, sleeper, start_ticks, tap, wait_for  # noqa: E402


def start_original():
    node = Node()
    node.start()
    node.run_job(service(sleeper()))
    wait_for('the task', node.running)
    return node, node.await_pid('sleep 1000')


def copy_of(node, keeps_note=True):
    """Another node whose data directory is a copy, as a backup makes one."""
    copy = Node()
    shutil.rmtree(copy.data, ignore_errors=True)
    subprocess.run(['cp', '-a', '--no-preserve=links', node.data, copy.data], check=True)
    if not keeps_note:
        os.unlink(os.path.join(copy.data, 'client', 'home'))
    return copy


def with_flag(node, flag):
    command = Node.command(node)
    node.command = lambda: command + [flag]


def refusal(node):
    """What an agent says that does not start."""
    node.start(wait=False)
    assert node.process.wait(timeout=60) == 1, node.log()
    return node.log()


def a_copy_of_a_running_node_is_refused():
    node, pid = start_original()
    ticks = start_ticks(pid)
    for keeps_note in (True, False):
        copy = copy_of(node, keeps_note)
        said = refusal(copy)
        assert ('is a copy, or was moved or restored' if keeps_note else 'runs already') in said, said
        assert node.data[:40] in said, said
        if keeps_note:
            with_flag(copy, '-take-over')  # not while its agent runs
            said = refusal(copy)
            assert 'runs already' in said and '-new-node' in said, said
        assert start_ticks(pid) == ticks
        copy.close()
    assert node.running()['Restarts'] == 0
    node.kill()
    node.start()
    assert node.await_pid('sleep 1000') == pid and start_ticks(pid) == ticks
    node.finish()


def a_copy_of_a_node_whose_agent_is_away_is_refused():
    node, pid = start_original()
    ticks = start_ticks(pid)
    node.kill()
    for keeps_note in (True, False):
        copy = copy_of(node, keeps_note)
        said = refusal(copy)
        assert '-take-over' in said, said
        assert start_ticks(pid) == ticks
        copy.close()
    node.start()
    wait_for('the task', node.running)
    assert node.await_pid('sleep 1000') == pid and start_ticks(pid) == ticks
    node.finish()


def a_copy_becomes_a_node_of_its_own():
    node, pid = start_original()
    mark = node.node_mark()
    copy = copy_of(node)
    with_flag(copy, '-new-node')
    marks = []
    for _ in range(2):  # the flag may stay: the second time it is the node's own directory
        copy.start()
        marks.append(copy.node_mark())
        assert copy.get('/v1/jobs') == [] and copy.allocs() == []
        assert copy.terminate() == 0
    assert marks[0] != mark and marks[1] == marks[0], (mark, marks)
    assert sorted(os.listdir(os.path.join(copy.data, 'client', 'copied.1'))) == \
        ['alloc', 'home', 'journal', 'mark', 'shim']
    assert os.listdir(os.path.join(copy.data, 'alloc')) == []
    assert not os.path.exists(os.path.join(copy.data, 'client', 'copied.2'))
    assert start_ticks(pid) is not None and node.running()['Restarts'] == 0
    copy.close()
    node.finish()


def a_copy_takes_over():
    """As after a move to another disk: what still runs from the old one is ended, never doubled."""
    node, pid = start_original()
    mark = node.node_mark()
    node.kill()
    copy = copy_of(node)
    with_flag(copy, '-take-over')
    copy.start()
    wait_for('another payload', lambda: start_ticks(pid) is None and copy.running()
             and copy.pid_of('sleep 1000') not in (None, pid))
    assert copy.node_mark() == mark
    copy.kill()
    del copy.command  # from now on it is the node's own place
    copy.start()
    wait_for('the task', copy.running)
    said = refusal(node)  # the one that was left stays where it is, and is no node any more
    assert 'runs already' in said, said
    copy.finish()
    node.close()


def a_directory_that_is_renamed_stays_the_node():
    node, pid = start_original()
    ticks = start_ticks(pid)
    for name in ('moved', 'again'):
        node.kill()
        old, node.data = node.data, os.path.join(node.dir, name)
        os.rename(old, node.data)
        node.start()
        wait_for('the task', node.running)
        assert node.await_pid('sleep 1000') == pid and start_ticks(pid) == ticks
        with open(os.path.join(node.data, 'client', 'home')) as note:
            assert json.load(note)['path'] == node.data
    node.kill()
    node.boot('10000000-0000-4000-8000-000000000000')
    for living in node.shims() + [pid]:
        os.kill(living, signal.SIGKILL)
    for point in node.mounts():
        subprocess.run(['umount', point], check=True)
    node.start()  # after a boot
    wait_for('the task', node.running)
    node.finish()


def a_backup_put_back_in_its_place_is_the_node():
    node, pid = start_original()
    assert node.terminate() == 0
    backup = os.path.join(node.dir, 'backup.tar')
    parts = ['client/home', 'client/mark', 'client/journal']
    subprocess.run(['tar', '-C', node.data, '-cf', backup] + parts, check=True)
    subprocess.run(['rm', '-r'] + parts, cwd=node.data, check=True)
    subprocess.run(['tar', '-C', node.data, '-xf', backup], check=True)
    node.start()
    wait_for('the task', node.running)
    assert node.await_pid('sleep 1000') == pid
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it runs nodes with real tasks')
        sys.exit(77)
    sys.exit(tap([
        a_copy_of_a_running_node_is_refused,
        a_copy_of_a_node_whose_agent_is_away_is_refused,
        a_copy_becomes_a_node_of_its_own,
        a_copy_takes_over,
        a_directory_that_is_renamed_stays_the_node,
        a_backup_put_back_in_its_place_is_the_node,
    ]))
