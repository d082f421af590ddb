#!/usr/bin/python3
"""A node that takes its work from servers and asks for tokens: those are the servers', who are asked once, are away,
silent or of another mind, while what the node runs goes on, and nobody has what they did not give him."""
import http.client
import os
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Refused, tap, wait_for  # noqa: E402
from peer import Servers  # noqa: E402
from test_join import alloc_of, await_status, finish, joined, script  # noqa: E402

ROOT, READER, NODER, STRANGE = ('%d1111111-2222-4333-8444-555555555555' % i for i in range(1, 5))
CONFIG = '}\nacl {\n enabled = true\n token_ttl = "%s"\n'  # behind the block `client`


class Book:
    """What the servers say of tokens."""

    def __init__(self, servers):
        self.tokens = {ROOT: {'Type': 'management'}, READER: {'Type': 'client', 'Policies': ['reader']},
                       NODER: {'Type': 'client', 'Policies': [], 'Roles': [{'ID': 'r'}]}}
        self.policies = {'reader': 'namespace "default" {\n policy = "read"\n capabilities = ["read-logs"]\n}',
                         'noder': 'node { policy = "read" }', 'anonymous': 'agent { policy = "read" }'}
        self.resolved = []
        servers.handlers['ACL.ResolveToken'] = self.resolve
        servers.handlers['ACL.GetRolesByID'] = lambda args: {
            'ACLRoles': {one: {'Policies': [{'Name': 'noder'}]} for one in args['ACLRoleIDs']}}
        servers.handlers['ACL.GetPolicies'] = lambda args: {
            'Policies': {name: {'Name': name, 'Rules': self.policies[name]} for name in args['Names']
                         if name in self.policies}}

    def resolve(self, args):
        found = self.tokens.get(args['SecretID'])
        self.resolved.append(args['SecretID'])
        return {'Token': found}


def begin(servers, ttl='60s'):
    book = Book(servers)
    node = joined(servers, CONFIG % ttl)
    node.token = ROOT
    return book, node


def status_of(node, path, token=None):
    node.token, kept = token, node.token
    try:
        node.text('GET', path)
        return 200
    except Refused as answer:
        return answer.status
    finally:
        node.token = kept


def who_may_do_what_is_as_the_servers_say_and_they_are_asked_once():
    with Servers() as servers:
        _, node = begin(servers)
        alloc = alloc_of(script('echo said; exec sleep 1000'))
        servers.add(alloc)
        await_status(servers, alloc, 'running')
        logs = '/v1/client/fs/logs/%s?task=t&type=stdout&plain=true' % alloc['ID']
        asked = len(servers.calls('ACL.ResolveToken'))
        for _ in range(3):
            for path, token, status in (
                    (logs, ROOT, 200), (logs, READER, 200), (logs, NODER, 403), (logs, STRANGE, 403), (logs, None, 403),
                    (logs, 'nonsense', 403), ('/v1/client/stats', NODER, 200), ('/v1/client/stats', READER, 403),
                    ('/v1/agent/self', None, 200), ('/v1/agent/health', None, 200), ('/v1/allocations', READER, 200)):
                assert status_of(node, path, token) == status, (path, token, status)
        assert len(servers.calls('ACL.ResolveToken')) - asked <= 4, servers.calls('ACL.ResolveToken')
        # What servers hand over they have looked at: it needs no token of ours.
        stream = servers.stream('FileSystem.Logs', {'AllocID': alloc['ID'], 'Task': 't', 'LogType': 'stdout',
                                                    'Origin': 'start', 'PlainText': True})
        assert 'said' in str(stream.read()['Payload'])
        stream.close()
        text = node.log()
        assert not [token for token in (ROOT, READER, NODER, STRANGE) if token in text], 'a secret is in the log'
        finish(servers, node)


def what_they_said_last_counts_while_they_are_away():
    with Servers() as servers:
        book, node = begin(servers, ttl='1ms')  # which is over with each answer
        assert status_of(node, '/v1/client/stats', NODER) == 200
        assert status_of(node, '/v1/allocations', READER) == 200
        for server in servers.servers:
            server.pause()
        assert status_of(node, '/v1/client/stats', NODER) == 200
        assert 'what they said last counts' in node.log(), 'it was asked for'
        assert status_of(node, '/v1/client/stats', STRANGE) == 500
        assert status_of(node, '/v1/agent/health') == 200
        for server in servers.servers:
            server.resume()
        del book.tokens[READER]
        wait_for('it to be withdrawn', lambda: status_of(node, '/v1/allocations', READER) == 403)
        wait_for('it to be known', lambda: status_of(node, '/v1/client/stats', STRANGE) == 403)
        finish(servers, node)


def whoever_waits_for_a_silent_server_holds_up_nobody():
    with Servers() as servers:
        _, node = begin(servers)
        assert status_of(node, '/v1/client/stats', NODER) == 200
        servers.hang('ACL.ResolveToken', times=None)
        request = ('GET /v1/client/stats HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Nomad-Token: %s\r\n\r\n' % STRANGE).encode()
        before = len(servers.calls('ACL.ResolveToken'))
        waiting = []
        for _ in range(20):
            link = socket.create_connection(('127.0.0.1', node.port))
            link.sendall(request)
            waiting.append(link)
        wait_for('the server to be asked', lambda: len(servers.calls('ACL.ResolveToken')) > before)
        assert status_of(node, '/v1/client/stats', NODER) == 200 and status_of(node, '/v1/agent/health') == 200
        for link in waiting[:10]:
            link.close()  # which do not wait any more
        servers.mend('ACL.ResolveToken')
        for session in [one for server in servers.servers for one in server.sessions]:
            session.cut()
        for link in waiting[10:]:
            link.settimeout(120)
            assert link.recv(100).startswith((b'HTTP/1.1 500', b'HTTP/1.1 403')), 'what was asked in vain is refused'
            link.close()
        assert len(servers.calls('ACL.ResolveToken')) - before <= 3, 'asked once for all'
        assert status_of(node, '/v1/client/stats', NODER) == 200
        finish(servers, node)


def who_waits_for_a_change_is_asked_again_when_it_comes():
    with Servers() as servers:
        book, node = begin(servers, ttl='1ms')  # which is over when the change comes
        alloc = alloc_of(script('exec sleep 1000'))
        servers.add(alloc)
        await_status(servers, alloc, 'running')
        path = '/v1/allocation/%s' % alloc['ID']
        told = []
        index = int(head_of(node, path, READER)['X-Nomad-Index'])
        begun = len(book.resolved)
        waiter = threading.Thread(target=lambda: told.append(
            head_of(node, '%s?index=%d&wait=60s' % (path, index), READER)['status']))
        waiter.start()
        wait_for('it to be known', lambda: len(book.resolved) == begun + 1)
        del book.tokens[READER]
        servers.stop(alloc['ID'])
        waiter.join(60)
        assert told == [403] and len(book.resolved) == begun + 2, (told, book.resolved)
        finish(servers, node)


def head_of(node, path, token):
    """Headers and status of an answer, for threads of their own."""
    link = http.client.HTTPConnection('127.0.0.1', node.port, timeout=60)
    link.request('GET', path, headers={'X-Nomad-Token': token})
    answer = link.getresponse()
    head = dict(answer.getheaders(), status=answer.status)
    link.close()
    return head


if __name__ == '__main__':
    sys.exit(tap([
        who_may_do_what_is_as_the_servers_say_and_they_are_asked_once,
        what_they_said_last_counts_while_they_are_away,
        whoever_waits_for_a_silent_server_holds_up_nobody,
        who_waits_for_a_change_is_asked_again_when_it_comes,
    ]))
