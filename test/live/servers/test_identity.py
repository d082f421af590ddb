#!/usr/bin/python3
"""Identities of tasks on a node that takes its work from servers: the token that they sign reaches
its task, through all that a daemon and a machine may die of, and nobody else."""
import os
import pwd
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import tap, wait_for  # noqa: E402
from peer import Servers  # noqa: E402
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


if __name__ == '__main__':
    sys.exit(tap([
        nobody_but_its_task_has_the_token,
        roots_token_is_for_nobody_else,
        it_is_there_after_each_death,
        one_that_is_not_sent_is_not_made_up,
    ]))
