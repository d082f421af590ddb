#!/usr/bin/python3
"""Templates that ask servers, for variables and services: what they render, what they wait for, and
what becomes of it when a daemon, servers, or what they know come and go."""
import os
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import events, milliseconds, tap, wait_for  # noqa: E402
from peer import Servers  # noqa: E402
from test_join import alloc_of, await_status, finish, joined, script  # noqa: E402

TOKEN = 'eyJhbGciOiJSUzI1NiJ9.eyJub21hZF90YXNrIjoidCJ9.c2lnbmVkLWJ5LW5vYm9keQ'
PATH = 'nomad/jobs/job'
READS = '{{ with nomadVar "%s" }}{{ .password }}{{ end }}' % PATH
SOON = {'Min': 1000000, 'Max': 2000000}  # what changes is rendered soon


def template(data, **fields):
    return dict({'EmbeddedTmpl': data, 'DestPath': 'secrets/out', 'Wait': SOON, 'Splay': 0}, **fields)


def asking(*templates, text='exec sleep 1000', token=TOKEN, **fields):
    """An alloc of a task with TEMPLATES, whose token the servers have signed."""
    alloc = alloc_of(script(text, Templates=list(templates), KillTimeout=milliseconds(500), **fields))
    alloc['SignedIdentities'] = {'t': token}
    return alloc


def servers_that_know(password='first-secret'):
    servers = Servers()
    servers.readers[TOKEN] = 'nomad/'
    if password:
        servers.set_variable(PATH, {'password': password})
    return servers


def path_of(node, alloc, name='secrets/out'):
    return os.path.join(node.data, 'alloc', alloc['ID'], 't', name)


def rendered(node, alloc, name='secrets/out'):
    with open(path_of(node, alloc, name)) as file:
        return file.read()


def await_rendered(node, alloc, text, name='secrets/out'):
    wait_for('it to say %r' % text, lambda: rendered(node, alloc, name) == text)


def told(servers, alloc):
    return (servers.allocs[alloc['ID']].get('TaskStates') or {}).get('t') or {}


def started(servers, alloc):
    return events(told(servers, alloc)).count('Started')


def messages(servers, alloc, kind):
    return [event['DisplayMessage'] for event in told(servers, alloc).get('Events') or []
            if event['Type'] == kind]


def run(servers, node, alloc):
    servers.add(alloc)
    await_status(servers, alloc, 'running')


def open_to_others(root, secret):
    """Files with SECRET that others than their owner may read, and reach."""
    found = []
    for directory, names, files in os.walk(root):
        if not os.stat(directory).st_mode & stat.S_IXOTH:
            names[:] = []
            continue
        for name in files:
            path = os.path.join(directory, name)
            if os.stat(path).st_mode & 0o077:
                with open(path, 'rb') as file:
                    found += [path] * (secret.encode() in file.read())
    return found


def a_task_has_what_servers_know_and_is_told_what_changes():
    with servers_that_know() as servers:
        servers.set_services([{'ID': 'i', 'ServiceName': 'db', 'Namespace': 'default', 'NodeID': 'x',
                               'Address': '10.1.2.3', 'Port': 5432, 'Tags': ['b', 'a'], 'JobID': 'j',
                               'AllocID': 'y', 'Datacenter': 'dc1'}])
        node = joined(servers)
        alloc = asking(
            template('%s {{ range nomadVarList "nomad/jobs" }}{{ .Path }}{{ end }}' % READS, Perms='0600'),
            template('{{ range nomadService "db" }}{{ .Address }}:{{ .Port }}{{ .Tags }}{{ end }}'
                     '{{ range nomadServices }} {{ .Name }}{{ end }}', DestPath='local/db',
                     ChangeMode='noop'),
            template('{{ nomadVarExists "nomad/none" }}', DestPath='local/exists',
                     ChangeMode='signal', ChangeSignal='SIGUSR1'),
            text='trap "echo told > local/signal" USR1; while :; do sleep 0.05; done')
        run(servers, node, alloc)
        assert rendered(node, alloc) == 'first-secret nomad/jobs/job'
        assert rendered(node, alloc, 'local/db') == '10.1.2.3:5432[a b] db'
        assert rendered(node, alloc, 'local/exists') == 'false'
        asked = servers.calls('Variables.Read') + servers.calls('ServiceRegistration.GetService')
        assert all((args['AuthToken'], args['Namespace'], args['AllowStale']) == (TOKEN, 'default', True)
                   for args in asked), asked
        servers.set_services([])
        await_rendered(node, alloc, '', 'local/db')
        servers.set_variable('nomad/none', {'x': 'y'})
        wait_for('the signal', lambda: os.path.exists(path_of(node, alloc, 'local/signal')))
        assert started(servers, alloc) == 1
        servers.set_variable(PATH, {'password': 'second-secret'})
        wait_for('another start', lambda: started(servers, alloc) == 2)
        assert rendered(node, alloc) == 'second-secret nomad/jobs/job'
        assert messages(servers, alloc, 'Restart Signaled') == ['Template with change_mode restart re-rendered']
        assert not open_to_others(node.dir, 'second-secret')
        shown = [node.cli('journal', *words, '-dir', node.data).stdout for words in
                 (('show', '-all', alloc['ID']), ('show', '-json', '-all', alloc['ID'] + '/t'),
                  ('log', '-json'), ('export', '-redact'), ('export',))]
        shown += [node.log(1 << 20), node.text('GET', '/v1/allocation/' + alloc['ID']),
                  str(servers.allocs[alloc['ID']]['TaskStates'])]
        for number, text in enumerate(shown):
            assert text and '-secret' not in text, number
        finish(servers, node)


def what_is_missing_is_waited_for_and_said():
    with servers_that_know(password=None) as servers:
        node = joined(servers)
        alloc = asking(template(READS))
        servers.add(alloc)
        missing = 'Missing: nomad.var.block(nomad/jobs/job@default.global)'
        wait_for('what it waits for', lambda: missing in messages(servers, alloc, 'Template'))
        assert (servers.allocs[alloc['ID']]['ClientStatus'], started(servers, alloc)) == ('pending', 0)
        node.kill()
        node.start()
        servers.set_variable(PATH, {'password': 'here'})
        await_status(servers, alloc, 'running')
        assert rendered(node, alloc) == 'here'
        servers.set_variable(PATH, None)  # what is gone stays as it was
        servers.set_variable('nomad/else', {'x': 'y'})
        other = asking(template('{{ with nomadVar "nomad/never" }}x{{ end }}'))
        servers.add(other)
        wait_for('what the other waits for', lambda: messages(servers, other, 'Template'))
        assert (rendered(node, alloc), started(servers, alloc)) == ('here', 1)
        servers.stop(other['ID'])  # while it waits
        await_status(servers, other, 'complete')
        finish(servers, node)


def what_changed_while_the_daemon_was_away_is_told_and_nothing_else():
    with servers_that_know() as servers:
        node = joined(servers)
        alloc = asking(template(READS))
        run(servers, node, alloc)
        pid = node.pid_of('sleep 1000')
        node.kill()
        asked = len(servers.calls('Variables.Read'))
        node.start()
        # The second question waits: the first one was answered, and what came of it was looked at.
        wait_for('it to ask again', lambda: len(servers.calls('Variables.Read')) >= asked + 2)
        servers.set_variable('nomad/else', {'x': 'y'})
        assert (node.pid_of('sleep 1000'), started(servers, alloc)) == (pid, 1)
        node.kill()
        servers.set_variable(PATH, {'password': 'second-secret'})
        node.start()
        wait_for('another start', lambda: started(servers, alloc) == 2)
        assert node.pid_of('sleep 1000') != pid and rendered(node, alloc) == 'second-secret'
        node.kill()
        asked = len(servers.calls('Variables.Read'))
        node.start()
        wait_for('it to ask again', lambda: len(servers.calls('Variables.Read')) >= asked + 2)
        assert started(servers, alloc) == 2
        finish(servers, node)


def who_may_not_read_waits_until_he_may():
    with servers_that_know() as servers:
        servers.readers[TOKEN] = 'else/'
        node = joined(servers)
        alloc = asking(template(READS), template('{{ nomadVarList | len }}', DestPath='local/list', ChangeMode='noop'))
        servers.add(alloc)
        wait_for('what it waits for', lambda: messages(servers, alloc, 'Template'))
        assert len(servers.calls('Variables.Read')) > 1 and started(servers, alloc) == 0
        servers.readers[TOKEN] = 'nomad/'
        await_status(servers, alloc, 'running')
        assert rendered(node, alloc) == 'first-secret'
        servers.readers[TOKEN] = 'else/'
        asked = len(servers.calls('Variables.Read'))
        servers.set_variable(PATH, {'password': 'first-secret'})  # for the question that waits
        wait_for('refusals', lambda: len(servers.calls('Variables.Read')) >= asked + 2)
        servers.set_variable(PATH, {'password': 'second-secret'})
        wait_for('more', lambda: len(servers.calls('Variables.Read')) >= asked + 4)
        assert (rendered(node, alloc), started(servers, alloc)) == ('first-secret', 1)
        finish(servers, node)


def while_servers_are_away_all_is_as_it_was_rendered_last():
    with servers_that_know() as servers:
        node = joined(servers)
        alloc = asking(template(READS))
        run(servers, node, alloc)
        servers.servers[0].pause()
        os.unlink(path_of(node, alloc))
        # A start needs what is known, and asks nobody.
        node.put('/v1/client/allocation/%s/restart' % alloc['ID'], {})
        wait_for('it to be rendered again', lambda: os.path.exists(path_of(node, alloc)))
        wait_for('another start', lambda: events(node.task('job', 'g', 't')).count('Started') == 2)
        assert rendered(node, alloc) == 'first-secret'
        pid = node.pid_of('sleep 1000')
        node.kill()
        node.start()
        wait_for('the node to be back', lambda: node.allocs())
        assert node.pid_of('sleep 1000') == pid and rendered(node, alloc) == 'first-secret'
        servers.set_variable(PATH, {'password': 'second-secret'})
        servers.servers[0].resume()
        wait_for('another start', lambda: started(servers, alloc) == 3)
        assert rendered(node, alloc) == 'second-secret'
        finish(servers, node)


def one_question_serves_all_allocs_of_a_task():
    with servers_that_know() as servers:
        node = joined(servers)
        allocs = [asking(template(READS)) for _ in range(5)]
        for alloc in allocs:
            run(servers, node, alloc)
        # One is answered, and one waits for a change.
        assert len(servers.calls('Variables.Read')) == 2, servers.calls('Variables.Read')
        servers.set_variable(PATH, {'password': 'second-secret'})
        for alloc in allocs:
            wait_for('another start', lambda: started(servers, alloc) == 2)  # pylint: disable=cell-var-from-loop
            assert rendered(node, alloc) == 'second-secret'
        finish(servers, node)


if __name__ == '__main__':
    sys.exit(tap([
        a_task_has_what_servers_know_and_is_told_what_changes,
        what_is_missing_is_waited_for_and_said,
        what_changed_while_the_daemon_was_away_is_told_and_nothing_else,
        who_may_not_read_waits_until_he_may,
        while_servers_are_away_all_is_as_it_was_rendered_last,
        one_question_serves_all_allocs_of_a_task,
    ]))
