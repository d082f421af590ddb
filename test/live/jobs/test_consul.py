#!/usr/bin/env python3
"""Services of Consul on a real node, beside an agent of Consul of the test's own: registered as long as
what offers them runs, through crashes of the daemon and of Consul, and nothing touched that is of
others; deployments, restarts and scripts by its checks."""
import os
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from consul import Consul  # noqa: E402
from lib import (NO_RESCHEDULE, Node, Refused, events, milliseconds, raw_exec,  # noqa: E402
                 restart_policy, start_ticks, tap, wait_for)

CONFIG = 'client {\n  network_interface = "lo"\n}\nconsul {\n  address = "%s"\n%s}\n'
UNKNOWN = '_nomad-task-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee-group-g-%s-'


def check(kind='http', **fields):
    return {'Name': 'check-' + kind, 'Type': kind, 'Interval': milliseconds(1000),
            'Timeout': milliseconds(2000), **({'Path': '/'} if kind == 'http' else {}), **fields}


def offer(name, *checks, port='80', **fields):
    return {'Name': name, 'PortLabel': port, 'Checks': list(checks), **fields}


def sleeper(name='t', seconds=1000, **fields):
    return raw_exec(name, 'exec sleep %d' % seconds, KillTimeout=milliseconds(2000),
                    Resources={'CPU': 1, 'MemoryMB': 10}, **fields)


def job_of(*tasks, **fields):
    group = {'Name': 'g', 'Count': 1, 'Tasks': list(tasks), 'RestartPolicy': restart_policy(1000),
             'ReschedulePolicy': NO_RESCHEDULE, **fields}
    return {'ID': 'job', 'Name': 'job', 'Type': 'service', 'Datacenters': ['dc1'],
            'TaskGroups': [group]}


def update(deadline_ms=600000):
    return {'MaxParallel': 1, 'MinHealthyTime': milliseconds(100),
            'HealthyDeadline': milliseconds(deadline_ms),
            'ProgressDeadline': milliseconds(deadline_ms + 600000)}


def open_node(consul, more=''):
    node = Node(config=CONFIG % (consul.address, more))
    os.chmod(node.dir, 0o711)
    node.start()
    return node


def finish(node, consul, left=()):
    """Ends all that runs, and the node: of services those are left that are of others."""
    node.purge()
    wait_for('no service', lambda: set(consul.services) == set(left))
    node.finish()
    if not left:
        consul.stop()


def attributes(node):
    [one] = node.get('/v1/nodes')
    return node.get('/v1/node/' + one['ID'])['Attributes']


def evaluation(node):
    return [one for one in node.get('/v1/job/job/evaluations') if one['FailedTGAllocs']]


def deployment(node):
    return node.get('/v1/job/job/deployment')


def messages(state):
    return [event['DisplayMessage'] for event in state['Events']]


# --- the node ---

# A node reads what Consul has every 30 s: what the first test begins the last one sees.
upgraded = {}


def a_node_without_consul_places_nothing_that_needs_it():
    consul = Consul(version='1.7.9')
    consul.stop()
    node = open_node(consul)
    node.run_job(job_of(sleeper(), Services=[offer('web')]))
    blocked = wait_for('the refusal', lambda: evaluation(node))[0]
    why = '${attr.consul.version} semver >= 1.8.0'
    assert blocked['FailedTGAllocs']['g']['ConstraintFiltered'] == {why: 1}, blocked
    assert not [name for name in attributes(node) if 'consul' in name]
    consul.start()
    wait_for('it to be found', lambda: 'consul.version' in attributes(node))
    assert node.alloc('job', 'g') is None  # it is too old
    consul.stop()
    consul.version = '1.20.0'
    consul.start()
    upgraded.update(node=node, consul=consul)


def a_newer_consul_is_found_by_the_next_reading_and_what_waited_runs():
    node, consul = upgraded['node'], upgraded['consul']
    wait_for('what waits to run', node.running, limit_s=60)
    found = {name: value for name, value in attributes(node).items() if 'consul' in name}
    assert found == {'consul.version': '1.20.0', 'consul.server': 'true', 'consul.revision': 'abc',
                     'consul.datacenter': 'dc9', 'unique.consul.name': 'box', 'consul.sku': 'oss',
                     'consul.connect': 'true', 'consul.grpc': '8502', 'consul.dns.port': '8600',
                     'consul.ft.namespaces': 'false'}, found
    wait_for('the service', lambda: consul.names() == ['web'])
    finish(node, consul)


def a_token_is_told_and_seen_nowhere_and_without_it_nothing_is_lost():
    secret = '11111111-2222-3333-4444-555555555555'
    consul = Consul(token=secret)
    node = Node(config=CONFIG % (consul.address, '  token_file = "TOKEN"\n'))
    path = os.path.join(node.dir, 'token')
    with open(path, 'w') as file:
        file.write(secret + '\n')
    with open(node.config) as file:
        text = file.read()
    with open(node.config, 'w') as file:
        file.write(text.replace('TOKEN', path))
    os.chmod(node.dir, 0o711)
    node.start()
    node.run_job(job_of(sleeper(), Services=[offer('web')]))
    wait_for('the service', lambda: consul.names() == ['web'])
    shown = node.text('GET', '/v1/agent/self') + node.log(1 << 20)
    assert secret not in shown
    with open('/proc/%d/environ' % node.await_pid('sleep 1000'), 'rb') as environ:
        assert secret.encode() not in environ.read()
    consul.token = 'another'
    before = consul.names()
    asked = len(consul.calls)
    node.run_job(job_of(sleeper(), Services=[offer('web', Tags=['new'])]))
    wait_for('it to be asked in vain', lambda: len(consul.calls) > asked)
    assert node.running() and consul.names() == before
    consul.token = secret
    wait_for('the change', lambda: consul.named('web')[0]['Tags'] == ['new'])
    finish(node, consul)


def a_socket_does_as_well():
    path = '/tmp/cairn-consul-%d.sock' % os.getpid()
    consul = Consul(unix_socket=path)
    node = open_node(consul)
    node.run_job(job_of(sleeper(), Services=[offer('web')]))
    wait_for('the service', lambda: consul.names() == ['web'])
    finish(node, consul)
    os.unlink(path)


# --- registrations ---

def what_is_offered_is_registered_whole():
    consul = Consul()
    node = open_node(consul)
    ports = {'Mode': 'host', 'DynamicPorts': [{'Label': 'http'}]}
    checks = [check(Header={'X-A': ['1', '2']}, Method='POST', Body='b', TLSSkipVerify=True,
                    SuccessBeforePassing=2, FailuresBeforeCritical=3, Notes='n ${NOMAD_ALLOC_INDEX}'),
              check('tcp', InitialStatus='warning'),
              check('grpc', GRPCService='pkg.Svc', GRPCUseTLS=True, TLSServerName='x')]
    node.run_job(job_of(sleeper(), Networks=[ports], Services=[
        offer('web-${NOMAD_ALLOC_INDEX}', *checks, port='http', Tags=['b', 'a-${NOMAD_GROUP_NAME}'],
              Meta={'who': '${NOMAD_JOB_NAME}'}, Weights={'Passing': 3, 'Warning': 2},
              EnableTagOverride=True)]))
    [one] = wait_for('the service', lambda: consul.named('web-0'))
    alloc = node.get('/v1/allocation/' + node.alloc('job', 'g')['ID'])
    port = alloc['AllocatedResources']['Shared']['Ports'][0]['Value']
    own = node.get('/v1/agent/self')['stats']['client']['node_id']
    assert one == {
        'ID': '_nomad-task-%s-group-g-web-0-http' % alloc['ID'], 'Service': 'web-0',
        'Tags': ['b', 'a-g'], 'Address': '127.0.0.1', 'Port': port, 'EnableTagOverride': True,
        'Meta': {'who': 'job', 'external-source': 'nomad', 'cairn-node': own},
        'Weights': {'Passing': 3, 'Warning': 2}}, one
    asked = {found['Name']: found['Asked'] for found in consul.checks_of('web-0')}
    for one in asked.values():
        assert len(one.pop('CheckID')) == len('_nomad-check-') + 64
    at = '127.0.0.1:%d' % port
    assert asked == {
        'check-http': {'Name': 'check-http', 'HTTP': 'http://%s/' % at, 'Method': 'POST', 'Body': 'b',
                       'Header': {'X-A': ['1', '2']}, 'Interval': '1s', 'Timeout': '2s',
                       'TLSSkipVerify': True, 'SuccessBeforePassing': 2, 'FailuresBeforeCritical': 3,
                       'Notes': 'n 0'},
        'check-tcp': {'Name': 'check-tcp', 'TCP': at, 'Interval': '1s', 'Timeout': '2s',
                      'Status': 'warning'},
        'check-grpc': {'Name': 'check-grpc', 'GRPC': at + '/pkg.Svc', 'GRPCUseTLS': True,
                       'TLSServerName': 'x', 'Interval': '1s', 'Timeout': '2s'}}, asked
    assert node.get('/v1/services') == []  # those are Nomad's own
    assert node.get('/v1/client/allocation/%s/checks' % alloc['ID']) == {}
    finish(node, consul)
    assert consul.checks == {}


def it_goes_before_what_offers_it_is_told_to_end():
    consul = Consul()
    node = open_node(consul)
    task = sleeper(Services=[offer('own', port='')], ShutdownDelay=milliseconds(600000))
    node.run_job(job_of(task, sleeper('other', 1001), Services=[offer('both')]))
    wait_for('both', lambda: consul.names() == ['both', 'own'])
    pid = node.await_pid('sleep 1000')
    alloc = node.alloc('job', 'g')
    node.put('/v1/allocation/%s/stop?no_shutdown_delay=false' % alloc['ID'])
    wait_for('their end', lambda: not [one for one in consul.services if alloc['ID'] in one])
    assert start_ticks(pid) is not None  # it has its delay still
    node.call('DELETE', '/v1/job/job?no_shutdown_delay=true')
    finish(node, consul)


def a_newer_version_is_told_in_place_and_others_tags_are_left():
    consul = Consul()
    node = open_node(consul)

    def run(tags, *checks, **fields):
        node.run_job(job_of(sleeper(), Services=[
            offer('web', *checks, Tags=tags, EnableTagOverride=True, **fields)]))

    run(['a'], check('tcp'))
    wait_for('the service', lambda: consul.checks_of('web'))
    pid, [first] = node.await_pid('sleep 1000'), consul.checks_of('web')
    run(['a', 'b'], check('tcp', Interval=milliseconds(7000)))
    wait_for('the change', lambda: consul.named('web')[0]['Tags'] == ['a', 'b'])
    [second] = consul.checks_of('web')
    assert second['Asked']['Interval'] == '7s' and first['CheckID'] != second['CheckID']
    consul.named('web')[0]['Tags'] = ['by others']
    node.kill()
    consul.calls.clear()
    node.start()
    wait_for('it to look', lambda: consul.count('/v1/agent/checks') > 0)
    run(['a', 'b'], check('tcp', Interval=milliseconds(7000)), Meta={'new': 'x'})
    wait_for('the change', lambda: consul.named('web')[0]['Meta'].get('new'))
    assert consul.named('web')[0]['Tags'] == ['by others']
    run(['c'], check('tcp', Interval=milliseconds(7000)), Meta={'new': 'x'})
    wait_for('the tags of the job', lambda: consul.named('web')[0]['Tags'] == ['c'])
    assert node.await_pid('sleep 1000') == pid
    finish(node, consul)


def after_a_crash_nothing_is_written_that_is_the_same_and_what_has_ended_goes():
    consul = Consul()
    node = open_node(consul)
    node.run_job(job_of(sleeper('one', 1001, Services=[offer('own', port='')]), sleeper('two', 1002),
                        Services=[offer('both', check('tcp'))]))
    wait_for('both', lambda: consul.names() == ['both', 'own'])
    node.kill()
    consul.calls.clear()
    node.start()
    wait_for('two looks', lambda: consul.count('/v1/agent/checks') > 0)
    assert consul.changes() == [], consul.changes()
    node.kill()
    os.kill(node.pid_of('sleep 1001'), 9)
    consul.calls.clear()
    node.start()
    wait_for('it to be started again', lambda: (node.running('one') or {'Restarts': 0})['Restarts'])
    wait_for('it to be registered', lambda: consul.names() == ['both', 'own'])
    node.kill()
    consul.forget()  # and so it has been lost with Consul's
    node.start()
    wait_for('all of it', lambda: consul.names() == ['both', 'own'])
    node.call('DELETE', '/v1/job/job')
    node.kill()  # at whatever it is
    node.start()
    wait_for('their end', lambda: consul.names() == [], limit_s=60)
    finish(node, consul)


def consul_is_away_and_tasks_run():
    consul = Consul()
    node = open_node(consul)
    node.run_job(job_of(sleeper(), Services=[offer('web', Tags=['one'])]))
    wait_for('the service', lambda: consul.names() == ['web'])
    consul.stop()
    node.run_job(job_of(sleeper(), sleeper('u', 1001), Services=[offer('web', Tags=['two'])]))
    wait_for('what is new', lambda: node.running('u'))
    old = list(consul.services)
    node.kill()  # knowing only itself what was not told
    node.start()
    consul.start()
    wait_for('the new one', lambda: [one['Tags'] for one in consul.named('web')] == [['two']],
             limit_s=60)
    assert list(consul.services) != old
    consul.stop()
    consul.forget()
    consul.start()
    node.run_job(job_of(sleeper(), sleeper('u', 1001), Services=[
        offer('web', Tags=['two']), offer('more')]))  # by which it reads what is there
    wait_for('it again', lambda: consul.names() == ['more', 'web'], limit_s=60)
    finish(node, consul)


def one_that_is_refused_keeps_no_other_and_nothing_of_others_is_touched():
    consul = Consul()
    theirs = {UNKNOWN % 'nomads': {'external-source': 'nomad'},
              UNKNOWN % 'anothers': {'cairn-node': '99999999-8888-7777-6666-555555555555'},
              'plain': {}}
    for name, meta in theirs.items():
        consul.register({'ID': name, 'Name': name, 'Meta': meta}, False)
    consul.refused.add('bad')
    node = open_node(consul)
    node.run_job(job_of(sleeper(), Services=[offer('bad'), offer('good'), offer('web')]))
    wait_for('the others', lambda: set(consul.names()) >= {'good', 'web'})
    assert node.running() and not consul.named('bad')
    assert 'refuses a registration' in node.log(), node.log()
    consul.refused.clear()
    wait_for('it, too', lambda: consul.named('bad'), limit_s=60)
    finish(node, consul, theirs)


def what_two_nodes_have_with_one_agent_stays_apart():
    consul = Consul()
    one, other = open_node(consul), open_node(consul)
    for node, name in ((one, 'one'), (other, 'other')):
        node.run_job(job_of(sleeper(), Services=[offer(name)]))
    wait_for('both', lambda: consul.names() == ['one', 'other'])
    left = [name for name, service in consul.services.items() if service['Service'] == 'other']
    finish(one, consul, left)
    finish(other, consul)


# --- checks ---

def a_deployment_waits_for_what_consul_finds():
    consul = Consul()
    node = open_node(consul)
    node.run_job(job_of(sleeper(), Update=update(), Services=[
        offer('web', check('tcp')), offer('easy', check('tcp', OnUpdate='ignore_warnings')),
        offer('never', check('tcp', OnUpdate='ignore'))]))
    wait_for('the services', lambda: consul.names() == ['easy', 'never', 'web'])
    consul.say('easy', 'warning')
    consul.say('web', 'warning')
    polls = consul.count('/v1/agent/checks')
    wait_for('three looks', lambda: consul.count('/v1/agent/checks') >= polls + 3)
    assert deployment(node)['Status'] == 'running', deployment(node)
    consul.say('web', 'passing')
    wait_for('the deployment', lambda: deployment(node)['Status'] == 'successful')
    finish(node, consul)


def one_that_consul_never_finds_well_fails_at_its_deadline():
    consul = Consul()
    node = open_node(consul)
    node.run_job(job_of(sleeper(), Update=update(3000), Services=[offer('web', check('tcp'))]))
    wait_for('the deployment to fail', lambda: deployment(node)['Status'] == 'failed')
    assert 'Services not healthy by deadline' in messages(node.task('job', 'g', 't'))
    finish(node, consul)


def what_consul_finds_unwell_is_restarted():
    consul = Consul()
    node = open_node(consul)
    again = {'CheckRestart': {'Limit': 2, 'Grace': 0}}
    calm = {'CheckRestart': {'Limit': 1, 'Grace': 0, 'IgnoreWarnings': True}}
    node.run_job(job_of(
        sleeper('one', 1001, Services=[offer('one', check('script', Command='/bin/true', **again),
                                             port='')]),
        sleeper('two', 1002), Services=[
            offer('both', check('tcp', InitialStatus='passing', **again)),
            offer('calm', check('tcp', InitialStatus='warning', **calm))]))
    wait_for('both', lambda: node.running('one') and node.running('two') and len(consul.names()) == 3)
    wait_for('the script', lambda: [one['Status'] for one in consul.checks_of('one')] == ['passing'])
    restarts = node.task('job', 'g', 'two')['Restarts']
    consul.say('both', 'critical')
    wait_for('all to be restarted',
             lambda: (node.running('two') or {'Restarts': 0})['Restarts'] > restarts)
    consul.say('both', 'passing')
    state = node.task('job', 'g', 'two')
    assert 'Restart Signaled' in events(state), events(state)
    assert any('check "check-tcp" unhealthy' in text for text in messages(state)), messages(state)
    wait_for('all of it', lambda: len(consul.names()) == 3)
    finish(node, consul)


def scripts_run_in_their_task_and_their_ends_are_told():
    consul = Consul()
    node = open_node(consul)
    says = os.path.join(node.dir, 'says')
    with open(says, 'w') as file:
        file.write('0')
    script = check('script', Command='/bin/sh', TaskName='t', Args=[
        '-c', 'echo "in $NOMAD_TASK_NAME"; printf "\\377"; exit $(cat %s)' % says])
    slow = check('script', Name='slow', Command='/bin/sleep', Args=['1003'], TaskName='t',
                 Timeout=milliseconds(1000))
    node.run_job(job_of(sleeper(), Services=[offer('web', script, slow, port='')]))

    def found(name):
        return {one['Name']: (one['Status'], one['Output']) for one in consul.checks_of('web')}.get(name)

    wait_for('it to pass', lambda: found('check-script') == ('passing', 'in t\n?'))
    [asked] = [one['Asked'] for one in consul.checks_of('web') if one['Name'] == 'check-script']
    assert asked['TTL'] == '32s' and 'Interval' not in asked, asked
    for code, status in ((1, 'warning'), (2, 'critical')):
        with open(says + '.new', 'w') as file:
            file.write(str(code))
        os.rename(says + '.new', says)
        wait_for(status, lambda status=status: found('check-script') == (status, 'in t\n?'))
    wait_for('the slow one', lambda: found('slow')[0] == 'critical' and 'timeout' in found('slow')[1])
    node.kill()
    node.start()
    with open(says + '.new', 'w') as file:
        file.write('0')
    os.rename(says + '.new', says)
    wait_for('it to run again', lambda: found('check-script')[0] == 'passing')
    finish(node, consul)  # which finds no script left


def the_api_of_a_node_is_offered_if_it_says_so():
    consul = Consul()
    node = open_node(consul, '  auto_advertise = true\n')
    wait_for('it to be offered', lambda: consul.named('nomad-client'))
    one, = consul.named('nomad-client')
    assert (one['Address'], one['Port'], one['Tags']) == ('127.0.0.1', node.port, ['http']), one
    asks = consul.checks_of('nomad-client')[0]['Asked']
    assert (asks['Name'], asks['Interval'], asks['Timeout']) == ('Nomad Client HTTP Check', '10s', '5s'), asks
    assert asks['HTTP'].startswith('http://127.0.0.1:%d/' % node.port), asks
    with urllib.request.urlopen(asks['HTTP'], timeout=10) as answer:
        assert answer.status == 200
    node.run_job(job_of(sleeper(), Services=[offer('web')]))
    wait_for('a service beside it', lambda: consul.names() == ['nomad-client', 'web'])
    node.kill()
    told = consul.changes()
    consul.services['_nomad-client-other'] = dict(one, ID='_nomad-client-other', Meta={'cairn-node': 'other'})
    asked = consul.count('/v1/agent/services')
    node.start()
    wait_for('two rounds', lambda: consul.count('/v1/agent/services') > asked)
    wait_for('the checks to be read', lambda: consul.calls[-1][1] == '/v1/agent/checks')
    assert consul.changes() == told
    node.kill()
    with open(node.config, encoding='utf-8') as file:
        text = file.read()
    with open(node.config, 'w', encoding='utf-8') as file:
        file.write(text.replace('auto_advertise = true', 'auto_advertise = false'))
    node.start()
    wait_for('its own to be taken away', lambda: not [one for one in consul.named('nomad-client')
                                                      if one['Meta']['cairn-node'] != 'other'])
    assert consul.names() == ['nomad-client', 'web']
    finish(node, consul, ['_nomad-client-other'])
    consul.stop()


def what_is_not_there_is_refused_by_name():
    consul = Consul()
    node = open_node(consul)
    for fields, word in (({'Connect': {'Gateway': {'Proxy': {'Config': {'x': 1}}}}}, 'Gateway'),
                         ({'Identity': {'Name': 'x'}}, 'dentity'),
                         ({'AddressMode': 'driver'}, 'driver'), ({'Provider': 'other'}, 'other')):
        try:
            node.run_job(job_of(sleeper(), Services=[offer('web', **fields)]))
        except Refused as answer:
            assert word in answer.text, answer
        else:
            raise AssertionError('%s is taken' % word)
    finish(node, consul)


if __name__ == '__main__':
    sys.exit(tap([
        a_node_without_consul_places_nothing_that_needs_it,
        a_token_is_told_and_seen_nowhere_and_without_it_nothing_is_lost,
        a_socket_does_as_well,
        what_is_offered_is_registered_whole,
        it_goes_before_what_offers_it_is_told_to_end,
        a_newer_version_is_told_in_place_and_others_tags_are_left,
        after_a_crash_nothing_is_written_that_is_the_same_and_what_has_ended_goes,
        consul_is_away_and_tasks_run,
        one_that_is_refused_keeps_no_other_and_nothing_of_others_is_touched,
        what_two_nodes_have_with_one_agent_stays_apart,
        a_deployment_waits_for_what_consul_finds,
        one_that_consul_never_finds_well_fails_at_its_deadline,
        what_consul_finds_unwell_is_restarted,
        scripts_run_in_their_task_and_their_ends_are_told,
        the_api_of_a_node_is_offered_if_it_says_so,
        what_is_not_there_is_refused_by_name,
        a_newer_consul_is_found_by_the_next_reading_and_what_waited_runs,
    ]))
