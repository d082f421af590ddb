#!/usr/bin/env python3
"""What a node says of itself and of jobs is true: attributes, warnings."""
import json
import os
import platform
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Node, raw_exec, service, sleeper, tap, wait_for  # noqa: E402

ARCH = {'x86_64': 'amd64', 'aarch64': 'arm64'}.get(platform.machine(), platform.machine())


def attributes_have_the_values_that_nomad_gives_them():
    node = Node()
    node.start()
    attributes = node.get('/v1/node/%s' % node.get('/v1/nodes')[0]['ID'])['Attributes']
    assert attributes['kernel.name'] == 'linux' and attributes['cpu.arch'] == ARCH, attributes
    assert 'SIGTERM' in attributes['os.signals'].split(',')
    task = raw_exec('t', 'echo "$FACTS" > "${NOMAD_TASK_DIR}/facts"; sleep 1000',
                    Env={'FACTS': '${attr.kernel.name} ${attr.cpu.arch}'})
    node.run_job(service(task))
    where = wait_for('the task', lambda: node.running() and node.alloc('job', 'g')['ID'])
    path = os.path.join(node.data, 'alloc', where, 't', 'local', 'facts')
    wait_for('the facts', lambda: os.path.exists(path) and open(path).read().endswith('\n'))
    assert open(path).read().split() == ['linux', ARCH]
    assert 'kernel.name' in node.cli('node', 'status', '-verbose', '-self').stdout
    node.finish()


def what_is_kept_and_not_acted_on_is_named_where_users_look():
    node = Node()
    node.start()
    job = service(sleeper(), Update={'Canary': 1}, Spreads=[{'Attribute': '${node.datacenter}'}])
    wanted = ('update (canary) is kept and not acted on', 'spread is kept and not acted on')
    answers = [node.put('/v1/validate/job', {'Job': job})['Warnings'], node.run_job(job)['Warnings'],
               node.get('/v1/job/job')['Warnings'], node.cli('job', 'status', 'job').stdout]
    file = os.path.join(node.dir, 'job.json')
    with open(file, 'w') as out:
        json.dump(job, out)
    answers += [node.cli('job', verb, file).stdout for verb in ('validate', 'run')]
    for answer in answers:
        for text in wanted:
            assert text in answer, answer
    # What was answered can be submitted again.
    node.run_job(node.get('/v1/job/job'))
    plain = service(sleeper())
    plain['ID'] = 'plain'
    assert node.run_job(plain)['Warnings'] == ''
    node.finish()


if __name__ == '__main__':
    sys.exit(tap([
        attributes_have_the_values_that_nomad_gives_them,
        what_is_kept_and_not_acted_on_is_named_where_users_look,
    ]))
