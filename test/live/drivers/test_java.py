#!/usr/bin/env python3
"""Tasks of the driver java on a real node, with a machine that only says what it was started with:
what is asked for is what it gets, isolated as a task of exec, and found again after crashes."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, milliseconds, restart_policy, service, start_ticks, tap, wait_for  # noqa: E402

MACHINE = '''#!/bin/sh
if [ "$1" = -version ]; then
    echo 'openjdk version "17.0.9" 2023-10-17' >&2
    echo 'OpenJDK Runtime Environment (build 17.0.9+9-Debian-1deb12u1)' >&2
    echo 'OpenJDK 64-Bit Server VM (build 17.0.9+9-Debian-1deb12u1, mixed mode)' >&2
    exit 0
fi
for word in "$0" "$@"; do echo "$word"; done > /local/said
id -un >> /local/said
trap 'exit 143' TERM
sleep 1000 &
while :; do wait; done
'''


def open_node(machine=MACHINE):
    node = Node(config='\n')
    os.chmod(node.dir, 0o711)
    home = os.path.join(node.dir, 'jvm')
    os.mkdir(home)
    with open(os.path.join(home, 'java'), 'w') as out:
        out.write(machine)
    os.chmod(os.path.join(home, 'java'), 0o755)
    places = ''.join('    "%s" = "%s"\n' % (place, place)
                     for place in (home, '/bin', '/etc', '/lib', '/lib64', '/usr'))
    with open(node.config, 'w') as out:
        out.write('client {\n  chroot_env {\n%s  }\n}\n' % places)
    node.environment['PATH'] = home + ':' + os.environ['PATH']
    node.start()
    return node, home


def node_facts(node):
    return node.get('/v1/node/%s' % node.get('/v1/nodes')[0]['ID'])


def program(**config):
    return {'Name': 't', 'Driver': 'java', 'Config': config, 'User': 'nobody',
            'KillSignal': 'SIGTERM', 'KillTimeout': milliseconds(5000),
            'Resources': {'CPU': 50, 'MemoryMB': 64}}


def said(node, alloc):
    path = os.path.join(node.data, 'alloc', alloc, 't', 'local', 'said')
    wait_for('its words', lambda: os.path.exists(path) and 'nobody' in open(path).read())
    with open(path) as file:
        return file.read().split('\n')[:-1]


def a_program_gets_what_it_was_given_and_outlives_the_daemon():
    node, home = open_node()
    wait_for('java', lambda: node_facts(node)['Drivers']['java']['Healthy'])
    facts = node_facts(node)['Attributes']
    assert facts['driver.java'] == '1' and facts['driver.java.version'] == '17.0.9', facts
    assert facts['driver.java.runtime'].startswith('OpenJDK Runtime Environment'), facts
    node.run_job(service(program(jar_path='local/app.jar', jvm_options=['-Xmx32m', '-Da=b c'],
                                 class_path='/local:/alloc', args=['one', 'two words']),
                         restart=restart_policy(0)))
    alloc = node.alloc('job', 'g')['ID']
    assert said(node, alloc) == [home + '/java', '-Xmx32m', '-Da=b c', '-cp', '/local:/alloc', '-jar',
                                 'local/app.jar', 'one', 'two words', 'nobody'], said(node, alloc)

    def ours():
        return {pid: start_ticks(pid) for pid, line in node.payloads().items() if 'app.jar' in line}

    wait_for('what it started', lambda: node.pid_of('sleep 1000'))  # until then that has its name
    before = ours()
    assert len(before) == 1, node.payloads()
    node.kill()
    node.start()
    wait_for('it to be found', lambda: node.running('t'))
    assert ours() == before
    node.call('DELETE', '/v1/job/job')
    wait_for('its end', lambda: node.alloc('job', 'g')['ClientStatus'] == 'complete')
    node.finish()


def one_that_does_not_work_is_none():
    node, _ = open_node('#!/bin/sh\nexit 1\n')
    wait_for('a look at it', lambda: ' drivers: docker=' in node.log())
    assert not node_facts(node)['Drivers']['java']['Healthy']
    node.run_job(service(program(jar_path='local/app.jar')))
    assert not node.allocs()
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it makes namespaces')
        sys.exit(77)
    sys.exit(tap([
        a_program_gets_what_it_was_given_and_outlives_the_daemon,
        one_that_does_not_work_is_none,
    ]))
