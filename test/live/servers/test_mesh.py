#!/usr/bin/python3
"""Tokens of service identity on a node that takes its work from servers: those that derive some are
asked until they have answered, once for each task, through crashes of the daemon; nobody else has the
token, and with servers that derive none, tasks run without."""
import os
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from consul import Consul  # noqa: E402
from lib import restart_policy, tap, wait_for  # noqa: E402
from peer import Servers  # noqa: E402
from test_join import alloc_of, await_status, finish, joined, script, status  # noqa: E402

AGENTS, TOKEN = '99999999-2222-3333-4444-555555555555', '11111111-2222-3333-4444-555555555555'
METHOD = 'Node.DeriveSIToken'
TELLS = ('env | grep ^CONSUL_HTTP_TOKEN= > $NOMAD_TASK_DIR/env.new; '
         'mv $NOMAD_TASK_DIR/env.new $NOMAD_TASK_DIR/env; exec sleep 1007')


def native():
    """As servers send it."""
    task = script(TELLS, Kind='connect-native:n', User='nobody')
    service = {'Name': 'n', 'PortLabel': '80', 'TaskName': 't', 'Provider': 'consul',
               'AddressMode': 'auto', 'Connect': {'Native': True, 'SidecarService': None,
                                                  'SidecarTask': None, 'Gateway': None}}
    return alloc_of(task, Group={'Networks': [{'Mode': 'host'}], 'Services': [service],
                                 'RestartPolicy': restart_policy(1)})


def begin(servers, consul):
    return joined(servers, '}\nconsul {\n  address = "%s"\n  token = "%s"\n' % (consul.address, AGENTS))


def derives(args):
    return {'Tokens': {args['Tasks'][0]: TOKEN}, 'Error': None, 'Index': 1}


def path_of(node, alloc, *names):
    return os.path.join(node.data, 'alloc', alloc['ID'], 't', *names)


def told(node, alloc):
    """What its task sees; it is forgotten for the next time."""
    path = path_of(node, alloc, 'local', 'env')
    wait_for('the task to tell', lambda: os.path.exists(path))
    with open(path) as file:
        text = file.read().strip()
    os.unlink(path)
    return text


def a_token_is_derived_once_and_kept_through_crashes():
    consul = Consul(token=AGENTS)
    with Servers() as servers:
        servers.handlers[METHOD] = derives
        servers.hang(METHOD)
        node = begin(servers, consul)
        alloc = native()
        servers.add(alloc)
        wait_for('the question', lambda: servers.calls(METHOD))
        node.kill()  # before there is an answer
        node.start()
        await_status(servers, alloc, 'running')
        assert told(node, alloc) == 'CONSUL_HTTP_TOKEN=' + TOKEN
        [node_id] = servers.nodes
        asked = servers.calls(METHOD)[-1]
        assert (asked['NodeID'], asked['AllocID'], asked['Tasks']) == (node_id, alloc['ID'], ['t']), asked
        file = os.stat(path_of(node, alloc, 'secrets', 'si_token'))
        assert stat.S_IMODE(file.st_mode) == 0o600 and file.st_uid != 0, file
        before = len(servers.calls(METHOD))
        node.kill()
        os.kill(node.pid_of('sleep 1007'), 9)
        node.start()
        assert told(node, alloc) == 'CONSUL_HTTP_TOKEN=' + TOKEN
        assert len(servers.calls(METHOD)) == before
        wait_for('the service', lambda: consul.names() == ['n'])
        exported = node.cli('journal', 'export', '-dir', node.data).stdout
        assert TOKEN not in node.log(1 << 20) + exported
        finish(servers, node)
    consul.stop()


def servers_that_cannot_say_are_asked_again_and_what_they_refuse_fails():
    consul = Consul(token=AGENTS)
    with Servers() as servers:
        servers.handlers[METHOD] = derives
        servers.refuse(METHOD, 'No cluster leader')
        node = begin(servers, consul)
        alloc = native()
        servers.add(alloc)
        await_status(servers, alloc, 'running')
        assert told(node, alloc) == 'CONSUL_HTTP_TOKEN=' + TOKEN
        assert len(servers.calls(METHOD)) == 2
        servers.handlers[METHOD] = lambda _: {'Tokens': None, 'Error': {'Err': 'no such service',
                                                                        'Recoverable': False}}
        other = native()
        servers.add(other)
        await_status(servers, other, 'failed')
        events = servers.allocs[other['ID']]['TaskStates']['t']['Events']
        assert any('failed to derive SI token: no such service' in event['DisplayMessage']
                   for event in events), events
        assert status(servers, alloc) == 'running'
        finish(servers, node)
    consul.stop()


def servers_that_derive_none_are_asked_once():
    consul = Consul(token=AGENTS)
    with Servers() as servers:
        node = begin(servers, consul)
        for _ in range(2):
            alloc = native()
            servers.add(alloc)
            await_status(servers, alloc, 'running')
            assert told(node, alloc) == ''  # and not the agent's
        assert len(servers.calls(METHOD)) == 1
        finish(servers, node)
    consul.stop()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: tasks are cgroups of their own')
        sys.exit(77)
    sys.exit(tap([
        a_token_is_derived_once_and_kept_through_crashes,
        servers_that_cannot_say_are_asked_again_and_what_they_refuse_fails,
        servers_that_derive_none_are_asked_once,
    ]))
