#!/usr/bin/python3
"""A node that knows no server asks Consul for them, and asks again when none that it knows answers any
more, or is told of others; what runs there goes on meanwhile."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from consul import Consul  # noqa: E402
from lib import Node, Refused, start_ticks, tap, wait_for  # noqa: E402
from peer import Server, Servers  # noqa: E402
from test_join import alloc_of, finish, is_ready, running, sleeper, status  # noqa: E402

RPC = ('nomad', 'rpc')


def seeker(consul, more=''):
    node = Node(config='consul {\n  address = "%s"\n  client_auto_join = true\n%s}\n' % (consul.address, more))
    os.chmod(node.dir, 0o711)
    node.start()
    return node


def told(node, text):
    return node.log(1 << 20).count(text)


def servers_are_found_whenever_consul_knows_them():
    consul = Consul()
    with Servers() as servers:
        node = seeker(consul)
        wait_for('Consul to be asked', lambda: consul.count('/v1/catalog/service/nomad') > 1)
        assert node.get('/v1/agent/servers') == []
        assert told(node, 'Consul names no server') == 1  # it is asked again, and says no more
        try:
            raise AssertionError(node.run_job({'ID': 'j', 'TaskGroups': []}))
        except Refused as refused:
            assert 'none is known yet' in refused.text, refused.text
        consul.catalog['far'] = {RPC: servers.addresses}  # in another datacenter
        wait_for('the node to be ready', lambda: is_ready(servers))
        assert node.get('/v1/agent/servers') == servers.addresses
        alloc = alloc_of(sleeper(100013))
        running(servers, node, alloc, 'sleep 100013')
        asked = consul.count('/v1/catalog/')
        node.kill()
        node.start()
        wait_for('the node to be heard of again', lambda: node.get('/v1/agent/servers') == servers.addresses)
        assert consul.count('/v1/catalog/') > asked
        finish(servers, node)
    consul.stop()


def servers_that_have_moved_are_found_again():
    consul = Consul()
    with Servers(ttl_s=1) as servers:
        consul.catalog['dc9'][RPC] = servers.addresses
        node = seeker(consul)
        wait_for('the node to be ready', lambda: is_ready(servers))
        alloc = alloc_of(sleeper(100014))
        pid = running(servers, node, alloc, 'sleep 100014')
        since, asked = start_ticks(pid), consul.count('/v1/catalog/')
        assert asked == 2, consul.calls  # who answers is not looked for
        old = servers.servers.pop()
        old.pause()
        servers.servers.append(Server(servers, None))
        servers.leader = servers.servers[0]
        consul.catalog['dc9'][RPC] = servers.addresses
        beats = len(servers.calls('Node.UpdateStatus'))
        wait_for('a heartbeat at the new place', lambda: len(servers.calls('Node.UpdateStatus')) > beats)
        wait_for('the old place to be forgotten',
                 lambda: node.get('/v1/agent/servers') == servers.addresses)
        assert start_ticks(pid) == since and status(servers, alloc) == 'running'
        finish(servers, node)
    consul.stop()


def consul_that_is_away_or_says_nonsense_is_asked_again():
    consul = Consul(token='s3cr3t')
    with Servers() as servers:
        consul.catalog['dc9'][('masters', 'rpc')] = ['a b:1', '127.0.0.1:0']
        node = seeker(consul, '  token = "s3cr3t"\n  server_service_name = "masters"\n')
        wait_for('Consul to be asked', lambda: consul.count('/v1/catalog/service/masters') > 0)
        consul.stop()
        wait_for('Consul to be missed', lambda: told(node, 'cannot be asked') > 0)
        assert node.get('/v1/agent/servers') == []
        consul.catalog['dc9'][('masters', 'rpc')] = servers.addresses
        consul.start()
        wait_for('the node to be ready', lambda: is_ready(servers))
        assert node.get('/v1/agent/servers') == servers.addresses
        assert told(node, 's3cr3t') == 0
        finish(servers, node)
    consul.stop()


def who_is_told_of_other_servers_asks_these():
    with Servers() as servers:
        node = Node(config='client {\n  servers = ["127.0.0.1:1"]\n}\n')
        os.chmod(node.dir, 0o711)
        node.start()
        wait_for('nobody to answer', lambda: told(node, 'a call fails') > 0)
        assert node.cli('node', 'config', '-servers').stdout == '127.0.0.1:1\n'
        for wrong, why in ((['a b'], 'is no address'), ([], 'give -servers'), (['127.0.0.1:2'] * 65, 'More than 64')):
            done = node.cli('node', 'config', '-update-servers', *wrong, check=False)
            assert done.returncode != 0 and why in done.stdout, done
        assert node.get('/v1/agent/servers') == ['127.0.0.1:1']
        node.cli('node', 'config', '-update-servers', '127.0.0.1:2', *servers.addresses)
        wait_for('the node to be ready', lambda: is_ready(servers))
        wait_for('the list to be theirs', lambda: node.get('/v1/agent/servers') == servers.addresses)
        finish(servers, node)
    alone = Node()
    alone.start()
    done = alone.cli('node', 'config', '-update-servers', '127.0.0.1', check=False)
    assert done.returncode != 0 and 'its own control plane' in done.stdout, done
    alone.finish()


def who_is_no_server_any_more_is_left_when_nothing_is_under_way():
    with Servers() as old, Servers(ttl_s=1) as new:
        node = Node(config='client {\n  servers = ["%s"]\n}\n' % old.addresses[0])
        os.chmod(node.dir, 0o711)
        node.start()
        wait_for('the node to be ready', lambda: is_ready(old))
        wait_for('a question for allocs', lambda: old.calls('Node.GetClientAllocs'))
        node.cli('node', 'config', '-update-servers', *new.addresses)
        wait_for('the node to be ready there', lambda: is_ready(new))
        beats = len(new.calls('Node.UpdateStatus'))
        wait_for('more heartbeats', lambda: len(new.calls('Node.UpdateStatus')) > beats + 1)
        assert not old.servers[0].sessions[0].over  # it owes an answer
        with old.changed:
            old.allocs_index += 1
            old.change()
        wait_for('the connection to end', lambda: all(session.over for session in old.servers[0].sessions))
        assert old.servers[0].accepts == 1 and told(node, 'connection is over') == 0
        finish(new, node)


if __name__ == '__main__':
    sys.exit(tap([
        servers_are_found_whenever_consul_knows_them,
        servers_that_have_moved_are_found_again,
        consul_that_is_away_or_says_nonsense_is_asked_again,
        who_is_told_of_other_servers_asks_these,
        who_is_no_server_any_more_is_left_when_nothing_is_under_way,
    ]))
