#!/usr/bin/env python3
"""Ports on a real node: tasks listen on what they were given, which is kept over crashes and free
when they have ended."""
import json
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, Node, events, free_port, milliseconds, raw_exec,  # noqa: E402
                 restart_policy, service, start_ticks, tap, wait_for)

LISTEN = ('import os, signal, socket, time\n'
          's = socket.socket()\n'
          's.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n'
          's.bind((os.environ["NOMAD_IP_http"], int(os.environ["NOMAD_PORT_http"])))\n'
          's.listen()\n'
          'def end(*_):\n'
          '    while not os.path.exists("%s"):\n'
          '        time.sleep(0.05)\n'
          '    os._exit(0)\n'
          'signal.signal(signal.SIGTERM, end)\n'
          'while True:\n'
          '    c, _ = s.accept()\n'
          '    c.sendall(b"%%d %%s" %% (os.getpid(), b"%s"))\n'
          '    c.close()\n')

CONFIG = '''client {
  network_interface = "lo"
  min_dynamic_port  = %d
  max_dynamic_port  = %d
}
'''


def listener(name, ports, says='one', gate='/', count=1):
    """A service whose one task listens; PORTS is Nomad's JSON of a network.  It is not restarted:
    what cannot listen at its first try fails.  Told to end it waits until there is a GATE."""
    task = raw_exec('t', '', Config={'command': '/usr/bin/python3',
                                     'args': ['-c', LISTEN % (gate, says)]},
                    KillSignal='SIGTERM', KillTimeout=milliseconds(20000))
    job = service(task, restart=restart_policy(0))
    job['TaskGroups'][0].update(Count=count, Networks=[ports], ReschedulePolicy=NO_RESCHEDULE)
    return dict(job, ID=name, Name=name)


def fixed(port):
    return {'Mode': 'host', 'ReservedPorts': [{'Label': 'http', 'Value': port}]}


ANY = {'DynamicPorts': [{'Label': 'http'}]}


def given(node, alloc):
    ports = node.get('/v1/allocation/%s' % alloc['ID'])['AllocatedResources']['Shared']['Ports']
    assert [port['Label'] for port in ports] == ['http'], ports
    assert ports[0]['HostIP'] == '127.0.0.1', ports
    return ports[0]['Value']


def says(port):
    """(pid, text) of who listens on PORT, or None."""
    try:
        with socket.create_connection(('127.0.0.1', port), timeout=5) as connection:
            pid, text = connection.recv(100).split()
    except (ConnectionError, TimeoutError, ValueError):
        return None
    return int(pid), text.decode()


def shown(node, *arguments):
    return node.cli(*arguments).stdout


def living(node, job):
    return [alloc for alloc in node.allocs(job) if alloc['ClientStatus'] == 'running']


def of_two_nodes_every_task_listens_and_crashes_change_nothing():
    nodes = [Node(config=CONFIG % (first, first + 3)) for first in (21000, 21100)]
    for number, node in enumerate(nodes):
        node.start()
        node.run_job(listener('web', ANY, says='node-%d' % number, count=3))
    seen = {}
    for number, node in enumerate(nodes):
        wait_for('three that run', lambda: len(living(node, 'web')) == 3)  # noqa: B023
        for alloc in living(node, 'web'):
            port = given(node, alloc)
            assert port not in seen and 0 <= port - 21000 - 100 * number <= 3, port
            pid, text = wait_for('somebody on %d' % port, lambda: says(port))  # noqa: B023
            assert text == 'node-%d' % number
            seen[port] = alloc['ID'], pid, start_ticks(pid)
    for node in nodes:
        node.kill()
    for node in nodes:
        node.start()
    for number, node in enumerate(nodes):
        for alloc in living(node, 'web'):
            port = given(node, alloc)
            pid, _ = says(port)
            assert seen.pop(port) == (alloc['ID'], pid, start_ticks(pid))
        node.run_job(listener('more', ANY, says='more', count=2))
        wait_for('the last port', lambda: len(living(node, 'more')) == 1)  # noqa: B023
        wait_for('its task', lambda: says(given(node, living(node, 'more')[0])))  # noqa: B023
        assert 'none of %d to' % (21000 + 100 * number) in shown(node, 'job', 'status', 'more')
    assert not seen
    for node in nodes:
        node.finish()


def who_wants_a_port_waits_for_its_end():
    port = free_port()
    node = Node(config=CONFIG % (21000, 21003))
    node.start()
    checked = node.put('/v1/validate/job', {'Job': listener('one', fixed(port))})
    assert checked['ValidationErrors'] == [], checked
    gate = os.path.join(node.dir, 'gate')
    node.run_job(listener('one', fixed(port), gate=gate))
    one, _ = wait_for('one', lambda: says(port))
    node.run_job(listener('two', fixed(port), says='two'))
    held = 'http=%d: held by alloc %s of job' % (port, node.alloc('one', 'g')['ID'][:8])
    assert held in shown(node, 'job', 'status', 'two')
    assert held in json.dumps(node.get('/v1/job/two/evaluations'))
    node.call('DELETE', '/v1/job/one')
    assert living(node, 'two') == []
    node.kill()  # while one ends
    node.start()
    assert living(node, 'two') == [] and start_ticks(one) is not None
    open(gate, 'w').close()
    wait_for('two', lambda: (says(port) or (0, ''))[1] == 'two' and living(node, 'two'))
    states = node.alloc('two', 'g')['TaskStates']['t']
    assert states['Restarts'] == 0 and 'Terminated' not in events(states)
    facts = shown(node, 'alloc', 'status', node.alloc('two', 'g')['ID'])
    assert '*http  no       127.0.0.1:%d\n' % port in facts, facts
    node.finish()


def a_new_version_listens_when_the_old_one_has_ended():
    port = free_port()
    node = Node(config=CONFIG % (21000, 21003))
    node.start()
    gate = os.path.join(node.dir, 'gate')
    node.run_job(listener('web', fixed(port), gate=gate))
    old, _ = wait_for('the first', lambda: says(port))
    ticks = start_ticks(old)
    node.run_job(listener('web', fixed(port), says='two'))
    assert len(node.allocs('web')) == 2  # it is placed at once, and waits
    assert start_ticks(old) == ticks
    node.kill()
    node.start()
    assert start_ticks(old) == ticks
    open(gate, 'w').close()
    wait_for('the second', lambda: (says(port) or (0, ''))[1] == 'two' and living(node, 'web'))
    new = living(node, 'web')
    assert len(new) == 1 and new[0]['TaskStates']['t']['Restarts'] == 0
    node.finish()


def ports_that_the_operator_keeps_are_given_to_nobody():
    port = free_port()
    node = Node(config=(CONFIG % (21000, 21000)).replace(
        '}\n', '  reserved {\n    reserved_ports = "%d"\n  }\n'
        '  host_network "other" {\n    cidr = "127.0.0.0/8"\n  }\n}\n' % port, 1))
    node.start()
    node.run_job(listener('web', fixed(port)))
    assert "reserved by the node's configuration" in shown(node, 'job', 'status', 'web')
    where = {'ReservedPorts': [{'Label': 'http', 'Value': 21007, 'HostNetwork': 'nowhere'}]}
    node.run_job(listener('lost', where))
    assert 'missing host network "nowhere"' in shown(node, 'job', 'status', 'lost')
    facts = shown(node, 'node', 'status', '-self', '-verbose')
    assert 'other' in facts and 'Dynamic  = 21000-21000' in facts, facts
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: tasks of raw_exec are in cgroups')
        sys.exit(77)
    sys.exit(tap([
        of_two_nodes_every_task_listens_and_crashes_change_nothing,
        who_wants_a_port_waits_for_its_end,
        a_new_version_listens_when_the_old_one_has_ended,
        ports_that_the_operator_keeps_are_given_to_nobody,
    ]))
