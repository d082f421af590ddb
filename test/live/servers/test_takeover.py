#!/usr/bin/python3
"""What an alloc of servers takes over from another node: it begins when the one before it has ended there."""
import os
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import tap, wait_for  # noqa: E402
from peer import Servers  # noqa: E402
from test_join import alloc_of, await_status, finish, joined, sleeper, status  # noqa: E402


def successor(servers, **fields):
    """An alloc of another node that runs there, and one that is to take its place here."""
    previous = alloc_of(sleeper(999), ClientStatus='running')
    servers.add(previous, str(uuid.uuid4()))
    alloc = alloc_of(sleeper(1001), PreviousAllocation=previous['ID'], **fields)
    servers.add(alloc)
    wait_for('the node to ask for the one before it', lambda: servers.calls('Alloc.GetAlloc'))
    return previous, alloc


def assert_waits(servers, node, alloc):
    assert node.pid_of('sleep 1001') is None
    assert status(servers, alloc) == 'pending', status(servers, alloc)


def it_begins_when_the_one_on_another_node_has_ended():
    with Servers() as servers:
        node = joined(servers)
        previous, alloc = successor(servers)
        shown = node.cli('alloc', 'status', alloc['ID']).stdout
        assert 'Waiting for alloc %s on another node to end' % previous['ID'][:8] in shown, shown
        servers.hear(previous['ID'], 'running')
        wait_for('the next question', lambda: len(servers.calls('Alloc.GetAlloc')) > 1)
        assert_waits(servers, node, alloc)
        servers.hear(previous['ID'], 'complete')
        node.await_pid('sleep 1001')
        await_status(servers, alloc, 'running')
        finish(servers, node)


def a_crash_ends_no_waiting():
    """R-07."""
    with Servers() as servers:
        node = joined(servers)
        previous, alloc = successor(servers)
        for _ in range(3):
            node.kill()
            wait_for('what it had asked to be heard', lambda: servers.session() is None)
            asked = len(servers.calls('Alloc.GetAlloc'))
            node.start()
            wait_for('the question', lambda: len(servers.calls('Alloc.GetAlloc')) > asked)
            first = servers.calls('Alloc.GetAlloc')[asked]
            assert first.get('MinQueryIndex') == 0 and not first['AllowStale'], first
            assert_waits(servers, node, alloc)
        node.kill()
        servers.hear(previous['ID'], 'complete')  # while nobody asks
        node.start()
        node.await_pid('sleep 1001')
        await_status(servers, alloc, 'running')
        finish(servers, node)


def while_servers_are_away_it_waits():
    with Servers() as servers:
        node = joined(servers)
        previous, alloc = successor(servers)
        servers.servers[0].pause()
        wait_for('the reason', lambda: 'of which the servers do not tell' in
                 node.cli('alloc', 'status', alloc['ID']).stdout)
        assert_waits(servers, node, alloc)
        servers.hear(previous['ID'], 'lost')
        servers.servers[0].resume()
        node.await_pid('sleep 1001')
        await_status(servers, alloc, 'running')
        finish(servers, node)


def one_that_is_stopped_or_forgotten_waits_no_more():
    with Servers() as servers:
        node = joined(servers)
        previous, alloc = successor(servers)
        other = alloc_of(sleeper(1001), name='other', PreviousAllocation=previous['ID'])
        servers.add(other)
        wait_for('both to be asked for', lambda: len(servers.calls('Alloc.GetAlloc')) > 1)
        servers.stop(alloc['ID'])
        await_status(servers, alloc, 'complete')
        servers.forget(other['ID'])
        wait_for('it to be gone', lambda: [one['ID'] for one in node.allocs()] == [alloc['ID']])
        servers.hear(previous['ID'], 'complete')
        assert not node.payloads()
        finish(servers, node)


if __name__ == '__main__':
    sys.exit(tap([
        it_begins_when_the_one_on_another_node_has_ended,
        a_crash_ends_no_waiting,
        while_servers_are_away_it_waits,
        one_that_is_stopped_or_forgotten_waits_no_more,
    ]))
