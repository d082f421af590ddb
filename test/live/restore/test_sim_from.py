#!/usr/bin/env python3
"""The simulator tries restarts from a real node's journal: live, after a crash, copied, damaged."""
import hashlib
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (Node, flip, raw_exec, restart_policy, service, sleeper, start_ticks,  # noqa: E402
                 tap, wait_for)

SEEDS = 300


def sim(node, where, *arguments, status=0):
    """`cairn sim -from WHERE`: a crash at each point of a restart, then drawn lives."""
    done = subprocess.run([os.path.join(node.build, 'cairn'), 'sim', '-from', where,
                           *(arguments or ('-seeds', str(SEEDS), '-base', '1'))],
                          stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    assert done.returncode == status, (done.returncode, done.stdout)
    return done.stdout


def job(name, kind, *tasks, restart=None):
    made = service(*tasks, restart=restart)
    made['ID'] = made['Name'] = name
    made['Type'] = kind
    return made


def busy_node():
    """Tasks that run, that have ended, that wait to be started again, that have a sidecar."""
    node = Node()
    node.start()
    node.run_job(job('job', 'service', sleeper(),
                     raw_exec('beside', 'exec sleep 2000',
                              Lifecycle={'Hook': 'prestart', 'Sidecar': True})))
    node.run_job(job('done', 'batch', raw_exec('t', 'exit 0')))
    node.run_job(job('failing', 'service', raw_exec('t', 'exit 3'),
                     restart=restart_policy(5, 600000)))
    wait_for('the service', lambda: node.running() and node.running('beside'))
    wait_for('the end of the batch job', lambda: node.dead(job='done'))
    wait_for('the restart delay',
             lambda: 'BACKOFF' in node.cli('journal', 'list', '-dir', node.data).stdout)
    return node


def journal_of(node):
    return os.path.join(node.data, 'client/journal')


def copy_of(node, name):
    where = os.path.join(node.dir, name)
    shutil.copytree(journal_of(node), where)
    return where


def digest(where):
    with open(os.path.join(where, 'data.mdb'), 'rb') as data:
        return hashlib.sha256(data.read()).hexdigest()


def assert_tried(text):
    assert len(re.findall(r'then with crashes in it: fine', text)) == 3, text
    assert 'seeds: %d worlds' % SEEDS in text, text
    assert 'this version restores this node' in text, text


def a_live_journal_is_tried_while_its_daemon_works():
    node = busy_node()
    text = sim(node, node.data)
    assert_tried(text)
    assert 'BACKOFF' in text and 'DEAD' in text, text
    assert re.search(r'4 tasks:.* 2 RUNNING', text), text
    assert '2 payloads should be alive' in text, text
    assert node.running() and node.running('beside'), 'the node has noticed'
    finish(node)


def a_journal_that_a_crash_has_cut_in_mid_work_is_tried_and_not_touched():
    """And then the node itself comes back as it was said to."""
    node = busy_node()
    old = node.pid_of('sleep 1000')
    for number in range(4):
        node.run_job(job('more%d' % number, 'service', raw_exec('t', 'exec sleep 3000')))
    node.call('DELETE', '/v1/job/done?purge=true')
    node.kill()
    copy = copy_of(node, 'copy')
    before = digest(copy)
    assert_tried(sim(node, copy))
    assert digest(copy) == before, 'the copy was written to'
    assert_tried(sim(node, journal_of(node)))
    node.start()
    wait_for('the tasks', lambda: all(node.running(job='more%d' % n) for n in range(4)))
    assert node.pid_of('sleep 1000') == old and start_ticks(old) is not None
    finish(node)


def a_damaged_record_is_named_and_costs_one_alloc():
    node = busy_node()
    alloc = node.alloc('job', 'g')['ID']
    node.kill()
    copy = copy_of(node, 'copy')
    assert flip(os.path.join(copy, 'data.mdb'), b'\x02' + (alloc + '/t').encode(), 24) > 0
    text = sim(node, copy)
    assert 'damaged: task %s/t' % alloc in text, text
    assert_tried(text)
    os.unlink(os.path.join(copy, 'data.mdb'))
    assert 'no journal' in sim(node, copy, status=1)
    node.start()
    wait_for('the service', node.running)
    finish(node)


def finish(node):
    mark = node.node_mark()
    for alloc in node.allocs():
        node.call('DELETE', '/v1/job/%s?purge=true' % alloc['JobID'])
    wait_for('the allocs to be gone', lambda: not node.allocs())
    node.audit(mark)
    assert node.terminate() == 0
    node.close()


if __name__ == '__main__':
    sys.exit(tap([
        a_live_journal_is_tried_while_its_daemon_works,
        a_journal_that_a_crash_has_cut_in_mid_work_is_tried_and_not_touched,
        a_damaged_record_is_named_and_costs_one_alloc,
    ]))
