#!/usr/bin/python3
"""Identities with names on a node that takes its work from servers: signed before the task starts,
renewed while it runs, through all that a daemon may die of."""
import contextlib
import json
import os
import pwd
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import events, tap, wait_for  # noqa: E402
from peer import SIGNED, Servers  # noqa: E402
from test_identity import open_to_others, path_of, read  # noqa: E402
from test_join import alloc_of, await_status, finish, joined, script  # noqa: E402

# Tells what it has, and of each signal.
TELLS = ('cat $NOMAD_SECRETS_DIR/*.jwt > $NOMAD_TASK_DIR/files; '
         'env | grep ^NOMAD_TOKEN_ > $NOMAD_TASK_DIR/env; '
         'trap "echo hup >> $NOMAD_TASK_DIR/hups" HUP; '
         'echo yes > $NOMAD_TASK_DIR/ready; while :; do sleep 0.1; done')
SECOND = 10**9


def named(*identities, text=TELLS, **fields):
    return alloc_of(script(text, Identities=[dict({'Audience': ['x']}, **each)
                                             for each in identities], **fields))


def token(name, number):
    return '%s.%s.%d' % (SIGNED, name, number)


def says(node, alloc, *names):
    try:
        return read(node, alloc, 't', *names)
    except FileNotFoundError:
        return ''


def leaders(node):
    """What was started, and not what that starts."""
    found = set()
    for pid in node.payloads():
        with contextlib.suppress(ProcessLookupError):
            found |= {pid} if os.getsid(pid) == pid else set()
    return found


def state_of(servers, alloc):
    return (servers.allocs[alloc['ID']].get('TaskStates') or {}).get('t') or {}


def messages(servers, alloc):
    return [event['DisplayMessage'] for event in state_of(servers, alloc).get('Events') or []]


def nobody_but_its_task_has_the_tokens():
    with Servers() as servers:
        node = joined(servers)
        alloc = named({'Name': 'aws', 'Env': True, 'File': True, 'TTL': 3600 * SECOND},
                      {'Name': 'k-8_s', 'File': True, 'Filepath': 'local/deep/token'},
                      {'Name': 'unseen', 'TTL': 3600 * SECOND}, User='nobody')
        servers.add(alloc)
        await_status(servers, alloc, 'running')
        wait_for('the task to tell', lambda: says(node, alloc, 'local', 'env'))
        assert read(node, alloc, 't', 'local', 'env') == 'NOMAD_TOKEN_aws=' + token('aws', 1)
        for names, name, number in ((('secrets', 'nomad_aws.jwt'), 'aws', 1),
                                    (('local', 'deep', 'token'), 'k-8_s', 2)):
            assert read(node, alloc, 't', *names) == token(name, number)
            seen = os.stat(path_of(node, alloc, 't', *names))
            assert stat.S_IMODE(seen.st_mode) == 0o600, oct(seen.st_mode)
            assert seen.st_uid == pwd.getpwnam('nobody').pw_uid, seen
        asked, = servers.calls('Alloc.SignIdentities')
        assert [each['IdentityName'] for each in asked['Identities']] == ['aws', 'k-8_s'], asked
        assert asked['MinQueryIndex'] == servers.allocs[alloc['ID']]['CreateIndex'] - 1, asked
        for path in open_to_others(node.dir):
            assert False, path
        shown = [node.cli('journal', *words, '-dir', node.data).stdout for words in
                 (('show', '-all', alloc['ID'] + '/t'), ('show', '-json', '-all', alloc['ID'] + '/t'),
                  ('log',), ('log', '-json'), ('export', '-redact'))]
        assert 'NOMAD_TOKEN_aws' in shown[0] and '***' in shown[0], shown[0]
        shown += [node.text('GET', path) for path in
                  ('/v1/allocations', '/v1/allocation/' + alloc['ID'])]
        shown += [node.log(1 << 20), json.dumps(servers.allocs[alloc['ID']]['TaskStates'])]
        for number, text in enumerate(shown):
            assert text and SIGNED not in text, number
        finish(servers, node)


def what_servers_refuse_is_a_clear_end():
    with Servers() as servers:
        node = joined(servers)
        alloc = named({'Name': 'aws', 'Env': True})
        servers.handlers['Alloc.SignIdentities'] = lambda args: {
            'SignedIdentities': [], 'Rejections': [dict(args['Identities'][0],
                                                        Reason='identity not found')]}
        servers.add(alloc)
        await_status(servers, alloc, 'failed')
        told = [message for message in messages(servers, alloc) if 'identities' in message]
        assert told == ['identity: failed to fetch signed identities: the servers refuse to sign 1 '
                        'of 1 identities: "aws": identity not found'], messages(servers, alloc)
        assert not servers.calls('Alloc.SignIdentities')[1:]
        finish(servers, node)


def who_is_not_answered_waits():
    """And dies in between."""
    with Servers() as servers:
        node = joined(servers)
        alloc = named({'Name': 'aws', 'Env': True})
        servers.refuse('Alloc.SignIdentities', 'No cluster leader', times=None)
        servers.add(alloc)
        wait_for('it to ask again', lambda: servers.calls('Alloc.SignIdentities')[1:])
        node.kill()
        servers.mend('Alloc.SignIdentities')
        node.start()
        await_status(servers, alloc, 'running')
        wait_for('the task to tell', lambda: says(node, alloc, 'local', 'env'))
        assert read(node, alloc, 't', 'local', 'env') == 'NOMAD_TOKEN_aws=' + token('aws', 1)
        finish(servers, node)


def it_starts_again_with_what_it_has():
    """A restart asks nobody, also after a restart of the daemon; and its payload notices neither."""
    with Servers() as servers:
        node = joined(servers)
        alloc = named({'Name': 'aws', 'Env': True, 'File': True, 'TTL': 3600 * SECOND})
        servers.add(alloc)
        await_status(servers, alloc, 'running')
        wait_for('the task to tell', lambda: says(node, alloc, 'local', 'env'))
        pids = leaders(node)
        node.kill()
        node.start()
        wait_for('the node to be back', lambda: node.allocs())
        assert leaders(node) == pids
        assert not os.path.exists(path_of(node, alloc, 't', 'local', 'hups'))
        os.unlink(path_of(node, alloc, 't', 'secrets', 'nomad_aws.jwt'))
        os.unlink(path_of(node, alloc, 't', 'local', 'env'))
        servers.refuse('Alloc.SignIdentities', 'No cluster leader', times=None)
        node.put('/v1/client/allocation/%s/restart' % alloc['ID'], {})
        wait_for('the task to tell', lambda: says(node, alloc, 'local', 'env'))
        assert read(node, alloc, 't', 'local', 'env') == 'NOMAD_TOKEN_aws=' + token('aws', 1)
        assert read(node, alloc, 't', 'secrets', 'nomad_aws.jwt') == token('aws', 1)
        os.unlink(path_of(node, alloc, 't', 'local', 'env'))
        node.reboot('22222222-3333-4444-8555-666666666666')
        node.start()
        wait_for('the task to tell', lambda: says(node, alloc, 'local', 'env'))
        assert read(node, alloc, 't', 'local', 'files') == token('aws', 1)
        assert not servers.calls('Alloc.SignIdentities')[1:]
        finish(servers, node)


def a_new_token_is_told_once():
    """By a signal, by a restart, or not; while the daemon lives and after it has died."""
    with Servers() as servers:
        node = joined(servers)
        ttl = {'TTL': 3600 * SECOND, 'File': True}
        signaled = named(dict(ttl, Name='sig', ChangeMode='signal', ChangeSignal='SIGHUP'),
                         {'Name': 'ever', 'File': True, 'ChangeMode': 'restart'})
        restarted = named(dict(ttl, Name='re', Env=True, ChangeMode='restart'))
        left = named(dict(ttl, Name='noop', ChangeMode='noop'))
        allocs = (signaled, restarted, left)
        # What is signed first has expired, so that it is renewed at once; what comes then is good.
        own, first = servers.on_Alloc_SignIdentities, {}

        def expired(args):
            if 'sig' in first:  # who is signaled too early ends
                wait_for('it to be ready', lambda: says(node, signaled, 'local', 'ready'))
            reply = own(None, args)
            for each in reply['SignedIdentities']:
                if first.setdefault(each['IdentityName'], each['JWT']) == each['JWT']:
                    each['Expiration'] = {'$time': 10**9 if each['IdentityName'] != 'ever' else None}
            return reply
        servers.handlers['Alloc.SignIdentities'] = expired
        for alloc in allocs:
            servers.add(alloc)
            await_status(servers, alloc, 'running')
        for alloc, name in ((signaled, 'sig'), (restarted, 're'), (left, 'noop')):
            def renewed(alloc=alloc, name=name):
                return says(node, alloc, 'secrets', 'nomad_%s.jwt' % name) not in ('', first[name])
            wait_for('a new token of ' + name, renewed)
        wait_for('the signal', lambda: says(node, signaled, 'local', 'hups') == 'hup')
        wait_for('the restart', lambda: state_of(servers, restarted).get('Restarts') == 1)
        wait_for('it to have the new one', lambda: says(node, restarted, 'local', 'env') ==
                 'NOMAD_TOKEN_re=' + read(node, restarted, 't', 'secrets', 'nomad_re.jwt'))
        assert 'Identity[re]: new token acquired' in messages(servers, restarted)
        assert 'New identity token acquired' in messages(servers, signaled)
        pids = leaders(node)
        node.kill()
        # As if it had died after it wrote a new token, and before it was told.
        with open(path_of(node, signaled, 't', 'secrets', 'nomad_sig.jwt'), 'w') as file:
            file.write(token('sig', 99))
        node.start()
        wait_for('the signal of the last', lambda: says(node, signaled, 'local', 'hups') == 'hup\nhup')
        assert leaders(node) == pids
        assert 'Restart Signaled' not in events(state_of(servers, left))
        assert not state_of(servers, left).get('Restarts')
        asked = [[each['IdentityName'] for each in args['Identities']]
                 for args in servers.calls('Alloc.SignIdentities')]
        assert sorted(asked) == sorted([['sig', 'ever'], ['sig'], ['re'], ['re'], ['noop'], ['noop'],
                                        ['sig']]), asked
        assert SIGNED not in node.log(1 << 20)
        finish(servers, node)


if __name__ == '__main__':
    sys.exit(tap([
        nobody_but_its_task_has_the_tokens,
        what_servers_refuse_is_a_clear_end,
        who_is_not_answered_waits,
        it_starts_again_with_what_it_has,
        a_new_token_is_told_once,
    ]))
