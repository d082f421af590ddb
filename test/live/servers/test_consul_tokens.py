#!/usr/bin/python3
"""Tokens of Consul on a node whose servers give identities to services and tasks: each is had once,
before there is a task, is nobody else's, and is given back, whatever the daemon or Consul dies of."""
import os
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from consul import Consul  # noqa: E402
from lib import restart_policy, tap, wait_for  # noqa: E402
from peer import SIGNED, Servers  # noqa: E402
from test_join import alloc_of, await_status, finish, joined, script  # noqa: E402
from test_mesh import AGENTS, path_of, told  # noqa: E402

TELLS = ('env | grep "^CONSUL.*TOKEN=" | sort > $NOMAD_TASK_DIR/env.new; '
         'mv $NOMAD_TASK_DIR/env.new $NOMAD_TASK_DIR/env; exec sleep 1008')
OF_SERVICE, OF_TASK = 'nomad_service_web-g', 'nomad_task_t'


def service_of(name, identity=True, **fields):
    """As servers send it: they name its identity by what the job says."""
    return dict({'Name': name, 'PortLabel': '80', 'TaskName': '', 'Provider': 'consul',
                 'AddressMode': 'auto',
                 'Identity': {'Name': 'consul-service_%s-80' % name, 'Audience': ['consul.io'],
                              'ServiceName': name, 'TTL': 3600 * 10**9, 'Env': False, 'File': False,
                              'ChangeMode': '', 'Filepath': ''} if identity else None}, **fields)


def begin(servers, consul, more=''):
    return joined(servers, '}\nconsul {\n  address = "%s"\n  token = "%s"\n%s'
                  % (consul.address, AGENTS, more))


def with_identities(*services, **fields):
    task = script(TELLS, User='nobody', Consul={'Namespace': '', 'Cluster': 'default', 'Partition': ''},
                  Identities=[{'Name': 'consul_default', 'Audience': ['consul.io'], 'Env': False,
                               'File': False, 'TTL': 3600 * 10**9}], **fields)
    return alloc_of(task, Group={'Networks': [{'Mode': 'host'}], 'Services': list(services),
                                 'Consul': {'Namespace': '', 'Cluster': 'default', 'Partition': ''},
                                 'RestartPolicy': restart_policy(1)})


def secret_is_nowhere(node, *secrets):
    shown = node.log(1 << 20) + node.cli('journal', 'export', '-dir', node.data).stdout
    assert not [secret for secret in secrets if secret in shown], shown


def each_is_had_once_and_given_back():
    consul = Consul(token=AGENTS)
    with Servers() as servers:
        node = begin(servers, consul, '  service_auth_method = "services"\n')
        alloc = with_identities(service_of('web-${NOMAD_GROUP_NAME}'), service_of('plain', identity=False))
        servers.add(alloc)
        await_status(servers, alloc, 'running')
        tokens = dict(consul.issued)
        assert set(tokens) == {OF_SERVICE, OF_TASK}, tokens
        assert told(node, alloc) == 'CONSUL_HTTP_TOKEN=%s\nCONSUL_TOKEN=%s' % ((tokens[OF_TASK],) * 2)
        assert sorted((one['AuthMethod'], one['BearerToken'].startswith(SIGNED + '.consul'))
                      for one in consul.logins) == [('nomad-workloads', True), ('services', True)]
        assert {one['Meta']['node_id'] for one in consul.logins} == set(servers.nodes)
        wait_for('both services', lambda: len(consul.services) == 2)
        assert consul.registered_by == {'web-g': tokens[OF_SERVICE], 'plain': AGENTS}
        file = os.stat(path_of(node, alloc, 'secrets', 'consul_token'))
        assert stat.S_IMODE(file.st_mode) == 0o600 and file.st_uid != 0, file
        kept = os.stat(path_of(node, alloc, '..', '.consul_tokens'))
        assert stat.S_IMODE(kept.st_mode) == 0o600 and kept.st_uid == 0, kept
        node.kill()
        os.kill(node.pid_of('sleep 1008'), 9)
        consul.forget()
        node.start()  # and the task starts anew
        assert told(node, alloc).endswith(tokens[OF_TASK])
        wait_for('both services again', lambda: len(consul.services) == 2)
        assert consul.registered_by['web-g'] == tokens[OF_SERVICE]
        assert len(consul.logins) == 2 and consul.issued == tokens
        secret_is_nowhere(node, SIGNED, *tokens.values())
        servers.stop(alloc['ID'])
        wait_for('all to be given back', lambda: not consul.issued)
        wait_for('the file to go', lambda: not os.path.exists(path_of(node, alloc, '..', '.consul_tokens')))
        finish(servers, node)
    consul.stop()


def what_a_crash_has_cut_off_is_gone_on_with():
    consul = Consul(token=AGENTS)
    with Servers() as servers:
        node = begin(servers, consul)
        consul.logins_max = 1
        alloc = with_identities(service_of('web-${NOMAD_GROUP_NAME}'))
        servers.add(alloc)
        wait_for('the second to be tried again', lambda: len(consul.logins) >= 3)
        node.kill()
        first = dict(consul.issued)
        consul.logins_max = None
        node.start()
        await_status(servers, alloc, 'running')
        assert set(consul.issued) == {OF_SERVICE, OF_TASK}
        assert first[OF_SERVICE] == consul.issued[OF_SERVICE]
        assert told(node, alloc).endswith(consul.issued[OF_TASK])
        servers.stop(alloc['ID'])
        await_status(servers, alloc, 'complete')
        finish(servers, node)
    consul.stop()


def what_consul_refuses_fails_and_is_left_nothing():
    consul = Consul(token=AGENTS)
    with Servers() as servers:
        node = begin(servers, consul)
        consul.login_fails = [(403, 'Permission denied')]
        alloc = with_identities(service_of('web-${NOMAD_GROUP_NAME}'))
        servers.add(alloc)
        await_status(servers, alloc, 'failed')
        said = str(servers.allocs[alloc['ID']])
        assert 'failed to derive Consul token for service web-g: 403 Permission denied' in said, said
        assert not node.payloads()
        wait_for('nothing to be left', lambda: not consul.issued)
        consul.login_fails = []
        other = with_identities(service_of('web-${NOMAD_GROUP_NAME}'))
        servers.add(other)
        await_status(servers, other, 'running')
        consul.stop()  # what cannot be given back holds up nobody
        servers.stop(other['ID'])
        await_status(servers, other, 'complete')
        consul.start()
        wait_for('all to be given back', lambda: not consul.issued)
        finish(servers, node)
    consul.stop()


def who_is_in_the_mesh_by_itself_has_the_token_of_its_service():
    consul = Consul(token=AGENTS)
    with Servers() as servers:
        node = begin(servers, consul)
        service = service_of('web', TaskName='t', Connect={
            'Native': True, 'SidecarService': None, 'SidecarTask': None, 'Gateway': None})
        alloc = alloc_of(script(TELLS, Kind='connect-native:web', User='nobody'),
                         Group={'Networks': [{'Mode': 'host'}], 'Services': [service]})
        servers.add(alloc)
        await_status(servers, alloc, 'running')
        assert told(node, alloc) == 'CONSUL_HTTP_TOKEN=' + consul.issued['nomad_service_web']
        assert not servers.calls('Node.DeriveSIToken')
        finish(servers, node)
    wait_for('it to be given back', lambda: not consul.issued)
    consul.stop()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: tasks are cgroups of their own')
        sys.exit(77)
    sys.exit(tap([
        each_is_had_once_and_given_back,
        what_a_crash_has_cut_off_is_gone_on_with,
        what_consul_refuses_fails_and_is_left_nothing,
        who_is_in_the_mesh_by_itself_has_the_token_of_its_service,
    ]))
