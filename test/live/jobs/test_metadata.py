#!/usr/bin/env python3
"""The node's metadata is set while it runs: jobs that wait for it run, tasks have it, and neither a
crash, nor a reboot, nor another configuration forgets what was answered."""
import contextlib
import http.client
import json
import os
import shutil
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, Refused, flip, raw_exec, service, tap, wait_for  # noqa: E402

CONFIG = 'client {\n  meta {\n    rack = "r1"\n    zone = "a"\n  }\n}\n'
TEMPLATE = {'EmbeddedTmpl': '{{ env "meta.rack" }}', 'DestPath': 'local/rack', 'ChangeMode': 'noop'}


def open_node():
    node = Node(config=CONFIG)
    node.start()
    return node


def job_in(rack):
    task = raw_exec('t', 'echo $RACK $(cat local/rack); exec sleep 1000',
                    Env={'RACK': '${meta.rack}'}, Templates=[TEMPLATE])
    return service(task, Constraints=[{'LTarget': '${meta.rack}', 'RTarget': rack, 'Operand': '='}])


def said(node):
    return json.loads(node.cli('node', 'meta', 'read', '-json').stdout)


def this(node):
    return node.get('/v1/node/%s' % node.get('/v1/nodes')[0]['ID'])


def refusal(node, *arguments):
    answer = node.cli('node', 'meta', 'apply', *arguments, check=False)
    assert answer.returncode == 1, answer
    return answer.stdout


def what_is_wrong_is_refused_whole():
    node = open_node()
    assert 'valid dotted hcl identifiers' in refusal(node, 'fine=x', '1st=x')
    assert 'must not be empty' in refusal(node, 'fine=x', '=x')
    assert 'may have 255 bytes' in refusal(node, 'fine=x', 'k' * 256 + '=x')
    assert 'may have 4096 bytes' in refusal(node, 'fine=x', 'k=' + 'x' * 4097)
    assert 'Unknown node ffffffff' in refusal(node, '-node-id', 'ffffffff', 'fine=x')
    for meta, words in (({'fine': 'x', 'number': 7}, 'must be text or null'),
                        ({'k%d' % at: 'x' for at in range(257)}, 'may be 256 metadata keys')):
        try:
            node.put('/v1/client/metadata', {'Meta': meta})
            raise AssertionError('%s is taken' % meta)
        except Refused as refused:
            assert refused.status == 400 and words in refused.text, refused.text
    assert said(node)['Dynamic'] == {} and this(node)['Meta'] == {'rack': 'r1', 'zone': 'a'}
    node.finish()


def a_job_that_waits_for_a_rack_runs_once_it_is_set_and_keeps_running():
    node = open_node()
    node.run_job(job_in('r2'))
    assert 'Constraint "${meta.rack} = r2"' in node.cli('job', 'status', 'job').stdout
    assert not node.allocs()
    node.cli('node', 'meta', 'apply', 'rack=r2')
    wait_for('the task', node.running)
    alloc, = node.allocs('job')
    wait_for('what it prints', lambda: node.cli('alloc', 'logs', alloc['ID']).stdout == 'r2 r2\n')
    assert this(node)['Meta'] == {'rack': 'r2', 'zone': 'a'}
    pid = node.await_pid('sleep 1000')
    node.kill()
    node.start()
    node.cli('node', 'meta', 'apply', '-unset', 'rack')
    assert node.cli('node', 'meta', 'read').stdout.splitlines() == [
        'All Meta', 'zone = a', '', 'Dynamic Meta', 'rack = <unset>', '', 'Static Meta',
        'rack = r1', 'zone = a']
    other = dict(job_in('r1'), ID='other', Name='other')
    node.run_job(other)
    node.kill()
    node.start()
    assert said(node)['Dynamic'] == {'rack': None}
    assert node.pid_of('sleep 1000') == pid and not node.allocs('other')
    node.cli('node', 'meta', 'apply', 'rack=r1')
    wait_for('the other one', lambda: node.running(job='other'))
    node.finish()


def another_configuration_and_a_reboot_leave_what_was_set():
    node = open_node()
    node.cli('node', 'meta', 'apply', 'rack=r2', 'own.key=x', '-unset', 'zone')
    node.reboot(str(uuid.uuid4()))
    with open(node.config, 'w') as out:
        out.write('client {\n  meta {\n    rack = "r9"\n    row = "7"\n  }\n}\n')
    node.start()
    assert said(node) == {'Meta': {'rack': 'r2', 'row': '7', 'own.key': 'x'},
                          'Dynamic': {'rack': 'r2', 'own.key': 'x'},
                          'Static': {'rack': 'r9', 'row': '7'}}, said(node)
    node.terminate()
    with open(node.config, 'w') as out:
        out.write(CONFIG)
    node.start()
    assert said(node)['Meta'] == {'rack': 'r2', 'zone': 'a', 'own.key': 'x'}, said(node)
    node.finish()


def what_was_answered_is_so_wherever_the_daemon_dies():
    node = Node(config=CONFIG)
    answered = asked = 0
    for crash_at in range(1, 16):
        with contextlib.suppress(AssertionError):  # it may die before it answers anybody
            node.start(crash_at=crash_at)
        with contextlib.suppress(OSError, http.client.HTTPException):
            while node.alive() and asked < 1000:
                asked += 1
                node.put('/v1/client/metadata', {'Meta': {'rack': str(asked), 'n': str(asked)}})
                answered = asked
        node.process.wait()
        node.start()
        meta = said(node)['Dynamic']
        assert meta.get('rack') == meta.get('n'), meta
        assert int(meta.get('n', 0)) in (answered, asked), (crash_at, meta, answered, asked)
        answered = asked = int(meta.get('n', 0))
        node.kill()
    assert answered > 0
    node.start()
    node.finish()


def damage_costs_what_was_set_and_nothing_else():
    node = open_node()
    node.run_job(job_in('r1'))
    wait_for('the task', node.running)
    node.cli('node', 'meta', 'apply', 'rack=r2', 'note=that is long enough')
    node.kill()
    assert flip(os.path.join(node.data, 'client/journal/data.mdb'), b'metadata', 24) > 0
    node.start()
    assert 'put into quarantine, and begun anew entry=metadata' in node.log()
    assert 'metadata' in node.cli('journal', 'quarantine', 'list', '-dir', node.data).stdout
    assert said(node)['Meta'] == {'rack': 'r1', 'zone': 'a'}
    wait_for('the task', node.running)
    node.cli('node', 'meta', 'apply', 'rack=r3')
    node.kill()
    node.start()
    assert said(node)['Meta']['rack'] == 'r3'
    node.finish()


def a_journal_that_is_exported_and_imported_has_it():
    node = open_node()
    node.cli('node', 'meta', 'apply', 'rack=r2', '-unset', 'zone')
    assert node.terminate() == 0
    out, journal = os.path.join(node.dir, 'export'), os.path.join(node.data, 'client/journal')
    node.cli('journal', 'export', '-dir', node.data, '-out', out)
    shutil.rmtree(journal)
    node.cli('journal', 'import', out, journal)
    node.cli('journal', 'verify', '-dir', node.data)
    node.start()
    assert said(node)['Dynamic'] == {'rack': 'r2', 'zone': None}
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it runs a node with real tasks')
        sys.exit(77)
    sys.exit(tap([what_is_wrong_is_refused_whole,
                  a_job_that_waits_for_a_rack_runs_once_it_is_set_and_keeps_running,
                  another_configuration_and_a_reboot_leave_what_was_set,
                  what_was_answered_is_so_wherever_the_daemon_dies,
                  damage_costs_what_was_set_and_nothing_else,
                  a_journal_that_is_exported_and_imported_has_it]))
