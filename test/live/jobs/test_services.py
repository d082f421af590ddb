#!/usr/bin/env python3
"""Services on a real node: offered as long as what offers it runs, and found again after a crash as
they were; deployments that wait for their checks, and restarts when they fail, whole dozens at once."""
import http.server
import json
import os
import sys
import threading
import urllib.error

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, Node, events, has_bridges, milliseconds, raw_exec,  # noqa: E402
                 remove_bridge, restart_policy, start_ticks, tap, wait_for)

CONFIG = 'client {\n  network_interface = "lo"\n%s}\n'

BRIDGE = 'cairn%d' % (os.getpid() % 100000)
SUBNET = '10.216.%d.0/24' % (os.getpid() % 250)
BRIDGED = CONFIG % ('  bridge_network_name = "%s"\n  bridge_network_subnet = "%s"\n'
                    % (BRIDGE, SUBNET))

# Answers 200 as long as the file says so.
WEB = ('import http.server, os\n'
       'class Answer(http.server.BaseHTTPRequestHandler):\n'
       '    def do_GET(self):\n'
       '        with open("%s") as file:\n'
       '            self.send_response(200 if file.read() == "well" else 503)\n'
       '        self.end_headers()\n'
       '    def log_message(self, *_):\n'
       '        pass\n'
       'class Server(http.server.HTTPServer):\n'
       '    def server_bind(self):\n'  # of http.server, but for a name that nobody knows
       '        self.socket.bind(self.server_address)\n'
       '        self.server_name, self.server_port = "web", self.server_address[1]\n'
       'Server(("0.0.0.0", int(os.environ["NOMAD_PORT_http"])), Answer).serve_forever()\n')

ASKED = '${NOMAD_META_asked}'  # services of tasks may have no number there
ANY = {'Mode': 'host', 'DynamicPorts': [{'Label': 'http'}]}


class Checked:
    """Somebody whom checks ask instead of a payload: well are the paths that are in WELL."""

    def __init__(self):
        self.well = set()
        outer = self

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if self.path in outer.well else 503)
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 300  # dozens come at once

        self.server = Server(('127.0.0.1', 0), Answer)
        self.port = str(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def check(path='/', kind='http', **fields):
    return {'Name': 'check-' + path.strip('/'), 'Type': kind, 'Path': path if kind == 'http' else '',
            'Interval': milliseconds(1000), 'Timeout': milliseconds(30000), **fields}


def offer(name, port, *checks, **fields):
    return {'Name': name, 'Provider': 'nomad', 'PortLabel': port, 'Checks': list(checks), **fields}


def sleeper(name='t', seconds=1000, **fields):
    return raw_exec(name, 'exec sleep %d' % seconds, KillTimeout=milliseconds(2000),
                    Resources={'CPU': 1, 'MemoryMB': 10}, **fields)


def web(says, **fields):
    return raw_exec('t', '', Config={'command': '/usr/bin/python3', 'args': ['-c', WEB % says]},
                    KillTimeout=milliseconds(2000), **fields)


def job_of(*tasks, name='job', asked='80', **fields):
    group = {'Name': 'g', 'Count': 1, 'Tasks': list(tasks), 'RestartPolicy': restart_policy(1000),
             'ReschedulePolicy': NO_RESCHEDULE, **fields}
    return {'ID': name, 'Name': name, 'Type': 'service', 'Datacenters': ['dc1'],
            'TaskGroups': [group], 'Meta': {'asked': asked}}


def update(deadline_ms=600000, **fields):
    return {'MaxParallel': 1, 'MinHealthyTime': milliseconds(100),
            'HealthyDeadline': milliseconds(deadline_ms),
            'ProgressDeadline': milliseconds(deadline_ms + 600000), **fields}


def open_node(config=CONFIG % ''):
    node = Node(config=config)
    os.chmod(node.dir, 0o711)
    node.start()
    return node


def say(path, text):
    with open(path + '.new', 'w') as file:
        file.write(text)
    os.rename(path + '.new', path)


def deployment(node):
    return node.get('/v1/job/job/deployment')


def checks_of(node, alloc):
    """Name -> status of the checks of an alloc."""
    found = node.get('/v1/client/allocation/%s/checks' % alloc['ID']).values()
    return {result['Check']: result['Status'] for result in found}


def statuses(node, job='job'):
    return checks_of(node, node.alloc(job, 'g'))


def offered(node, name):
    return node.get('/v1/service/' + name)


def names(node):
    return [service['ServiceName'] for namespace in node.get('/v1/services')
            for service in namespace['Services']]


def messages(state):
    return [event['DisplayMessage'] for event in state['Events']]


def process(node, line):
    """(pid, ticks) of the payload whose command line is LINE."""
    pid = node.await_pid(line)
    return pid, start_ticks(pid)


# --- deployments ---

def a_deployment_waits_until_its_check_passes():
    node = open_node()
    says = os.path.join(node.dir, 'says')
    say(says, 'unwell')
    node.run_job(job_of(web(says), Networks=[ANY], Update=update(),
                        Services=[offer('web', 'http', check())]))
    wait_for('the check to fail', lambda: node.running() and statuses(node) == {'check-': 'failure'})
    [one] = offered(node, 'web')  # registered all the same: who asks is told
    alloc = node.get('/v1/allocation/' + node.alloc('job', 'g')['ID'])
    [port] = alloc['AllocatedResources']['Shared']['Ports']
    assert (one['Address'], one['Port']) == ('127.0.0.1', port['Value']), one
    assert deployment(node)['Status'] == 'running', deployment(node)
    assert (alloc['DeploymentStatus'] or {}).get('Healthy') is None, alloc['DeploymentStatus']
    shown = wait_for('what it says', lambda: [  # which at first is that nobody listens yet
        text for text in [node.cli('alloc', 'checks', alloc['ID'][:8]).stdout] if '503' in text])[0]
    assert 'Status of 1 Nomad Service Checks' in shown and 'failure' in shown, shown
    shown = node.cli('alloc', 'status', alloc['ID'][:8]).stdout
    assert 'Nomad Service Checks:' in shown and 'healthiness' in shown, shown
    say(says, 'well')
    wait_for('the deployment', lambda: deployment(node)['Status'] == 'successful')
    assert statuses(node) == {'check-': 'success'}
    assert node.running()['Restarts'] == 0
    shown = node.cli('service', 'list').stdout
    assert shown.split() == ['Service', 'Name', 'Tags', 'web', '[]'], shown
    shown = node.cli('service', 'info', 'web').stdout
    assert '127.0.0.1:%d' % port['Value'] in shown and alloc['ID'][:8] in shown, shown
    assert node.cli('service', 'info', 'other', check=False).returncode == 1
    node.finish()


def one_that_never_passes_fails_at_its_deadline_and_task_states_do_not_wait():
    node, asked = open_node(), Checked()
    fails = [offer('web', asked.port, check('/never'))]
    node.run_job(job_of(sleeper(), Update=update(3000), Services=fails))
    wait_for('the deployment to fail', lambda: deployment(node)['Status'] == 'failed')
    state = node.task('job', 'g', 't')
    assert 'Services not healthy by deadline' in messages(state), messages(state)
    assert state['State'] == 'running' and names(node) == ['web']
    node.purge()
    node.run_job(job_of(sleeper(), Update=update(HealthCheck='task_states'), Services=fails))
    wait_for('one that does not wait', lambda: deployment(node)['Status'] == 'successful')
    assert statuses(node)['check-never'] != 'success'
    node.finish()


# --- restarts ---

def what_fails_its_check_is_restarted_and_registered_again():
    node, asked = open_node(), Checked()
    asked.well.update(['/task', '/group'])
    again = {'CheckRestart': {'Limit': 2, 'Grace': 0}}
    one = sleeper('one', 1001, Services=[offer('one', ASKED, check('/task', **again))])
    node.run_job(job_of(one, sleeper('two', 1002), asked=asked.port,
                        Services=[offer('both', asked.port, check('/group', **again))]))
    wait_for('both to be well', lambda: node.running('one') and node.running('two') and set(
        statuses(node).values()) == {'success'})
    before = process(node, 'sleep 1001'), process(node, 'sleep 1002')
    first = offered(node, 'one')
    asked.well.remove('/task')
    wait_for('the restart', lambda: (node.running('one') or {'Restarts': 0})['Restarts'] >= 1)
    asked.well.add('/task')
    state = node.task('job', 'g', 'one')
    assert 'Restart Signaled' in events(state), events(state)
    assert any('check "check-task" unhealthy' in text for text in messages(state)), messages(state)
    wait_for('it to be registered again', lambda: offered(node, 'one') == first)
    assert process(node, 'sleep 1002') == before[1]
    assert node.task('job', 'g', 'two')['Restarts'] == 0
    wait_for('it to be well', lambda: set(statuses(node).values()) == {'success'})
    restarts = node.task('job', 'g', 'one')['Restarts']
    asked.well.remove('/group')
    wait_for('all to be restarted', lambda: all(
        (node.running(name) or {'Restarts': 0})['Restarts'] > count
        for name, count in (('one', restarts), ('two', 0))))
    asked.well.add('/group')
    wait_for('all to be well', lambda: node.running('one') and node.running('two') and set(
        statuses(node).values()) == {'success'})
    assert names(node) == ['both', 'one'], names(node)
    node.finish()


def a_hundred_that_fail_at_once_lock_nobody_up():
    node, asked = open_node(), Checked()
    again = {'CheckRestart': {'Limit': 1, 'Grace': 0}}
    node.run_job(job_of(sleeper(), Count=100,
                        Services=[offer('web', asked.port, check('/never', **again))]))

    def restarted():
        allocs = node.get('/v1/allocations?task_states=true')  # it answers, or this fails
        return len(allocs) == 100 and all(
            ((alloc['TaskStates'] or {}).get('t') or {'Restarts': 0})['Restarts'] >= 3
            for alloc in allocs)

    wait_for('each to be restarted, and again', restarted, limit_s=240)
    node.allocs()
    node.call('DELETE', '/v1/job/job')
    wait_for('their end', lambda: all(alloc['ClientStatus'] == 'complete'
                                      for alloc in node.allocs()), limit_s=120)
    assert node.get('/v1/services') == []
    node.finish()


# --- who is registered ---

def a_service_is_there_while_its_task_runs_or_its_alloc():
    node = open_node()
    gate = os.path.join(node.dir, 'gate')
    short = raw_exec('short', 'while [ ! -e %s ]; do sleep 0.05; done' % gate,
                     Services=[offer('short', '')], Lifecycle={'Hook': 'poststart'})
    node.run_job(job_of(sleeper(), short, ShutdownDelay=milliseconds(600000),
                        Services=[offer('group', '80', Tags=['b', 'a'])]))
    wait_for('both services', lambda: names(node) == ['group', 'short'])
    open(gate, 'w').close()
    wait_for('the end of one', lambda: names(node) == ['group'])
    wait_for('what runs', node.running)
    own = process(node, 'sleep 1000')
    alloc = node.alloc('job', 'g')
    node.put('/v1/allocation/%s/stop?no_shutdown_delay=false' % alloc['ID'])
    wait_for('the end of the other', lambda: offered(node, 'group') == []
             or [one['AllocID'] for one in offered(node, 'group')] != [alloc['ID']])
    assert start_ticks(own[0]) == own[1]  # it is still there: the delay is ten minutes
    assert alloc['ID'] not in json.dumps(offered(node, 'group'))
    node.kill()
    node.start()
    assert alloc['ID'] not in json.dumps(offered(node, 'group'))
    assert start_ticks(own[0]) == own[1]
    node.call('DELETE', '/v1/job/job?purge=true&no_shutdown_delay=true')
    node.finish()


def after_many_restarts_nothing_is_left_of_it():
    node = open_node()
    node.run_job(job_of(sleeper(Services=[offer('task', '')]), Services=[offer('group', '81')]))
    for number in range(10):
        os.kill(node.await_pid('sleep 1000'), 9)
        wait_for('restart %d' % (number + 1), lambda: (node.running() or {'Restarts': 0})[
            'Restarts'] == number + 1)  # noqa: B023
    wait_for('both to be registered', lambda: names(node) == ['group', 'task'])
    node.call('DELETE', '/v1/job/job')
    wait_for('its end', lambda: node.alloc('job', 'g')['ClientStatus'] == 'complete')
    assert node.get('/v1/services') == []
    node.finish()


def after_a_crash_all_is_as_it_was_from_the_first_answer_on():
    node, asked = open_node(), Checked()
    asked.well.update(['/task', '/group'])
    task = sleeper(Services=[offer('task', ASKED, check('/task'), Tags=['${NOMAD_ALLOC_INDEX}'])])
    node.run_job(job_of(task, Count=30, Networks=[ANY], asked=asked.port, Services=[
        offer('group', asked.port, check('/group'), check('/never')), offer('own', 'http')]))
    well = {'check-task': 'success', 'check-group': 'success', 'check-never': 'failure'}

    def found():
        return {alloc['ID']: checks_of(node, alloc) for alloc in node.allocs()}

    wait_for('all checks to have run', lambda: len(node.allocs()) == 30 and all(
        one == well for one in found().values()), limit_s=120)
    paths = ['/v1/services'] + ['/v1/service/' + name for name in ('group', 'own', 'task')]
    wait_for('all to be offered', lambda: [len(node.get(path)) for path in paths[1:]] == [30] * 3)
    before = [node.get(path) for path in paths]
    payloads = sorted((pid, start_ticks(pid)) for pid, line in node.payloads().items()
                      if line == 'sleep 1000')
    assert len(payloads) == 30, payloads
    for _ in range(3):
        node.kill()
        node.start(wait=False)

        def first():
            assert node.alive(), node.log()
            try:
                return [node.get(paths[0])]
            except (OSError, urllib.error.URLError):
                return None

        [services] = wait_for('the first answer', first, pause_s=0)
        after = [node.get(path) for path in paths[1:]]
        assert all(one == well for one in found().values()), found()
        assert services == before[0], services
        assert after == before[1:], after
    assert sorted((pid, start_ticks(pid)) for pid, line in node.payloads().items()
                  if line == 'sleep 1000') == payloads
    for alloc in node.get('/v1/allocations?task_states=true'):
        assert alloc['TaskStates']['t']['Restarts'] == 0, alloc
    node.finish()


# --- what is changed, and what cannot be made ---

def an_update_in_place_changes_what_is_registered_and_no_process():
    node, asked = open_node(), Checked()
    asked.well.add('/one')

    def job(path, tag):
        return job_of(sleeper(), Services=[offer('web', asked.port, check(path), Tags=[tag])])

    node.run_job(job('/one', 'blue'))
    wait_for('it to be well', lambda: node.running() and statuses(node) == {'check-one': 'success'})
    before, alloc = process(node, 'sleep 1000'), node.alloc('job', 'g')['ID']
    [old] = offered(node, 'web')
    assert old['Tags'] == ['blue'], old
    node.run_job(job('/two', 'green'))
    wait_for('the other check', lambda: statuses(node) == {'check-two': 'failure'})
    [new] = offered(node, 'web')
    assert (new['Tags'], new['ID'], new['AllocID']) == (['green'], old['ID'], alloc), new
    assert process(node, 'sleep 1000') == before
    asked.well.add('/two')
    wait_for('it to be well', lambda: statuses(node) == {'check-two': 'success'})
    assert [one['JobVersion'] for one in node.allocs('job')] == [1]
    node.finish()


def a_port_that_is_none_fails_its_alloc_and_says_so():
    node = open_node()
    node.run_job(job_of(sleeper(), Services=[offer('web', '${meta.no_such}')],
                        RestartPolicy=restart_policy(0)))
    wait_for('its failure', lambda: (node.alloc('job', 'g') or {}).get('ClientStatus') == 'failed')
    told = json.dumps(node.get('/v1/allocation/' + node.alloc('job', 'g')['ID']))
    assert 'pre-run hook \\"group_services\\" failed' in told, told
    assert names(node) == []
    node.finish()


# --- networks ---

def in_a_network_of_its_own_it_is_found_from_both_sides():
    if not has_bridges():
        return 'needs the packages containernetworking-plugins and iptables: ./dev setup'
    node = open_node(BRIDGED)
    says = os.path.join(node.dir, 'says')
    say(says, 'well')
    tcp = {'kind': 'tcp'}
    node.run_job(job_of(web(says), Networks=[{'Mode': 'bridge', 'DynamicPorts': [
        {'Label': 'http', 'To': 8080}]}], Update=update(), Services=[
            offer('inside', 'http', check('in', **tcp, AddressMode='alloc'), AddressMode='alloc'),
            offer('outside', 'http', check('out', **tcp), AddressMode='host')]))
    wait_for('the deployment', lambda: deployment(node)['Status'] == 'successful', limit_s=60)
    alloc = node.get('/v1/allocation/' + node.alloc('job', 'g')['ID'])
    [port] = alloc['AllocatedResources']['Shared']['Ports']
    [inside], [outside] = offered(node, 'inside'), offered(node, 'outside')
    assert (inside['Address'], inside['Port']) == (alloc['NetworkStatus']['Address'], 8080), inside
    assert (outside['Address'], outside['Port']) == ('127.0.0.1', port['Value']), outside
    assert statuses(node) == {'check-in': 'success', 'check-out': 'success'}
    node.finish()
    return None


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: tasks are cgroups of their own')
        sys.exit(77)
    result = tap([
        a_deployment_waits_until_its_check_passes,
        one_that_never_passes_fails_at_its_deadline_and_task_states_do_not_wait,
        what_fails_its_check_is_restarted_and_registered_again,
        a_hundred_that_fail_at_once_lock_nobody_up,
        a_service_is_there_while_its_task_runs_or_its_alloc,
        after_many_restarts_nothing_is_left_of_it,
        after_a_crash_all_is_as_it_was_from_the_first_answer_on,
        an_update_in_place_changes_what_is_registered_and_no_process,
        a_port_that_is_none_fails_its_alloc_and_says_so,
        in_a_network_of_its_own_it_is_found_from_both_sides,
    ])
    if has_bridges():
        remove_bridge(BRIDGE, SUBNET)
    sys.exit(result)
