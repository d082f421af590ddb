#!/usr/bin/python3
"""Identities of tasks on a node that takes its work from servers: the token that they sign reaches
its task, through all that a daemon and a machine may die of, and nobody else."""
import http.client
import json
import os
import pwd
import socket
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import tap, wait_for  # noqa: E402
from peer import Refused, Servers  # noqa: E402
from test_join import alloc_of, await_status, finish, joined, script  # noqa: E402

TOKEN = 'eyJhbGciOiJSUzI1NiJ9.eyJub21hZF90YXNrIjoidCJ9.c2lnbmVkLWJ5LW5vYm9keQ'
# Tells what it has, again whenever it is asked, and sleeps.
TELLS = ('echo "$NOMAD_TOKEN" > $NOMAD_TASK_DIR/env; cat $NOMAD_SECRETS_DIR/nomad_token '
         '> $NOMAD_TASK_DIR/file; exec sleep 1000')


def identified(text=TELLS, token=TOKEN, **fields):
    identity = {'Name': 'default', 'Env': True, 'File': True}
    alloc = alloc_of(script(text, Identity=dict(identity, **fields.pop('Identity', {})), **fields))
    if token:
        alloc['SignedIdentities'] = {'t': token}
    return alloc


def path_of(node, alloc, *names):
    return os.path.join(node.data, 'alloc', alloc['ID'], *names)


def read(node, alloc, *names):
    with open(path_of(node, alloc, *names)) as file:
        return file.read().strip()


def has_told(node, alloc):
    """What its task saw last is the token; it is forgotten for the next time."""
    try:
        told = [read(node, alloc, 't', 'local', name) for name in ('env', 'file')]
    except FileNotFoundError:
        return False
    if told != [TOKEN, TOKEN]:
        return False
    for name in ('env', 'file'):
        os.unlink(path_of(node, alloc, 't', 'local', name))
    return True


def begin(servers, node, alloc):
    servers.add(alloc)
    await_status(servers, alloc, 'running')
    wait_for('the task to tell', lambda: has_told(node, alloc))


def open_to_others(root):
    """Files with the token that others than their owner may read, and reach."""
    found = []
    for directory, names, files in os.walk(root):
        if not os.stat(directory).st_mode & stat.S_IXOTH:
            names[:] = []
            continue
        for name in files:
            path = os.path.join(directory, name)
            if not os.stat(path).st_mode & 0o077:
                continue
            with open(path, 'rb') as file:
                found += [path] * (TOKEN.encode() in file.read())
    return found


def nobody_but_its_task_has_the_token():
    with Servers() as servers:
        node = joined(servers)
        alloc = identified(User='nobody')
        begin(servers, node, alloc)
        seen = os.stat(path_of(node, alloc, 't', 'secrets', 'nomad_token'))
        assert stat.S_IMODE(seen.st_mode) == 0o600, oct(seen.st_mode)
        assert seen.st_uid == pwd.getpwnam('nobody').pw_uid, seen
        assert not open_to_others(node.dir)
        shown = [node.cli('journal', *words, '-dir', node.data).stdout for words in
                 (('show', '-all', alloc['ID']), ('show', '-json', '-all', alloc['ID']), ('log',),
                  ('log', '-json'), ('export', '-redact'))]
        assert '"SignedIdentities"' in shown[0] and '***' in shown[0], shown[0]
        shown += [node.text('GET', path) for path in
                  ('/v1/allocations', '/v1/allocation/' + alloc['ID'])]
        shown += [node.log(1 << 20)]
        for number, text in enumerate(shown):
            assert text and TOKEN not in text, number
        told = str(servers.allocs[alloc['ID']]['TaskStates'])
        assert TOKEN not in told, told
        finish(servers, node)


def roots_token_is_for_nobody_else():
    with Servers() as servers:
        node = joined(servers)
        alloc = identified(Identity={'Filepath': 'local/deep/token'},
                           text='exec sleep 1000')
        servers.add(alloc)
        await_status(servers, alloc, 'running')
        seen = os.stat(path_of(node, alloc, 't', 'local', 'deep', 'token'))
        assert stat.S_IMODE(seen.st_mode) == 0o600 and seen.st_uid == os.geteuid(), seen
        assert read(node, alloc, 't', 'local', 'deep', 'token') == TOKEN
        finish(servers, node)


def it_is_there_after_each_death():
    with Servers() as servers:
        node = joined(servers)
        alloc = identified()
        begin(servers, node, alloc)
        pid = node.pid_of('sleep 1000')
        node.kill()
        node.start()
        wait_for('the node to be back', lambda: node.allocs())
        assert node.pid_of('sleep 1000') == pid
        assert read(node, alloc, 't', 'secrets', 'nomad_token') == TOKEN
        node.put('/v1/client/allocation/%s/restart' % alloc['ID'], {})
        wait_for('the task to tell', lambda: has_told(node, alloc))
        newer = dict(servers.allocs[alloc['ID']]['Job'], Version=1)
        servers.replace(alloc['ID'], Job=newer)
        wait_for('the newer version', lambda: [each['JobVersion'] for each in node.allocs()] == [1])
        node.reboot('22222222-3333-4444-8555-666666666666')
        node.start()
        wait_for('the task to tell', lambda: has_told(node, alloc))
        finish(servers, node)


def one_that_is_not_sent_is_not_made_up():
    with Servers() as servers:
        node = joined(servers)
        alloc = identified(token=None)
        servers.add(alloc)
        await_status(servers, alloc, 'failed')
        told = servers.allocs[alloc['ID']]['ClientDescription']
        assert told == ('the server sent no identity of the task "t", which asks for it'), told
        assert not node.allocs()
        finish(servers, node)


# --- the Task API ---

class Asking(http.client.HTTPConnection):
    """A connection to the socket at PATH, which may be longer than an address holds."""

    def __init__(self, path):
        super().__init__('localhost', timeout=20)
        self.path = path

    def connect(self):
        directory = os.open(os.path.dirname(self.path), os.O_PATH)
        try:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(20)
            self.sock.connect('/proc/self/fd/%d/%s' % (directory, os.path.basename(self.path)))
        finally:
            os.close(directory)


def ask(node, alloc, method, path, body=None, token=TOKEN, **headers):
    """Status and text of the answer."""
    asking = Asking(path_of(node, alloc, 't', 'secrets', 'api.sock'))
    if token:
        headers['X-Nomad-Token'] = token
    asking.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = asking.getresponse()
    text = answer.read().decode()
    asking.close()
    return answer.status, text


def knowing(servers, variables):
    """SERVERS that know one identity and one manager, and VARIABLES by their paths."""
    def who(args):
        if args['AuthToken'] == TOKEN:
            return {'Identity': {'ACLToken': None, 'Claims': {'nomad_task': 't'}, 'ClientID': ''}}
        if args['AuthToken'] == 'manager':
            return {'Identity': {'ACLToken': {'Type': 'management'}, 'Claims': None}}
        if args['AuthToken'] == 'nobody':
            return {'Identity': {'ACLToken': None, 'Claims': None, 'ClientID': 'x'}}
        raise Refused('Permission denied')

    def read(args):
        return {'Data': variables.get(args['Path']), 'Index': 7, 'KnownLeader': True}

    def apply(args):
        variable, path = args['Var'], args['Var']['Path']
        if path.startswith('secret'):
            raise Refused('Permission denied')
        if args['Op'] == 'cas' and variables.get(path, {}).get('ModifyIndex', 0) != variable['ModifyIndex']:
            return {'Op': 'cas', 'Result': 'conflict', 'Conflict': variables[path], 'Output': None}
        if args['Op'] == 'delete':
            variables.pop(path, None)
            return {'Output': None, 'Conflict': None, 'Index': 9}
        variables[path] = dict(variable, ModifyIndex=8, CreateTime=1, Lock=None)
        return {'Output': variables[path], 'Conflict': None, 'Index': 8}
    servers.handlers.update({
        'ACL.WhoAmI': who, 'Variables.Read': read, 'Variables.Apply': apply,
        'Variables.List': lambda args: {'Data': None, 'Index': 7},
        'ServiceRegistration.List': lambda args: {'Services': [{'Namespace': args['Namespace']}]}})


def whoever_shows_no_good_token_is_told_nothing():
    with Servers() as servers:
        knowing(servers, {})
        node = joined(servers)
        alloc = identified(User='nobody')
        begin(servers, node, alloc)
        seen = os.stat(path_of(node, alloc, 't', 'secrets', 'api.sock'))
        assert stat.S_IMODE(seen.st_mode) == 0o600, oct(seen.st_mode)
        assert seen.st_uid == pwd.getpwnam('nobody').pw_uid, seen
        assert ask(node, alloc, 'GET', '/v1/vars', token=None) == (401, 'Unauthorized')
        assert ask(node, alloc, 'GET', '/nowhere', token=None) == (401, 'Unauthorized')
        assert not servers.calls('ACL.WhoAmI')
        for token in ('strange', 'nobody'):
            assert ask(node, alloc, 'GET', '/v1/vars', token=token) == (403, 'Forbidden'), token
        assert not servers.calls('Variables.List')
        servers.refuse('ACL.WhoAmI', 'No cluster leader')
        assert ask(node, alloc, 'GET', '/v1/vars')[0] == 500
        assert ask(node, alloc, 'GET', '/v1/agent/self') == (403, 'Permission denied')
        assert ask(node, alloc, 'GET', '/v1/agent/self', token='manager')[0] == 200
        assert ask(node, alloc, 'GET', '/v1/vars?region=elsewhere')[0] == 404
        finish(servers, node)


def a_task_asks_the_servers_as_itself():
    with Servers() as servers:
        variables = {}
        knowing(servers, variables)
        node = joined(servers)
        alloc = identified()
        begin(servers, node, alloc)
        assert ask(node, alloc, 'GET', '/v1/var/a/b') == (404, 'variable not found')
        items = {'Items': {'$fine': 'no', 'user': 'ann'}}
        assert ask(node, alloc, 'PUT', '/v1/var/a/b', items)[0] == 400
        items = {'Items': {'user': 'ann'}}
        status, text = ask(node, alloc, 'PUT', '/v1/var/a/b?namespace=apps', items)
        assert status == 200 and json.loads(text)['Namespace'] == 'apps', text
        status, text = ask(node, alloc, 'GET', '/v1/var/a/b', token=None,
                           Authorization='Bearer ' + TOKEN)
        assert status == 200 and json.loads(text)['Items'] == {'user': 'ann'}, text
        assert 'Lock' not in json.loads(text), text
        status, text = ask(node, alloc, 'PUT', '/v1/var/a/b?cas=3', items)
        assert status == 409 and json.loads(text)['ModifyIndex'] == 8, text
        assert ask(node, alloc, 'PUT', '/v1/var/a/b?lock-acquire', items)[0] == 501
        assert ask(node, alloc, 'PUT', '/v1/var/a/b', {'Items': {}})[0] == 400
        assert ask(node, alloc, 'PUT', '/v1/var/secret', items) == (403, 'Permission denied')
        assert ask(node, alloc, 'DELETE', '/v1/var/a/b') == (204, '')
        assert not variables
        assert ask(node, alloc, 'GET', '/v1/vars') == (200, '[]')
        assert ask(node, alloc, 'GET', '/v1/services?namespace=*') == (200, '[{"Namespace":"*"}]')
        assert ask(node, alloc, 'GET', '/v1/vars?index=7&wait=2s')[0] == 200
        last = servers.calls('Variables.List')[-1]
        assert last['MinQueryIndex'] == 7 and last['MaxQueryTime'] == 2 * 10**9, last
        for method in ('Variables.Read', 'Variables.Apply', 'Variables.List'):
            assert {args['AuthToken'] for args in servers.calls(method)} == {TOKEN}, method
        assert TOKEN not in node.log(1 << 20)
        finish(servers, node)


def the_socket_is_there_while_the_task_runs():
    """Whatever dies, and whoever is connected when the task ends."""
    with Servers() as servers:
        knowing(servers, {})
        node = joined(servers)
        alloc = identified()
        begin(servers, node, alloc)
        node.kill()
        node.start()
        wait_for('a new socket', lambda: is_answered(node, alloc))
        node.put('/v1/client/allocation/%s/restart' % alloc['ID'], {})
        wait_for('the task to tell', lambda: has_told(node, alloc))
        wait_for('a new socket', lambda: is_answered(node, alloc))
        idle = [Asking(path_of(node, alloc, 't', 'secrets', 'api.sock')) for _ in range(20)]
        for each in idle:
            each.connect()
        servers.hang('ACL.WhoAmI')
        waiting = Asking(path_of(node, alloc, 't', 'secrets', 'api.sock'))
        idle[0].request('GET', '/v1/vars', headers={'X-Nomad-Token': TOKEN})
        wait_for('it to ask', lambda: servers.calls('ACL.WhoAmI')[-1])
        waiting.connect()
        servers.stop(alloc['ID'])
        await_status(servers, alloc, 'complete')
        state = servers.allocs[alloc['ID']]['TaskStates']['t']
        assert 'Task hook failed' not in json.dumps(state), state
        assert not os.path.exists(path_of(node, alloc, 't', 'secrets', 'api.sock'))
        for each in idle + [waiting]:
            each.close()
        finish(servers, node)


def is_answered(node, alloc):
    try:
        return ask(node, alloc, 'GET', '/v1/vars') == (200, '[]')
    except OSError:
        return False


if __name__ == '__main__':
    sys.exit(tap([
        nobody_but_its_task_has_the_token,
        roots_token_is_for_nobody_else,
        it_is_there_after_each_death,
        one_that_is_not_sent_is_not_made_up,
        whoever_shows_no_good_token_is_told_nothing,
        a_task_asks_the_servers_as_itself,
        the_socket_is_there_while_the_task_runs,
    ]))
