#!/usr/bin/env python3
"""Tasks of docker on a real node, whose Engine (engine.py) does what real ones do at bad moments: it answers
wrong, by half, late or not at all, is away and comes back, and loses containers.  What is proved is that none of
it makes a second container, an end that was none, an exit code, or a line of output twice or never."""
import base64
import contextlib
import glob
import json
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
sys.path.insert(0, os.path.dirname(__file__))
from engine import Command, Container, Engine  # noqa: E402
from lib import (NO_RESCHEDULE, Node, Refused, events, exit_codes, milliseconds,  # noqa: E402
                 raw_exec, restart_policy, service, tap, wait_for)


def docker(name='t', **config):
    return {'Name': name, 'Driver': 'docker', 'Config': dict({'image': 'img:1'}, **config),
            'KillTimeout': milliseconds(60000), 'Resources': {'CPU': 100, 'MemoryMB': 32}}


def open_node(more='', config=''):
    engine = Engine()
    engine.open()
    node = Node(config=engine.config(more) + config)
    node.start()
    wait_for('the driver to be well', lambda: node.get('/v1/nodes')[0]['Drivers']['docker']['Healthy'])
    return node, engine


def finish(node, engine):
    mark = node.node_mark()
    node.finish()
    assert not engine.containers, (mark, list(engine.containers))
    engine.end()


def once(*tasks):
    return service(*tasks, restart=restart_policy(0), ReschedulePolicy=NO_RESCHEDULE)


def run(node, engine, task=None, job=None):
    node.run_job(job or once(task or docker()))
    wait_for('it to run', node.running)
    return engine.one()


def log_of(node, number=0, stream='stdout'):
    path = os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'],
                        'alloc/logs/t.%s.%d' % (stream, number))
    if not os.path.exists(path):
        return ''
    with open(path) as file:
        return file.read()


def what_is_asked_for_is_what_the_job_says():
    node, engine = open_node('volumes {\n enabled = true\n }\n')
    profile = os.path.join(engine.dir, 'profile.json')
    with open(profile, 'w', encoding='ascii') as out:
        out.write('{ "defaultAction":\n "SCMP_ACT_ALLOW" }')
    task = docker(command='/bin/x', args=['a', '${NOMAD_TASK_NAME}', 7], entrypoint=['/e'],
                  labels=[{'a': 'b', 'cairn.alloc_id': 'not mine'}], work_dir='/w', hostname='h', cap_add=['chown'],
                  cap_drop=['all'], readonly_rootfs=True, init=True, shm_size=4096, pids_limit=9,
                  ulimit=[{'nofile': '10:20'}], sysctl=[{'net.core.somaxconn': '16'}], ports=['www'],
                  extra_hosts=['x:1.2.3.4'], volumes=['local/v:/v:ro', '/srv:/srv'], tty=False,
                  mount=[{'type': 'tmpfs', 'target': '/t', 'tmpfs_options': [{'size': 100}]}],
                  devices=[{'host_path': '/dev/null'}], security_opt=['no-new-privileges', 'seccomp=' + profile],
                  memory_hard_limit=64, healthchecks=[{'disable': True}], storage_opt=[{'size': '1G'}])
    task['Env'] = {'E': 'v'}
    task['User'] = '5:6'
    job = once(task)
    job['TaskGroups'][0]['Networks'] = [{'DynamicPorts': [{'Label': 'www', 'To': 80}]}]
    body = run(node, engine, job=job).body
    host, alloc = body['HostConfig'], node.alloc('job', 'g')['ID']
    assert (body['Image'], body['Cmd'], body['Entrypoint']) == ('sha256:img:1', ['/bin/x', 'a', 't', '7'], ['/e']), body
    assert {'E=v', 'NOMAD_TASK_DIR=/local', 'NOMAD_ALLOC_DIR=/alloc', 'NOMAD_SECRETS_DIR=/secrets'} <= set(body['Env'])
    assert not [one for one in body['Env'] if one.startswith('CAIRN_TEST_MARK')], 'what the host has'
    assert (body['User'], body['WorkingDir'], body['Hostname']) == ('5:6', '/w', 'h')
    assert body['Labels']['a'] == 'b' and body['Labels']['cairn.alloc_id'] == alloc, body['Labels']
    assert (host['CapDrop'], host['CapAdd']) == (['ALL'], ['CAP_CHOWN']), host
    assert (host['Memory'], host['MemoryReservation'], host['MemorySwap']) == (64 << 20, 32 << 20, 64 << 20), host
    assert (host['CpuShares'], host['PidsLimit'], host['ShmSize']) == (100, 9, 4096), host
    assert host['ReadonlyRootfs'] and host['Init'] and host['Ulimits'] == [{'Name': 'nofile', 'Soft': 10, 'Hard': 20}]
    assert host['Sysctls'] == {'net.core.somaxconn': '16'} and host['StorageOpt'] == {'size': '1G'}
    assert host['SecurityOpt'] == ['no-new-privileges', 'seccomp={"defaultAction":"SCMP_ACT_ALLOW"}'], host
    assert host['ExtraHosts'] == ['x:1.2.3.4']
    assert body['Healthcheck'] == {'Test': ['NONE']} and host['NetworkMode'] == 'default'
    assert host['Devices'] == [{'PathOnHost': '/dev/null', 'PathInContainer': '/dev/null', 'CgroupPermissions': 'rwm'}]
    (binding,) = host['PortBindings']['80/tcp']
    assert binding['HostPort'].isdigit() and body['ExposedPorts'] == {'80/tcp': {}, '80/udp': {}}, host
    root = os.path.join(node.data, 'alloc', alloc)
    mounts = {one['Target']: (one.get('Source'), one['ReadOnly']) for one in host['Mounts']}
    assert mounts == {'/alloc': (root + '/alloc', False), '/alloc/logs': (root + '/alloc/logs', True),
                      '/local': (root + '/t/local', False), '/secrets': (root + '/t/secrets', False),
                      '/t': (None, False)}, mounts
    assert host['Binds'] == [root + '/t/local/v:/v:ro', '/srv:/srv'], host['Binds']
    finish(node, engine)


def what_cannot_be_done_is_refused_by_name():
    node, engine = open_node()
    for words, config in (('"image" is required', {'image': ''}), ('unknown key', {'nonsense': 1}),
                          ('"load" leads out of', {'load': '../x.tar'}),
                          ('"cpu_cfs_period" must be', {'cpu_hard_limit': True, 'cpu_cfs_period': 10}),
                          ('is of "cpu_hard_limit"', {'cpu_cfs_period': 100000}),
                          ('"port_map" is not available', {'port_map': [{'a': 1}]}),
                          ('is no name of an image', {'image': 'a b'}),
                          ('must be as in "local/data:/data"', {'volumes': ['x']}),
                          ('"mount" has no key "sauce"', {'mount': [{'sauce': 'x', 'target': '/x'}]}),
                          ('needs a "target"', {'mount': [{'type': 'tmpfs'}]}),
                          ('tmpfs_options is not of', {'mount': [{'type': 'bind', 'source': 's', 'target': '/t',
                                                                  'tmpfs_options': [{'size': 1}]}]}),
                          ('knows no capability', {'cap_add': ['fly']}),
                          ('cannot be another container', {'network_mode': 'container:x'}),
                          ('must be as in "1024"', {'ulimit': [{'nofile': 'many'}]})):
        try:
            node.run_job(once(docker(**config)))
            raise AssertionError('not refused: %r' % config)
        except Refused as answer:
            assert words in answer.text, (words, answer.text)
    for words, config in (('does not allow "privileged"', {'privileged': True}),
                          ('does not allow pid_mode', {'pid_mode': 'host'}),
                          ('does not allow the runtime', {'runtime': 'kata'}),
                          ('does not allow the capability CAP_NET_RAW', {'cap_add': ['net_raw']}),
                          ('does not allow to mount', {'volumes': ['/etc:/x']}),
                          ('does not allow to mount', {'mount': [{'type': 'bind', 'source': '/etc', 'target': '/x'}]}),
                          ('leads out of the alloc', {'volumes': ['../../../x:/x']}),
                          ('leads over a link', {'volumes': ['local/l/x:/x']}),
                          ('is none of the group', {'ports': ['www']}),
                          ('/etc/shadow is no seccomp profile', {'security_opt': ['seccomp=/etc/shadow']}),
                          ('by its absolute path', {'security_opt': ['seccomp:local/x']}),
                          ('seccomp profile: ', {'security_opt': ['seccomp=/dev/zero']}),
                          ('seccomp profile: ', {'security_opt': ['seccomp=/no/such/file']})):
        task = docker(**config)
        task['Templates'] = [{'EmbeddedTmpl': 'x', 'DestPath': 'local/y'}]
        job = once(task)
        if 'link' in words:
            job['TaskGroups'][0]['Tasks'].append(raw_exec(
                'before', 'mkdir -p $NOMAD_ALLOC_DIR/../t/local && ln -s / $NOMAD_ALLOC_DIR/../t/local/l',
                Lifecycle={'Hook': 'prestart'}))
        node.run_job(job)
        state = wait_for(words, node.dead)
        assert words in json.dumps(state).replace('\\"', '"').replace('\\\\', ''), (words, state)
        node.purge()
    assert engine.made == [], engine.made
    finish(node, engine)


def an_exit_code_is_the_one_that_the_engine_tells():
    node, engine = open_node()
    for code, oom in ((0, False), (3, False), (137, True), (255, False)):
        container = run(node, engine)
        container.end(code, oom)
        state = wait_for('its end', node.dead)
        assert exit_codes(state) == [code], (code, state)
        assert ('OOM Killed' in json.dumps(state)) == oom, state
        node.purge()
    finish(node, engine)


def an_engine_that_is_away_is_no_end_of_a_task():
    node, engine = open_node()
    container = run(node, engine)
    before = node.running()
    container.say('one\n')
    wait_for('a line', lambda: log_of(node) == 'one\n')
    engine.close()
    wait_for('the driver to be unwell',
             lambda: not node.get('/v1/nodes')[0]['Drivers']['docker']['Healthy'], limit_s=60)
    assert node.running() == before
    node.kill()  # and the daemon goes, and comes back to nobody
    node.start()
    assert wait_for('it to run on', node.running)['StartedAt'] == before['StartedAt']
    container.say('two\n')
    engine.open()
    wait_for('the other line', lambda: log_of(node) == 'one\ntwo\n', limit_s=60)
    assert node.running()['Restarts'] == 0 and engine.starts == [container.name]
    engine.close()
    container.end(4)
    engine.open()
    state = wait_for('its end', node.dead, limit_s=60)
    assert exit_codes(state) == [4], state
    finish(node, engine)


def what_an_engine_makes_up_is_not_believed():
    node, engine = open_node()
    container = run(node, engine)
    engine.close()
    container.end(255)  # as an Engine says that has not seen it
    engine.open()
    state = wait_for('its end', node.dead, limit_s=60)
    assert exit_codes(state) != [255] and 'the Docker Engine was away' in json.dumps(state), state
    node.purge()
    container = run(node, engine)
    with engine.changed:
        del engine.containers[container.name]
    container.end(0)
    state = wait_for('its end', node.dead, limit_s=60)
    assert exit_codes(state) != [0] and 'somebody has removed the container' in json.dumps(state), state
    finish(node, engine)


def answers_that_are_none_make_no_second_container():
    node, engine = open_node()
    for fault in (dict(method='POST', path='/create', status=500, do=True),
                  dict(method='POST', path='/create', status=201, body='{"Id": "x"', cut=True, do=True),
                  dict(method='POST', path='/start', status=500, do=True),
                  dict(method='POST', path='/start', status=204, body='xx', cut=True, do=True),
                  dict(method='GET', path='/json$', status=500, count=2),
                  dict(method='GET', path='/json$', status=200, body='{"Id": "x"}', count=2),
                  dict(method='GET', path='/json$', status=200, body='[1, 2', cut=True, count=2),
                  dict(method='POST', path='/wait', status=500, count=2),
                  dict(method='POST', path='/wait', status=200, body='{"StatusCode": 9}', cut=True),
                  dict(method='GET', path='/logs', status=500, count=2),
                  dict(method='GET', path='/logs', status=200, body='what is this?' * 9),
                  dict(method='POST', path='/kill', status=500),
                  dict(method='DELETE', path='/containers', status=500),
                  dict(method='DELETE', path='/containers', status=409)):
        engine.starts, engine.made, engine.faults = [], [], []
        if 'json' in fault['path']:
            fault['path'] = '/containers/.*/json$'
        engine.fail(**fault)
        container = run(node, engine)
        container.say('line\n')
        wait_for('a line', lambda: log_of(node) == 'line\n', limit_s=30)
        node.call('DELETE', '/v1/job/job')
        state = wait_for('its end', node.dead, limit_s=30)
        assert exit_codes(state) == [143], (fault, state)
        assert (len(engine.starts), len(engine.made)) == (1, 1), fault
        wait_for('it to be gone', lambda: engine.one() is None, limit_s=30)
        node.purge()
    finish(node, engine)


def a_start_that_fails_says_why_and_leaves_nothing():
    node, engine = open_node()
    for words, fault in (('no such program', dict(method='POST', path='/start', status=400,
                                                  body='{"message": "no such program"}')),
                         ('bad parameter', dict(method='POST', path='/create', status=400,
                                                body='{"message": "bad parameter"}')),
                         ('out of space', dict(method='POST', path='/start',
                                               body='{"message": "out of space"}'))):
        engine.fail(**fault)
        node.run_job(once(docker()))
        state = wait_for(words, node.dead)
        assert words in json.dumps(state) and engine.starts == [], state
        node.purge()
        wait_for('it to be gone', lambda: engine.one() is None)
    node.run_job(once(docker(image='none:1')))
    state = wait_for('its end', node.dead)
    assert 'manifest for none:1 not found' in json.dumps(state), state
    finish(node, engine)


def an_image_that_is_not_there_is_pulled_with_what_the_registry_wants():
    node, engine = open_node()
    engine.registry |= {'reg.example/a/b:2', 'img:latest', 'img:1'}
    task = docker(image='reg.example/a/b:2', auth=[{'username': 'ann', 'password': 'geheim'}])
    run(node, engine, task)
    said = json.loads(base64.urlsafe_b64decode(engine.auths[-1]))
    assert said == {'username': 'ann', 'password': 'geheim', 'serveraddress': 'reg.example'}, said
    assert 'geheim' not in node.log(1 << 20)
    node.purge()
    for count, image, force in ((1, 'reg.example/a/b:2', False), (2, 'img', False), (3, 'img:1', True)):
        run(node, engine, docker(image=image, force_pull=force))
        assert engine.count('POST', '/images/create') == count, engine.requests
        node.purge()
    finish(node, engine)


COLLECTED = 'gc {\n image_delay = "%s"\n }\n'


def an_image_goes_with_the_last_task_that_uses_it():
    node, engine = open_node(COLLECTED % '0s')
    engine.images.add('other:1')
    node.run_job(once(docker('t'), docker('u')))
    wait_for('both to run', lambda: node.running('t') and node.running('u'))
    first, last = sorted(engine.containers.values(), key=lambda one: one.name)
    first.end(0)
    wait_for('the first to go', lambda: len(engine.containers) == 1)
    assert engine.count('DELETE', '^/images') == 0 and node.running('u')
    node.kill()
    last.end(0)  # while nobody is there
    node.start()
    wait_for('the image to go', lambda: engine.images == {'other:1'}, limit_s=30)
    node.purge()
    # One that stays until a daemon has died once more.
    engine.images.add('img:1')
    engine.fail('DELETE', '^/images', wait=threading.Event())
    run(node, engine).end(0)
    wait_for('it to be asked for', lambda: engine.count('DELETE', '^/images') == 2)
    node.kill()
    node.start()
    wait_for('the image to go', lambda: engine.images == {'other:1'}, limit_s=30)
    finish(node, engine)


def an_image_that_is_wanted_while_it_goes_comes_again():
    node, engine = open_node(COLLECTED % '0s')
    engine.registry.add('img:1')
    let_go = threading.Event()
    going = engine.fail('DELETE', '^/images', status=200, body='[]', wait=let_go, do=True)
    run(node, engine).end(0)
    assert going.seen.wait(60)
    node.purge()
    engine.images.add('img:1')  # it is still there, as far as can be seen
    node.run_job(once(docker()))
    wait_for('it to be looked for', lambda: engine.count('GET', '^/images') == 2)
    engine.images.clear()
    let_go.set()
    wait_for('it to run', node.running)
    assert (engine.count('POST', '/images/create'), len(engine.made)) == (1, 2), engine.requests
    node.purge()
    finish(node, engine)


def an_image_that_is_kept_is_not_asked_for():
    node, engine = open_node('gc {\n image = false\n image_delay = "0s"\n }\n')
    run(node, engine).end(0)
    wait_for('its end', node.dead)
    node.purge()
    assert engine.count('DELETE', '^/images') == 0 and not os.path.exists(node.data + '/client/images')
    finish(node, engine)


def tasks_that_wait_for_an_image_pull_it_once():
    node, engine = open_node()
    let_go = threading.Event()
    engine.registry.add('slow:1')
    pulling = engine.fail('POST', '/images/create', status=200, body='{}', wait=let_go)
    node.run_job(once(docker('t', image='slow:1'), docker('u', image='slow:1')))
    assert pulling.seen.wait(60)
    wait_for('both to wait', lambda: all(
        'Downloading image' in json.dumps(node.task('job', 'g', name)) for name in 'tu'))
    asks_himself = docker('v', image='slow:1', force_pull=True, auth=[{'username': 'ann', 'password': 'geheim'}])
    node.run_job(dict(once(asks_himself), ID='other', Name='other'))
    wait_for('the other to run', lambda: node.running('v', job='other'))
    assert not node.running('t') and not node.running('u')
    let_go.set()
    wait_for('both to run', lambda: node.running('t') and node.running('u'))
    assert engine.count('POST', '/images/create') == 2, engine.requests
    (event,) = [one for one in node.task('job', 'g', 't')['Events'] if one['Type'] == 'Driver']
    assert event['DisplayMessage'] == 'Downloading image', event
    node.purge()
    finish(node, engine)


ARCHIVE = 'mine:1' + '\0' * (3 << 20)


def brought(**config):
    return docker(image='mine:1', load='x.tar', **config)


def with_archive(task, make):
    """A job whose TASK finds what MAKE, a script, has made in its directory $to."""
    job = once(task)
    job['TaskGroups'][0]['Tasks'].append(raw_exec(
        'before', 'to=$NOMAD_ALLOC_DIR/../t/local; mkdir -p $to; ' + make, Lifecycle={'Hook': 'prestart'}))
    return job


def an_image_that_a_task_brings_along_is_loaded():
    node, engine = open_node()
    path = os.path.join(engine.dir, 'archive')
    with open(path, 'w', encoding='ascii') as out:
        out.write(ARCHIVE)
    copy = 'cp %s $to/x.tar' % path
    run(node, engine, job=with_archive(brought(), copy))
    assert (engine.count('POST', '/images/load'), engine.count('POST', '/images/create')) == (1, 0)
    node.purge()
    run(node, engine, job=with_archive(brought(), copy))  # it is there now
    assert engine.count('POST', '/images/load') == 1
    node.purge()
    run(node, engine, job=with_archive(brought(force_pull=True), copy))
    assert engine.count('POST', '/images/load') == 2
    node.purge()
    for words, make, fault in (
            ('cannot open t/local/x.tar', 'true', None), ('is no file', 'mkdir $to/x.tar', None),
            ('cannot open t/local/x.tar', 'ln -s %s $to/x.tar' % path, None),
            ('is no file', 'mkfifo $to/x.tar', None),
            ('has no image `mine:1`', 'printf other > $to/x.tar', None),
            ('no space left', copy, {'status': 200, 'body': '{"stream":"a"}\n{"error":"no space left"}'}),
            ('it hurts', copy, {'status': 500}),
            ('has no image `mine:1`', copy, {'status': 200, 'body': 'x' * 70000, 'cut': True})):
        engine.images.discard('mine:1')
        if fault is not None:
            engine.fail('POST', '/images/load', **fault)
        made = len(engine.made)
        node.run_job(with_archive(brought(), make))
        state = wait_for(words, node.dead)
        assert words in json.dumps(state), (words, state)
        assert len(engine.made) == made
        node.purge()
    # One that nobody waits for any more, and a daemon that dies meanwhile.
    let_go = threading.Event()
    loading = engine.fail('POST', '/images/load', wait=let_go)
    node.run_job(with_archive(dict(brought(), KillTimeout=milliseconds(100)), copy))
    assert loading.seen.wait(60)
    node.kill()
    node.start()
    wait_for('it to run', node.running)
    let_go.set()
    node.purge()
    finish(node, engine)


def processors_are_bounded_if_the_job_says_so():
    node, engine = open_node()
    host = run(node, engine).body['HostConfig']
    assert not {'CpuQuota', 'CpuPeriod'} & set(host), host
    node.purge()
    resources = node.get('/v1/node/' + node.get('/v1/nodes')[0]['ID'])['NodeResources']['Cpu']
    for period, given in ((100000, {}), (50000, {'cpu_cfs_period': 50000})):
        host = run(node, engine, docker(cpu_hard_limit=True, **given)).body['HostConfig']
        quota = int(100 / resources['CpuShares'] * period) * os.cpu_count()
        assert (host['CpuPeriod'], host['CpuQuota']) == (period, quota), (host, resources)
        node.purge()
    finish(node, engine)


def credentials_come_from_the_file_of_the_node():
    engine = Engine()
    path = os.path.join(engine.dir, 'auth.json')
    with open(path, 'w') as out:
        json.dump({'auths': {'reg.example': {'auth': base64.b64encode(b'bob:pw').decode()}}}, out)
    engine.open()
    engine.registry.add('reg.example/x:1')
    node = Node(config=engine.config('auth {\n config = "%s"\n }\n' % path))
    node.start()
    run(node, engine, docker(image='reg.example/x:1'))
    assert json.loads(base64.urlsafe_b64decode(engine.auths[-1]))['username'] == 'bob'
    os.unlink(path)
    finish(node, engine)


HELPER = """#!/bin/sh
registry=$(cat)
echo "$1 $registry" >> $(dirname $0)/asked
case $registry in
fails.example) echo geheim; exit 7 ;;
talks.example) exec yes geheim ;;
none.example) echo '{"Username": "", "Secret": ""}' ;;
*) echo '{"ServerURL": "x", "Username": "carl", "Secret": "geheim"}' ;;
esac
"""


def credentials_come_from_a_program_of_the_node():
    engine = Engine()
    engine.open()
    for name in ('docker-credential-one', 'docker-credential-two'):
        path = os.path.join(engine.dir, name)
        with open(path, 'w', encoding='ascii') as out:
            out.write(HELPER)
        os.chmod(path, 0o755)
    file = os.path.join(engine.dir, 'auth.json')
    with open(file, 'w', encoding='ascii') as out:
        json.dump({'auths': {}, 'credHelpers': {'two.example': 'two', 'bad.example': '../x',
                                                'away.example': 'away'}}, out)
    engine.registry |= {'two.example/x:1', 'some:1', 'fails.example/x:1'}
    node = Node(config=engine.config('auth {\n config = "%s"\n helper = "one"\n }\n' % file))
    node.environment['PATH'] = engine.dir + ':' + os.environ['PATH']
    node.start()
    for image, registry in (('two.example/x:1', 'two.example'), ('some:1', 'docker.io')):
        run(node, engine, docker(image=image))
        said = json.loads(base64.urlsafe_b64decode(engine.auths[-1]))
        assert said == {'username': 'carl', 'password': 'geheim', 'serveraddress': registry}, said
        node.purge()
    with open(os.path.join(engine.dir, 'asked'), encoding='ascii') as asked:
        assert asked.read() == 'get two.example\nget docker.io\n'
    for registry, words in (('fails', 'ended with status 7'), ('talks', 'it says more than'), ('none', 'is no credentials'),
                            ('bad', 'name no helper'), ('away', "is not in the agent's PATH")):
        node.run_job(once(docker(image=registry + '.example/x:1')))
        state = wait_for(words, node.dead)
        assert words in json.dumps(state), (words, state)
        node.purge()
    run(node, engine, docker(image='fails.example/x:1', auth_soft_fail=True))
    assert engine.auths[-1] is None and len(engine.auths) == 3, engine.auths
    node.purge()
    assert 'geheim' not in node.log(1 << 20)
    for folder, _, names in os.walk(node.data):
        for name in names:
            with open(os.path.join(folder, name), 'rb') as kept:
                assert b'geheim' not in kept.read(), (folder, name)
    finish(node, engine)


def a_stop_while_the_image_comes_leaves_nothing():
    node, engine = open_node()
    let_go = threading.Event()
    engine.registry.add('slow:1')
    pulling = engine.fail('POST', '/images/create', status=200, body='{}', wait=let_go, do=True)
    node.run_job(once(docker(image='slow:1')))
    assert pulling.seen.wait(60)
    node.call('DELETE', '/v1/job/job')
    assert engine.made == [] and not node.dead()
    let_go.set()  # a start that has begun is waited for, as in Nomad
    wait_for('its end', node.dead)
    wait_for('it to be gone', lambda: engine.one() is None)
    finish(node, engine)


def a_pull_that_stands_still_is_given_up():
    node, engine = open_node('pull_activity_timeout = "300ms"\n')
    let_go = threading.Event()
    engine.fail('POST', '/images/create', wait=let_go)
    node.run_job(once(docker(image='slow:1')))
    state = wait_for('its end', node.dead)
    assert 'nothing has come for' in json.dumps(state), state
    let_go.set()
    finish(node, engine)


def signals_arrive_and_a_kill_comes_when_a_stop_does_not_help():
    node, engine = open_node()
    engine.deadly = {}
    task = dict(docker(), KillTimeout=milliseconds(300))
    container = run(node, engine, task)
    node.put('/v1/client/allocation/%s/signal' % node.alloc('job', 'g')['ID'], {'Signal': 'SIGHUP'})
    assert container.signals == [1], container.signals
    node.call('DELETE', '/v1/job/job')
    state = wait_for('its end', node.dead)
    assert container.signals[:2] == [1, 15] and container.signals[-1] == 9, container.signals
    assert exit_codes(state) == [137], state
    node.purge()
    container = run(node, engine, dict(docker(), KillSignal='SIGQUIT', KillTimeout=milliseconds(300)))
    node.call('DELETE', '/v1/job/job')
    wait_for('its end', node.dead)
    assert container.signals[0] == 3, container.signals
    finish(node, engine)


def no_line_is_lost_or_doubled_when_the_daemon_dies():
    node, engine = open_node()
    container = run(node, engine)
    said, at = '', 1_700_000_000 * 10**9
    for number in range(60):
        for part in range(3):  # some at the same time, and some out of order
            text = 'line %d.%d %s\n' % (number, part, 'x' * (number * 37 % 200))
            container.say(text, at_ns=at + number * 10**8 - (5 * 10**7 if part == 2 else 0))
            said += text
        if number % 12 == 5:
            node.kill()
            node.start()
            wait_for('it to run on', node.running)
        if number % 12 == 11:
            engine.close()
            engine.open()
    wait_for('all of it', lambda: log_of(node) == said, limit_s=60)
    # What a daemon wrote just before it died, and could not note.
    node.kill()
    (alloc,) = os.listdir(os.path.join(node.data, 'alloc'))
    path = os.path.join(node.data, 'alloc', alloc, 'alloc/logs/t.stdout.0')
    container.say('last\n', at_ns=at + 7 * 10**9)
    with open(path, 'a') as log:
        log.write('last\n')
    node.start()
    wait_for('the last', lambda: log_of(node) == said + 'last\n')
    container.say('and more\n', at_ns=at + 7 * 10**9)
    wait_for('more', lambda: log_of(node) == said + 'last\nand more\n')
    container.say('goodbye\n', stream=2)
    container.end(0)
    wait_for('its end', node.dead)
    assert log_of(node, stream='stderr') == 'goodbye\n'
    finish(node, engine)


def logs_are_rotated_and_the_oldest_go():
    node, engine = open_node()
    task = dict(docker(), LogConfig={'MaxFiles': 2, 'MaxFileSizeMB': 1})
    job = once(task)
    job['TaskGroups'][0]['EphemeralDisk'] = {'SizeMB': 300}
    container = run(node, engine, job=job)
    line = 'x' * 16383 + '\n'
    for _ in range(200):  # 3.1 MiB
        container.say(line)
    container.end(0)
    wait_for('its end', node.dead)
    assert log_of(node, 1) == '' and len(log_of(node, 2)) == 1 << 20, len(log_of(node, 2))
    assert log_of(node, 3) == line * 8, len(log_of(node, 3))
    node.purge()
    container = run(node, engine, dict(docker(), LogConfig={'Disabled': True}))
    container.say('secret\n')
    container.end(0)
    wait_for('its end', node.dead)
    assert log_of(node) == ''
    finish(node, engine)


def in_network(job, **network):
    job['TaskGroups'][0]['Networks'] = [dict({'Mode': 'none'}, **network)]
    return job


def namespace_of(node):
    (path,) = glob.glob('/run/netns/cairn-%s-*' % node.node_mark())
    return os.stat(path).st_ino


def a_task_starts_when_the_network_of_its_group_is_there_to_share():
    node, engine = open_node()
    engine.hold_networks = True
    task = docker(ports=['www'], extra_hosts=['x:1.2.3.4'], dns_servers=['10.0.0.1'])
    node.run_job(in_network(once(task), DynamicPorts=[{'Label': 'www', 'To': 80}]))
    wait_for('the other one to run', lambda: len(engine.starts) == 1)
    name = engine.starts[0]
    sharer = engine.containers[name]
    wait_for('it to be looked at', lambda: engine.count('GET', '/containers/%s/json' % name) > 2)
    assert engine.made == [name] and sharer.network() != namespace_of(node), engine.made
    sharer.let_go()
    wait_for('it to run', node.running)
    container = engine.one()
    assert container.network() == sharer.network() == namespace_of(node)
    body, host = sharer.body, sharer.body['HostConfig']
    assert name == container.name + '.net' and body['Image'] == 'sha256:img:1' and body['User'] == '0:0', body
    assert (host['NetworkMode'], host['CapDrop'], host['CapAdd']) == ('none', ['ALL'], ['SYS_ADMIN']), host
    assert 'Privileged' not in host and body['Env'] == [] and host['ReadonlyRootfs'], body
    assert (host['ExtraHosts'], host['Dns']) == (['x:1.2.3.4'], ['10.0.0.1']), host
    host = container.body['HostConfig']
    assert host['NetworkMode'] == 'container:' + name, host
    assert not {'PortBindings', 'ExtraHosts', 'Dns'} & set(host) and 'ExposedPorts' not in container.body, host
    with open('/proc/%d/status' % sharer.process.pid, encoding='ascii') as status:
        assert 'CapEff:\t0000000000000000' in status.read(), 'it has rights that it does not need any more'
    node.call('DELETE', '/v1/job/job')
    wait_for('its end', node.dead)
    finish(node, engine)


def a_network_that_cannot_be_shared_is_no_start():
    node, engine = open_node()
    for method, path, words in (('POST', r'create\?name=.*net$', 'it hurts'), ('POST', r'\.net/start', 'it hurts'),
                                ('GET', r'\.net/json', 'it hurts')):
        engine.fail(method, path)
        node.run_job(in_network(once(docker())))
        state = wait_for(words, node.dead)
        assert words in json.dumps(state) and 'shares its network' in json.dumps(state), (words, state)
        wait_for('all to go', lambda: not engine.containers)
        node.purge()
    engine.hold_networks = True
    started = len(engine.starts)
    node.run_job(in_network(once(docker())))
    wait_for('the other one to run', lambda: len(engine.starts) > started)
    for container in list(engine.containers.values()):
        container.end(1)
    state = wait_for('its end', node.dead)
    assert 'shares its network has ended' in json.dumps(state), state
    wait_for('all to go', lambda: not engine.containers)
    node.purge()
    for words, config in (('are of the Engine', {'mac_address': '02:00:00:00:00:01'}),
                          ('are of the Engine', {'network_aliases': ['x']})):
        node.run_job(in_network(once(docker(**config))))
        state = wait_for(words, node.dead)
        assert words in json.dumps(state), (words, state)
        node.purge()
    engine.hold_networks = False
    body = run(node, engine, job=in_network(once(docker(network_mode='host')))).body
    assert body['HostConfig']['NetworkMode'] == 'host' and len(engine.containers) == 1, body
    finish(node, engine)


def a_daemon_that_dies_while_a_network_is_shared_leaves_nothing():
    node, engine = open_node()
    for method, path in (('POST', r'create\?name=.*net$'), ('POST', r'\.net/start'), ('GET', r'\.net/json'),
                         ('DELETE', r'\.net\?')):
        let_go = threading.Event()
        if method == 'DELETE':
            run(node, engine, job=in_network(service(docker())))
        under_way = engine.fail(method, path, do=True, wait=let_go)
        if method == 'DELETE':
            node.call('DELETE', '/v1/job/job')
        else:
            node.run_job(in_network(service(docker(), restart=restart_policy(3))))
        assert under_way.seen.wait(60)
        node.kill()
        let_go.set()
        node.start()
        if method != 'DELETE':
            wait_for('it to run', node.running, limit_s=60)
            container = engine.one()
            wait_for('the others to go', lambda: sorted(engine.containers) ==  # noqa: B023
                     [container.name, container.name + '.net'])  # noqa: B023
            assert container.network() == namespace_of(node)
            node.call('DELETE', '/v1/job/job')
        wait_for('its end', node.dead)
        wait_for('all to go', lambda: not engine.containers)
        node.purge()
    finish(node, engine)


def exec_line(node, alloc, *words):
    return {'args': [os.path.join(node.build, 'cairn'), 'alloc', 'exec', '-task', 't', alloc, *words], 'text': True,
            'env': dict(os.environ, NOMAD_ADDR='http://127.0.0.1:%d' % node.port), 'stdout': subprocess.PIPE,
            'stderr': subprocess.PIPE}


def execute(node, alloc, *words, given=''):
    return subprocess.run(**exec_line(node, alloc, *words), input=given, timeout=120, check=False)


def commands_run_in_a_task():
    node, engine = open_node()
    container = run(node, engine)
    alloc = node.alloc('job', 'g')['ID']
    done = execute(node, alloc, '/bin/sh', '-c', 'cat; echo err >&2; exit 7', given='in\n' * 100000)
    assert (done.stdout, done.stderr, done.returncode) == ('in\n' * 100000, 'err\n', 7), \
        (len(done.stdout), done.stderr, done.returncode)
    for fault, words in (({'status': 409}, 'the task has ended'), ({'status': 500}, 'it hurts'),
                         ({'status': 201, 'body': '{"Id": "../../x"}'}, 'answer is none'),
                         ({'status': 201, 'body': 'x'}, 'answer is none')):
        engine.fail('POST', '/exec$', **fault)
        done = execute(node, alloc, '/bin/true')
        assert done.returncode != 0 and words in done.stderr, (words, done)
    for fault, words in (({'status': 500}, 'it hurts'), ({'status': 404}, 'the task has ended'),
                         ({'status': 101, 'body': '\7 no frame'}, 'no output of a command')):
        engine.fail('POST', '^/exec/.*/start', **fault)
        done = execute(node, alloc, '/bin/true')
        assert done.returncode != 0 and words in done.stderr, (words, done)
    engine.fail('GET', '^/exec/.*/json', status=404)
    done = execute(node, alloc, '/bin/true')
    assert done.returncode != 0 and 'the task has ended' in done.stderr, done
    container.end(0)
    wait_for('its end', node.dead)
    done = execute(node, alloc, '/bin/true')
    assert done.returncode != 0 and 'not running' in done.stderr, done
    finish(node, engine)


def what_commands_leave_is_ended():
    node, engine = open_node()
    run(node, engine)
    alloc = node.alloc('job', 'g')['ID']

    def begin(before):
        client = subprocess.Popen(**exec_line(node, alloc, '/bin/sleep', '100000'), stdin=subprocess.PIPE)
        wait_for('it to run', lambda: [one for one in engine.commands.values() if one not in before and one.process])
        (command,) = [one for one in engine.commands.values() if one not in before]
        return client, command

    client, command = begin([])
    client.kill()  # who listened is gone
    client.communicate()
    wait_for('it to be ended', lambda: command.code == 137)
    client, left = begin([command])
    theirs = subprocess.Popen(['/bin/sleep', '100000'], start_new_session=True)  # of who uses the Engine, too
    with engine.changed:
        other = Command(left.container, {})
        other.process = theirs
        engine.commands[other.id] = other
    node.kill()
    client.communicate()
    assert left.code is None
    node.start()
    wait_for('it to be ended', lambda: left.code == 137)
    assert theirs.poll() is None, 'it was not ours'
    theirs.kill()
    theirs.wait()
    finish(node, engine)


def a_daemon_that_dies_at_any_point_of_a_start_and_a_stop_leaves_one_container():
    point = 0
    while True:
        point += 1
        engine = Engine()
        engine.open()
        engine.registry.add('img:1')
        node = Node(config=engine.config(COLLECTED % '0s') + 'client {\n options {\n "driver.denylist" = "java"\n }\n}\n')
        died = scenario(node, engine, point)
        for name in engine.starts:
            assert engine.starts.count(name) == 1, (point, engine.starts)
        assert not engine.containers, (point, list(engine.containers))
        node.close()
        engine.end()
        if not died:
            assert point > 20, point
            return


def scenario(node, engine, point):
    """A task runs, and is stopped; the daemon dies at POINT, and comes back.  True if it did."""
    died = []

    def go_on():
        if node.process.poll() is not None:
            died.append(point)
            node.start()

    def until(what, call, is_done):
        """The CALL is made again for whoever died without having written it down."""
        def tried():
            go_on()
            with contextlib.suppress(OSError):  # it died on the way
                if not is_done():
                    with contextlib.suppress(Refused):  # it is done in part
                        call()
                return is_done()
        return wait_for(what, tried, limit_s=60)

    node.start(crash_at=point, wait=False)
    wait_for('the daemon', lambda: node.process.poll() is not None or answers(node))
    go_on()
    job = in_network(service(docker(), restart=restart_policy(3)))
    until('it to be known', lambda: node.run_job(job), lambda: node.alloc('job', 'g'))
    until('it to run', lambda: None, node.running)
    assert len(set(engine.starts)) == len(engine.starts) and engine.one().running
    state = until('its end', lambda: node.call('DELETE', '/v1/job/job'), node.dead)
    assert exit_codes(state)[-1:] == [143] and 'Terminated' in events(state), (point, state)
    until('it to be gone', lambda: node.call('DELETE', '/v1/job/job?purge=true'),
          lambda: not node.allocs() and not engine.containers)
    until('its image to be gone', lambda: None, lambda: not engine.images)
    node.kill()
    return bool(died)


def answers(node):
    try:
        return node.answers()
    except AssertionError:
        return True


def a_daemon_that_dies_while_the_engine_works_finds_what_came_of_it():
    node, engine = open_node()
    for method, path in (('POST', '/create'), ('POST', '/start'), ('GET', '/containers/.*/json$')):
        engine.starts, engine.made = [], []
        let_go = threading.Event()
        under_way = engine.fail(method, path, do=True, wait=let_go)
        node.run_job(service(docker()))
        assert under_way.seen.wait(60)
        wait_for('it to be made', lambda: engine.one())
        node.kill()
        let_go.set()
        node.start()
        state = wait_for('it to run', node.running)
        assert (len(engine.made), len(engine.starts), state['Restarts']) == (1, 1, 0), (path, engine.made, state)
        node.purge()
    for method, path in (('POST', '/kill'), ('DELETE', '/containers')):
        let_go = threading.Event()
        container = run(node, engine)
        under_way = engine.fail(method, path, do=True, wait=let_go)
        node.call('DELETE', '/v1/job/job')
        assert under_way.seen.wait(60)
        node.kill()
        let_go.set()
        node.start()
        state = wait_for('its end', node.dead)
        assert exit_codes(state) == [143] and container.signals == [15], (path, state, container.signals)
        wait_for('it to be gone', lambda: engine.one() is None)
        node.purge()
    finish(node, engine)


def a_container_that_no_task_has_goes_when_the_daemon_comes():
    node, engine = open_node()
    container = run(node, engine)
    labels = dict(container.body['Labels'])
    node.kill()
    with engine.changed:
        engine.containers.clear()
    for name, changed in (('ours', {'cairn.generation': '77'}), ('other', {'cairn.node': '00000000'}),
                          ('theirs', None)):
        body = {'Labels': dict(labels, **changed) if changed is not None else {}}
        generation = body['Labels'].get('cairn.generation', '1')
        full = container.name.rsplit('.', 1)[0] + '.' + generation if name == 'ours' else name
        engine.containers[full] = Container(engine, full, body)
    node.start()
    wait_for('ours to go', lambda: sorted(engine.containers) == ['other', 'theirs'], limit_s=60)
    container.end(0)
    engine.containers.clear()
    wait_for('its end', node.dead, limit_s=60)
    finish(node, engine)


def a_node_says_what_becomes_of_containers_that_no_task_has():
    node, engine = open_node()
    labels = dict(run(node, engine).body['Labels'])
    node.call('DELETE', '/v1/job/job')
    wait_for('its end', node.dead)
    node.purge()

    def stray(generation, age_s):
        name = 't-%s.%d' % (labels['cairn.alloc_id'], generation)
        container = Container(engine, name, {'Labels': dict(labels, **{'cairn.generation': str(generation)})})
        container.created -= age_s
        engine.containers[name] = container
        return name

    def restart(settings):
        node.kill()
        engine.requests = []
        with open(node.config, 'w', encoding='ascii') as out:
            out.write(engine.config('gc {\n dangling_containers {\n %s }\n }\n' % settings))
        node.start()

    old, young = stray(7, 7200), stray(8, 10)
    restart('enabled = false\n')
    wait_for('the driver to be well', lambda: node.get('/v1/nodes')[0]['Drivers']['docker']['Healthy'])
    assert engine.count('GET', '^/containers/json') == 0
    restart('dry_run = true\n creation_grace = "1h"\n period = "1s"\n')
    wait_for('the old one to be named', lambda: 'left as it is name=' + old in node.log(1 << 20))
    wait_for('another look', lambda: engine.count('GET', '^/containers/json') > 1)
    assert young not in node.log(1 << 20) and sorted(engine.containers) == sorted([old, young])
    restart('creation_grace = "1h"\n')
    wait_for('the old one to go', lambda: list(engine.containers) == [young], limit_s=30)
    engine.containers.clear()
    finish(node, engine)


def after_a_reboot_it_starts_again():
    node, engine = open_node()
    container = run(node, engine, job=service(docker()))
    node.reboot('11111111-2222-4333-8444-555555555555')
    container.end(255)  # as the Engine says of what it finds dead
    node.start()
    wait_for('another', lambda: len(engine.starts) == 2 and node.running(), limit_s=60)
    assert engine.starts[0] != engine.starts[1] and engine.one().name == engine.starts[1]
    finish(node, engine)


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it makes mounts')
        sys.exit(77)
    sys.exit(tap([
        what_is_asked_for_is_what_the_job_says,
        what_cannot_be_done_is_refused_by_name,
        an_exit_code_is_the_one_that_the_engine_tells,
        an_engine_that_is_away_is_no_end_of_a_task,
        what_an_engine_makes_up_is_not_believed,
        answers_that_are_none_make_no_second_container,
        a_start_that_fails_says_why_and_leaves_nothing,
        an_image_that_is_not_there_is_pulled_with_what_the_registry_wants,
        an_image_goes_with_the_last_task_that_uses_it,
        an_image_that_is_wanted_while_it_goes_comes_again,
        an_image_that_is_kept_is_not_asked_for,
        tasks_that_wait_for_an_image_pull_it_once,
        an_image_that_a_task_brings_along_is_loaded,
        processors_are_bounded_if_the_job_says_so,
        credentials_come_from_the_file_of_the_node,
        credentials_come_from_a_program_of_the_node,
        a_stop_while_the_image_comes_leaves_nothing,
        a_pull_that_stands_still_is_given_up,
        signals_arrive_and_a_kill_comes_when_a_stop_does_not_help,
        no_line_is_lost_or_doubled_when_the_daemon_dies,
        logs_are_rotated_and_the_oldest_go,
        a_daemon_that_dies_while_the_engine_works_finds_what_came_of_it,
        a_task_starts_when_the_network_of_its_group_is_there_to_share,
        a_network_that_cannot_be_shared_is_no_start,
        a_daemon_that_dies_while_a_network_is_shared_leaves_nothing,
        commands_run_in_a_task,
        what_commands_leave_is_ended,
        a_container_that_no_task_has_goes_when_the_daemon_comes,
        a_node_says_what_becomes_of_containers_that_no_task_has,
        after_a_reboot_it_starts_again,
        a_daemon_that_dies_at_any_point_of_a_start_and_a_stop_leaves_one_container,
    ]))
