#!/usr/bin/env python3
"""The mesh of Consul on a real node, beside an agent of Consul and a program `consul` of the test's
own: a sidecar has what it needs before it starts, and reaches Consul from a network of its own, also
after a crash of the daemon; a native task does all that itself."""
import json
import os
import socket
import stat
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from consul import Consul  # noqa: E402
from lib import (NO_RESCHEDULE, Node, has_bridges, milliseconds, raw_exec, remove_bridge,  # noqa: E402
                 restart_policy, start_ticks, tap, wait_for)

BRIDGE = 'cairn%d' % (os.getpid() % 100000)
SUBNET = '10.217.%d.0/24' % (os.getpid() % 250)
CONFIG = ('client {\n  network_interface = "lo"\n  bridge_network_name = "%s"\n'
          '  bridge_network_subnet = "%s"\n}\nconsul {\n  address = "%%s"\n%%s}\n' % (BRIDGE, SUBNET))
SECRET = '11111111-2222-3333-4444-555555555555'

# The program: what it says is its token and what it was asked; unless it is told to fail or to hang.
PROGRAM = ('#!/bin/sh\ncd %s\n[ -e hang ] && echo $$ > hung && exec sleep 1005\n'
           '[ -e fail ] && touch failed && echo "no proxy of that name" >&2 && exit 1\n'
           'grpc=$4\nwhile [ $# -gt 1 ] && [ "$1" != -proxy-id ]; do shift; done\n'
           'echo "{\\"grpc\\": \\"${grpc#unix://}\\", \\"proxy\\": \\"$2\\", '
           '\\"token\\": \\"$CONSUL_HTTP_TOKEN\\"}"\n')
# Envoy's part: asks Consul over the socket that its file names, and tells what it hears.
PROXY = ('import json, os, socket, time\n'
         'told = json.load(open(os.environ["NOMAD_SECRETS_DIR"] + "/envoy_bootstrap.json"))\n'
         'link = socket.socket(socket.AF_UNIX)\n'
         'link.connect(told["grpc"])\n'
         'link.send(b"hello")\n'
         'told["heard"] = link.recv(100).decode()\n'
         'told["upstream"] = os.environ["NOMAD_UPSTREAM_ADDR_count_db"]\n'
         'told["links"] = sorted(name for _, name in socket.if_nameindex())\n'
         'path = os.environ["NOMAD_TASK_DIR"] + "/told"\n'
         'with open(path + ".new", "w") as file:\n'
         '    json.dump(told, file)\n'
         'os.rename(path + ".new", path)\n'
         'time.sleep(1006)\n')


class Echo:
    """Consul's other port: answers with what it was told, in capitals."""

    def __init__(self):
        self.server = socket.create_server(('127.0.0.1', 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                link, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(link,), daemon=True).start()

    @staticmethod
    def answer(link):
        with link:
            while data := link.recv(100):
                link.sendall(data.upper())


def open_node(consul, more=''):
    node = Node(config=CONFIG % (consul.address, more))
    os.chmod(node.dir, 0o711)
    programs = os.path.join(node.dir, 'bin')
    os.mkdir(programs)
    path = os.path.join(programs, 'consul')
    with open(path, 'w') as file:
        file.write(PROGRAM % node.dir)
    os.chmod(path, 0o755)
    node.environment['PATH'] = programs + ':' + os.environ['PATH']
    node.start()
    return node


def job_of(*tasks, **group):
    return {'ID': 'job', 'Name': 'job', 'Type': 'service', 'Datacenters': ['dc1'], 'TaskGroups': [
        {'Name': 'g', 'Count': 1, 'Tasks': list(tasks), 'RestartPolicy': restart_policy(3),
         'ReschedulePolicy': NO_RESCHEDULE, **group}]}


def sleeper(**fields):
    return raw_exec('t', 'exec sleep 1004', KillTimeout=milliseconds(2000),
                    Resources={'CPU': 1, 'MemoryMB': 10}, **fields)


def meshed(port=5000):
    return job_of(sleeper(), Networks=[{'Mode': 'bridge'}], Services=[{
        'Name': 'api', 'PortLabel': '9001', 'Connect': {
            'SidecarService': {'Proxy': {'Upstreams': [
                {'DestinationName': 'count-db', 'LocalBindPort': port}]}},
            'SidecarTask': {'Driver': 'raw_exec', 'ShutdownDelay': 0,
                            'Resources': {'CPU': 1, 'MemoryMB': 20},
                            'Config': {'command': sys.executable, 'args': ['-c', PROXY]}}}}])


def path_in(node, *names):
    return os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'], *names)


def told(node):
    """What the proxy has said; it is forgotten for the next time."""
    if node.alloc('job', 'g') is None:
        return None  # the node does not know of Consul yet
    path = path_in(node, 'connect-proxy-api', 'local', 'told')
    try:
        with open(path) as file:
            text = file.read()
    except FileNotFoundError:
        return None
    os.unlink(path)
    return json.loads(text)


def asks(node, name='consul_grpc.sock'):
    """What Consul answers by the socket of the alloc; None: nobody."""
    with socket.socket(socket.AF_UNIX) as link:
        try:
            link.settimeout(5)
            link.connect(path_in(node, 'alloc', 'tmp', name))
            link.sendall(b'again')
            return link.recv(100)
        except OSError:
            return None


def finish(node, consul):
    node.purge()
    wait_for('no service', lambda: consul.services == {})
    node.finish()
    consul.stop()


def mark(node, name, there=True):
    path = os.path.join(node.dir, name)
    if there:
        with open(path, 'w'):
            pass
    else:
        os.unlink(path)


def hung(node):
    """The program that hangs; it is forgotten for the next time."""
    path = os.path.join(node.dir, 'hung')

    def found():
        try:
            with open(path) as file:
                return int(file.read() or 0)
        except FileNotFoundError:
            return None

    pid = wait_for('one that hangs', found)
    os.unlink(path)
    return pid


def a_sidecar_reaches_consul_from_its_network_also_after_a_crash():
    if not has_bridges():
        return 'needs the packages containernetworking-plugins and iptables: ./dev setup'
    consul, echo = Consul(token=SECRET), Echo()
    node = open_node(consul, '  token = "%s"\n  grpc_address = "127.0.0.1:%d"\n' % (SECRET, echo.port))
    node.run_job(meshed())
    said = wait_for('the proxy', lambda: told(node), limit_s=60)
    own = path_in(node, 'alloc', 'tmp', 'consul_grpc.sock')
    sidecar = wait_for('the service', lambda: consul.named('api-sidecar-proxy'))[0]['ID']
    assert said == {'grpc': own, 'proxy': sidecar, 'token': SECRET, 'heard': 'HELLO',
                    'upstream': '127.0.0.1:5000', 'links': ['eth0', 'lo']}, said
    file = os.stat(path_in(node, 'connect-proxy-api', 'secrets', 'envoy_bootstrap.json'))
    assert stat.S_IMODE(file.st_mode) == 0o600, oct(file.st_mode)
    alloc = node.alloc('job', 'g')['ID']
    assert SECRET not in node.log(1 << 20) + node.text('GET', '/v1/allocation/' + alloc)
    pid = node.await_pid('sleep 1004')
    node.kill()
    assert asks(node) is None  # with the daemon, and again with the next
    consul.calls.clear()
    node.start()
    wait_for('the socket', lambda: asks(node) == b'AGAIN')
    wait_for('a look', lambda: consul.count('/v1/agent/checks') > 0)
    assert consul.changes() == [] and start_ticks(pid) is not None
    [one] = node.get('/v1/nodes')
    needed = {'consul.version', 'plugins.cni.version.bridge', 'driver.raw_exec'}
    wait_for('what the node needs for it',
             lambda: needed <= set(node.get('/v1/node/' + one['ID'])['Attributes']))
    wait_for('its drivers', lambda: 'drivers: ' in node.log(1 << 20).rpartition('started node=')[2])
    node.run_job(meshed(5001))
    wait_for('the upstream', lambda: [one['Proxy']['Upstreams'][0]['LocalBindPort']
                                      for one in consul.named('api-sidecar-proxy')] == [5001])
    assert node.await_pid('sleep 1004') == pid
    finish(node, consul)
    return None


def a_program_that_fails_is_run_again_and_one_that_hangs_ends_with_the_daemon():
    if not has_bridges():
        return 'needs the packages containernetworking-plugins and iptables: ./dev setup'
    consul, echo = Consul(), Echo()
    node = open_node(consul, '  grpc_address = "127.0.0.1:%d"\n' % echo.port)
    mark(node, 'fail')
    node.run_job(meshed())
    wait_for('it to be run', lambda: os.path.exists(os.path.join(node.dir, 'failed')), limit_s=60)
    mark(node, 'hang')
    mark(node, 'fail', False)
    pid = hung(node)
    node.kill()
    wait_for('its end', lambda: start_ticks(pid) is None)
    mark(node, 'hang', False)
    node.start()
    wait_for('the proxy', lambda: told(node), limit_s=60)
    wait_for('what it is for', lambda: node.running('t'))
    mark(node, 'hang')  # and one that its alloc is stopped under
    node.put('/v1/client/allocation/%s/restart' % node.alloc('job', 'g')['ID'],
             {'TaskName': 'connect-proxy-api'})
    pid = hung(node)
    node.call('DELETE', '/v1/job/job')
    wait_for('its end', lambda: start_ticks(pid) is None)
    finish(node, consul)
    return None


def a_native_task_is_told_where_consul_is():
    consul = Consul(token=SECRET)
    node = open_node(consul, '  token = "%s"\n' % SECRET)
    says = 'env | grep ^CONSUL_ | sort > $NOMAD_TASK_DIR/env.new; ' \
           'mv $NOMAD_TASK_DIR/env.new $NOMAD_TASK_DIR/env; exec sleep 1004'
    task = raw_exec('t', says, Resources={'CPU': 1, 'MemoryMB': 10})
    node.run_job(job_of(task, Services=[{'Name': 'n', 'PortLabel': '80', 'Connect': {'Native': True}}]))
    wait_for('the service', lambda: [one.get('Connect') for one in consul.named('n')]
             == [{'Native': True}])
    path = wait_for('its task', lambda: node.running() and path_in(node, 't', 'local', 'env'))
    wait_for('what it says', lambda: os.path.exists(path))
    with open(path) as file:
        assert file.read().split() == ['CONSUL_HTTP_ADDR=' + consul.address, 'CONSUL_HTTP_SSL=false',
                                       'CONSUL_HTTP_SSL_VERIFY=true']  # and not the agent's token
    finish(node, consul)


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: tasks are cgroups of their own')
        sys.exit(77)
    result = tap([
        a_sidecar_reaches_consul_from_its_network_also_after_a_crash,
        a_program_that_fails_is_run_again_and_one_that_hangs_ends_with_the_daemon,
        a_native_task_is_told_where_consul_is,
    ])
    if has_bridges():
        remove_bridge(BRIDGE, SUBNET)
    sys.exit(result)
