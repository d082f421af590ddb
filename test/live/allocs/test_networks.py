#!/usr/bin/env python3
"""Networks of allocs on a real node: made by Debian's CNI plugins, shared by the tasks of a group,
kept over crashes, made again after a reboot, and gone with their alloc.

In a whole run it waits for 50 s.
"""
import json
import os
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, Node, events, has_bridges, milliseconds, raw_exec,  # noqa: E402
                 remove_bridge, restart_policy, service, start_ticks, tap, wait_for)

BRIDGE = 'cairn%d' % (os.getpid() % 100000)
SUBNET = '10.213.%d.0/24' % (os.getpid() % 250)
CONFIG = '''client {
  network_interface     = "lo"
  bridge_network_name   = "%s"
  bridge_network_subnet = "%s"
  min_dynamic_port      = %%d
  max_dynamic_port      = %%d
%%s
}
''' % (BRIDGE, SUBNET)

# Says who it is to whoever connects, on all addresses of its network.
LISTEN = ('import os, socket\n'
          's = socket.socket()\n'
          's.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n'
          's.bind(("0.0.0.0", int(os.environ["NOMAD_PORT_http"])))\n'
          's.listen()\n'
          'while True:\n'
          '    c, peer = s.accept()\n'
          '    c.sendall(os.environ["NOMAD_TASK_NAME"].encode() + b" " + str(os.getpid()).encode())\n'
          '    c.close()\n')

PORTS = {'Mode': 'bridge', 'DynamicPorts': [{'Label': 'http', 'To': 8080}]}


def open_node(first, more=''):
    node = Node(config=CONFIG % (first, first + 20, more))
    os.chmod(node.dir, 0o711)
    node.start()
    return node


def listener(name, driver='raw_exec', **fields):
    return raw_exec(name, '', Driver=driver, KillTimeout=milliseconds(2000),
                    Config={'command': '/usr/bin/python3', 'args': ['-c', LISTEN]}, **fields)


def inside(pid, *command):
    """What COMMAND says in the network of the process PID."""
    return subprocess.run(['nsenter', '--net=/proc/%d/ns/net' % pid, *command], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def network_of(pid):
    return os.stat('/proc/%d/ns/net' % pid).st_ino


def status(node, job='job'):
    return node.get('/v1/allocation/%s' % node.alloc(job, 'g')['ID'])


def port_of(node):
    return status(node)['AllocatedResources']['Shared']['Ports'][0]['Value']


def answer(address, port):
    try:
        with socket.create_connection((address, port), timeout=5) as connection:
            return connection.recv(100).decode().split()
    except OSError:
        return None


def address_of(node):
    return wait_for('an address', lambda: (status(node).get('NetworkStatus') or {}).get('Address'))


def pids(node, task):
    return [pid for pid, line in node.payloads().items()
            if 'cairn-shim' not in line and ('NOMAD_TASK_NAME=' + task) in environment(pid)]


def environment(pid):
    try:
        with open('/proc/%d/environ' % pid) as file:
            return file.read().split('\0')
    except (FileNotFoundError, ProcessLookupError):
        return []


def pid_of(node, task):
    return wait_for('the task ' + task, lambda: pids(node, task))[0]


def namespaces(node):
    mark = node.node_mark()
    return [name for name in os.listdir('/run/netns') if name.startswith('cairn-%s-' % mark)]


def a_mapped_port_answers_and_two_tasks_share_one_network():
    node = open_node(22000)
    node.run_job(service(listener('web', 'exec'), raw_exec('side', 'exec sleep 1000'),
                         Networks=[PORTS]))
    wait_for('both', lambda: node.running('web') and node.running('side'))
    web, side, port = pid_of(node, 'web'), pid_of(node, 'side'), port_of(node)
    address = address_of(node)
    assert network_of(web) == network_of(side) != network_of(os.getpid())
    assert address.startswith(SUBNET.rpartition('.')[0]), address
    assert status(node)['NetworkStatus']['InterfaceName'] == 'eth0'
    for where in ('127.0.0.1', socket.gethostbyname(socket.gethostname())):
        assert wait_for('an answer', lambda: answer(where, port))[0] == 'web'  # noqa: B023
    assert answer(address, 8080)[0] == 'web'
    given = dict(part.partition('=')[::2] for part in environment(side))
    assert given['NOMAD_PORT_http'] == '8080' and given['NOMAD_HOST_PORT_http'] == str(port)
    assert given['NOMAD_ALLOC_ADDR_http'] == address + ':8080', given
    assert given['NOMAD_ALLOC_INTERFACE_http'] == 'eth0'
    assert given['NOMAD_ALLOC_IP_http'] == address
    assert '127.0.0.1' in inside(side, 'ip', '-o', 'addr', 'show', 'dev', 'lo')
    node.finish()


def a_crash_changes_nothing_of_it():
    node = open_node(22100)
    node.run_job(service(listener('web'), Networks=[PORTS]))
    wait_for('it', lambda: node.running('web'))
    port, address, before = port_of(node), address_of(node), namespaces(node)
    first = wait_for('an answer', lambda: answer('127.0.0.1', port))
    ticks = start_ticks(int(first[1]))
    for _ in range(3):
        node.kill()
        assert answer('127.0.0.1', port) == first
        node.start()
    assert answer('127.0.0.1', port) == first and start_ticks(int(first[1])) == ticks
    assert address_of(node) == address and namespaces(node) == before
    os.kill(int(first[1]), 9)
    second = wait_for('another', lambda: answer('127.0.0.1', port))
    assert second[1] != first[1] and address_of(node) == address
    assert network_of(int(second[1])) == os.stat('/run/netns/' + before[0]).st_ino
    node.finish()


def mode_none_has_a_loopback_and_no_more():
    node = open_node(22200)
    node.run_job(service(raw_exec('t', 'exec sleep 1000', Driver='exec'),
                         Networks=[{'Mode': 'none'}]))
    wait_for('it', lambda: node.running('t'))
    links = json.loads(inside(pid_of(node, 't'), 'ip', '-j', 'link'))
    assert [link['ifname'] for link in links] == ['lo'] and 'UP' in links[0]['flags'], links
    assert status(node)['NetworkStatus']['Address'] == ''
    node.finish()


def a_network_that_a_reboot_took_is_made_again_before_its_tasks():
    node = open_node(22300)
    node.run_job(service(listener('web'), Networks=[PORTS]))
    wait_for('it', lambda: node.running('web'))
    port = port_of(node)
    first = wait_for('an answer', lambda: answer('127.0.0.1', port))
    node.kill()
    for pid in list(node.payloads()) + node.shims():
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass
    wait_for('the end', lambda: not node.payloads())
    name = [name for name in os.listdir('/run/netns')
            if status_name(name) == alloc_of_note(node)][0]
    subprocess.run(['ip', 'netns', 'delete', name], check=True)
    node.start()
    second = wait_for('an answer again', lambda: answer('127.0.0.1', port))
    assert second[1] != first[1]
    assert network_of(int(second[1])) == os.stat('/run/netns/' + name).st_ino
    assert answer(address_of(node), 8080) == second
    node.finish()


def alloc_of_note(node):
    notes = os.listdir(os.path.join(node.data, 'client', 'network'))
    return [name[:-len('.json')] for name in notes if name.endswith('.json')][0]


def status_name(name):
    return name.partition('-')[2].partition('-')[2]


def write_network(node_dir, name, script):
    """A CNI network NAME whose one plugin is SCRIPT; returns what the agent is told."""
    plugins, configs = os.path.join(node_dir, 'plugins'), os.path.join(node_dir, 'networks')
    for path in (plugins, configs):
        os.makedirs(path, exist_ok=True)
    with open(os.path.join(plugins, 'scripted'), 'w') as out:
        out.write('#!/bin/sh\n' + script)
    os.chmod(os.path.join(plugins, 'scripted'), 0o755)
    with open(os.path.join(configs, '10-%s.conflist' % name), 'w') as out:
        json.dump({'cniVersion': '0.4.0', 'name': name,
                   'plugins': [{'type': 'scripted', 'capabilities': {'portMappings': True}}]}, out)
    return 'cni_path = "%s"\n cni_config_dir = "%s"' % (plugins, configs)


def scripted_node(first, script):
    folder = os.path.join('/tmp', 'cairn-live-cni-%d-%d' % (os.getpid(), first))
    told = write_network(folder, 'mine', 'test "$CNI_COMMAND" || exit 0; exec 9>>%s/calls; cat >%s/input.$CNI_COMMAND;'
                         'echo $CNI_COMMAND $CNI_CONTAINERID $CNI_NETNS $CNI_IFNAME "$CNI_ARGS" >&9\n'
                         % (folder, folder) + script)
    return open_node(first, told), folder


def calls(folder):
    with open(os.path.join(folder, 'calls')) as file:
        return [line.split(' ', 4) for line in file.read().splitlines()]


def a_plugin_that_fails_ends_the_alloc_and_is_undone():
    node, folder = scripted_node(22400, 'test $CNI_COMMAND != ADD && exit 0\n'
                                 'echo \'{"cniVersion":"0.4.0","code":11,"msg":"no more addresses",'
                                 '"details":"ask your vendor"}\'; exit 1\n')
    node.run_job(service(raw_exec('t', 'exec sleep 1000'), restart=restart_policy(0),
                         ReschedulePolicy=NO_RESCHEDULE,
                         Networks=[{'Mode': 'cni/mine', 'CNI': {'Args': {'colour': 'blue'}}}]))
    state = wait_for('its end', lambda: node.dead('t'))
    alloc = node.alloc('job', 'g')
    told = json.dumps(state)
    assert 'CNI plugin' in told and 'no more addresses: ask your vendor' in told, told
    assert events(state)[-1] == 'Setup Failure' or 'Setup Failure' in events(state), state
    wait_for('failed', lambda: node.alloc('job', 'g')['ClientStatus'] == 'failed')
    wait_for('its undoing', lambda: calls(folder)[-1][0] == 'DEL')
    for call in calls(folder):
        assert call[1] == alloc['ID'] and call[3] == 'eth0', call
        assert call[2].endswith(alloc['ID']) and 'colour=blue' in call[4], call
        assert 'NOMAD_JOB_ID=job' in call[4] and call[4].startswith('IgnoreUnknown=true;'), call
    with open(os.path.join(folder, 'input.ADD')) as file:
        read = json.load(file)
    assert read['name'] == 'mine' and read['runtimeConfig'] == {'portMappings': []}, read
    wait_for('no namespace', lambda: not namespaces(node))
    node.finish()
    shutil.rmtree(folder)


def a_plugin_outlived_by_a_crash_is_waited_for_and_undone():
    node, folder = scripted_node(22500, 'test $CNI_COMMAND = DEL && exit 0\n'
                                 'sleep 3; echo late >&9\n'
                                 'echo \'{"cniVersion":"0.4.0","interfaces":[{"name":"eth0",'
                                 '"sandbox":"x"}],"ips":[{"version":"4","interface":0,'
                                 '"address":"127.0.0.1/8"}]}\'\n')
    node.run_job(service(raw_exec('t', 'exec sleep 1000'), Networks=[{'Mode': 'cni/mine'}]))
    wait_for('the plugin', lambda: os.path.exists(folder + '/calls') and calls(folder))
    node.kill()
    node.start()
    wait_for('its end', lambda: ['late'] in calls(folder))
    wait_for('the next', lambda: len(calls(folder)) > 3)
    said = [call[0] for call in calls(folder)]
    assert said[:4] == ['ADD', 'late', 'DEL', 'ADD'], said
    node.call('DELETE', '/v1/job/job')
    node.finish()
    assert [call[0] for call in calls(folder)][-1] == 'DEL', calls(folder)
    shutil.rmtree(folder)


def what_the_journal_does_not_know_is_removed_and_nothing_else():
    node = open_node(22600)
    mark = node.node_mark()
    stray, other = ('cairn-%s-%s' % (mark, '11111111-2222-4333-8444-555555555555'),
                    'cairn-live-other-%d' % os.getpid())
    for name in (stray, other):
        subprocess.run(['ip', 'netns', 'add', name], check=True)
    node.kill()
    node.start()
    wait_for('the stray one to go', lambda: stray not in os.listdir('/run/netns'))
    assert other in os.listdir('/run/netns')
    subprocess.run(['ip', 'netns', 'delete', other], check=True)
    node.finish()


def names_are_found_as_the_job_says():
    node = open_node(22700)
    dns = {'Servers': ['10.9.8.7'], 'Searches': ['here.example'], 'Options': ['ndots:2']}
    node.run_job(service(raw_exec('t', 'cat /etc/resolv.conf > /local/said; exec sleep 1000',
                                  Driver='exec'), Networks=[{'Mode': 'bridge', 'DNS': dns}]))
    wait_for('it', lambda: node.running('t'))
    said = os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'], 't', 'local', 'said')
    wait_for('its words', lambda: os.path.exists(said) and os.path.getsize(said) > 0)
    with open(said) as file:
        assert file.read() == ('search here.example\nnameserver 10.9.8.7\noptions ndots:2\n')
    node.finish()


def what_somebody_took_from_it_is_mended_under_its_tasks():
    node = open_node(22990)
    node.run_job(service(listener('web'), Networks=[PORTS]))
    wait_for('it', lambda: node.running('web'))
    port, address = port_of(node), address_of(node)
    first = wait_for('an answer', lambda: answer('127.0.0.1', port))
    node.kill()
    inside(int(first[1]), 'ip', 'address', 'flush', 'dev', 'eth0')
    assert answer('127.0.0.1', port) is None
    node.start()
    assert wait_for('an answer again', lambda: answer('127.0.0.1', port)) == first
    assert answer(address, 8080) == first and address_of(node) == address
    wait_for('a word of it', lambda: 'was damaged and is mended: its address is gone' in node.log())
    node.kill()
    subprocess.run(['ip', 'netns', 'delete', namespaces_of(node)[0]], check=True)
    node.start()
    wait_for('a warning', lambda: 'its network namespace was taken away' in node.log())
    second = wait_for('another one', lambda: [said for said in [answer('127.0.0.1', port)]
                                              if said and said != first])[0]
    assert network_of(int(second[1])) == os.stat('/run/netns/' + namespaces_of(node)[0]).st_ino
    told = [event['DisplayMessage'] for event in node.task('job', 'g', 'web')['Events']]
    assert 'The network of the allocation was lost: its network namespace was taken away' in told
    assert 'User requested all tasks to restart' not in told, told
    node.finish()


def namespaces_of(node):
    alloc = alloc_of_note(node)
    return [name for name in os.listdir('/run/netns') if name.endswith(alloc)]


def a_group_has_the_name_that_it_asks_for():
    node = open_node(22900)
    script = ('uname -n > $NOMAD_TASK_DIR/name; getent hosts $(uname -n) > $NOMAD_TASK_DIR/hosts;'
              'exec sleep 1000')
    node.run_job(service(raw_exec('in', script, Driver='exec'), raw_exec('on', script),
                         Networks=[{'Mode': 'bridge', 'Hostname': 'web-${NOMAD_ALLOC_INDEX}'}]))
    wait_for('both', lambda: node.running('in') and node.running('on'))
    root = os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'])
    said = {}
    for task, name in (('in', 'name'), ('in', 'hosts'), ('on', 'name')):
        path = os.path.join(root, task, 'local', name)
        wait_for(path, lambda: os.path.exists(path) and os.path.getsize(path) > 0)  # noqa: B023
        with open(path) as file:
            said[task + ' ' + name] = file.read().split()
    assert said['in name'] == said['on name'] == ['web-0'], said
    assert said['in hosts'] == [address_of(node), 'web-0'], said
    assert os.uname().nodename != 'web-0'
    node.finish()


def plugins_are_facts_of_the_node():
    node = open_node(22950)
    name = 'plugins.cni.version.bridge'
    path = '/v1/node/' + node.get('/v1/nodes')[0]['ID']
    version = wait_for('the plugins', lambda: node.get(path)['Attributes'].get(name))
    assert version.lstrip('v')[0].isdigit(), version
    node.finish()


def a_mode_that_the_node_has_not_waits():
    node = open_node(22800)
    node.run_job(service(raw_exec('t', 'exec sleep 1000'), Networks=[{'Mode': 'cni/nowhere'}]))
    assert 'missing network' in node.cli('job', 'status', 'job').stdout
    assert not node.allocs()
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: networks are made')
        sys.exit(77)
    if not has_bridges():
        print('needs the packages containernetworking-plugins and iptables: ./dev setup')
        sys.exit(77)
    result = tap([
        a_mapped_port_answers_and_two_tasks_share_one_network,
        a_crash_changes_nothing_of_it,
        mode_none_has_a_loopback_and_no_more,
        a_network_that_a_reboot_took_is_made_again_before_its_tasks,
        a_plugin_that_fails_ends_the_alloc_and_is_undone,
        a_plugin_outlived_by_a_crash_is_waited_for_and_undone,
        what_the_journal_does_not_know_is_removed_and_nothing_else,
        names_are_found_as_the_job_says,
        what_somebody_took_from_it_is_mended_under_its_tasks,
        a_group_has_the_name_that_it_asks_for,
        plugins_are_facts_of_the_node,
        a_mode_that_the_node_has_not_waits,
    ])
    remove_bridge(BRIDGE, SUBNET)
    sys.exit(result)
