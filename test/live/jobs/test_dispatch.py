#!/usr/bin/env python3
"""Parameterized jobs: dispatched with payloads and meta, once for each token, over crashes."""
import base64
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, Refused, raw_exec, service, tap, wait_for  # noqa: E402

SHOW = 'cat local/in/data; echo "$NOMAD_META_user,$NOMAD_META_size,$NOMAD_JOB_PARENT_ID"'


def job(script=SHOW, **fields):
    wanted = service(raw_exec('t', script, DispatchPayload={'File': 'in/data'}))
    wanted.update(Type='batch', ParameterizedJob=dict(
        {'Payload': 'optional', 'MetaRequired': ['user'], 'MetaOptional': ['size']}, **fields))
    return wanted


def started(script=SHOW):
    node = Node()
    node.start()
    assert node.run_job(job(script))['EvalID'] == ''
    return node


def dispatch(node, token='', payload=b'hello\n', **meta):
    return node.put('/v1/job/job/dispatch?idempotency_token=' + token,
                    {'Payload': base64.b64encode(payload).decode(), 'Meta': meta})


def status(node, name):
    return node.get('/v1/job/' + name)['Status']


def a_dispatch_brings_its_payload_and_meta():
    node = started()
    assert node.allocs('job') == [] and status(node, 'job') == 'running'
    made = dispatch(node, user='ann')
    name = made['DispatchedJobID']
    wait_for('the end of it', lambda: status(node, name) == 'dead')
    alloc = node.allocs(name)[0]['ID']
    assert node.cli('alloc', 'logs', alloc).stdout == 'hello\nann,,job\n'
    said = node.cli('job', 'status', 'job').stdout
    assert 'batch/parameterized' in said and name in said and 'Required Metadata = user' in said
    assert node.get('/v1/job/job/summary')['Children'] == {'Pending': 0, 'Running': 0, 'Dead': 1}
    node.cli('system', 'gc')
    wait_for('it to be forgotten', lambda: [one['ID'] for one in node.get('/v1/jobs')] == ['job'])
    node.finish()


def what_the_job_does_not_want_is_refused():
    node = started()
    for meta, payload, part in (({}, b'', 'did not provide required meta keys: [user]'),
                                ({'user': '1', 'x': '2'}, b'', 'unpermitted metadata keys: [x]'),
                                ({'user': '1'}, b'a' * 16385, 'maximum size; 16385 > 16384')):
        try:
            dispatch(node, payload=payload, **meta)
        except Refused as refusal:
            assert refusal.status == 400 and part in refusal.text, refusal.text
        else:
            raise AssertionError(part)
    assert [one['ID'] for one in node.get('/v1/jobs')] == ['job']
    node.finish()


def one_token_makes_one_job_over_crashes():
    node = started('exec sleep 1000')
    first = dispatch(node, token='once', user='ann')
    for _ in range(2):
        again = dispatch(node, token='once', user='bob')
        assert again['DispatchedJobID'] == first['DispatchedJobID'] and again['EvalID'] == ''
        node.kill()
        node.start()
    assert len(node.allocs(first['DispatchedJobID'])) == 1
    assert dispatch(node, token='other', user='x')['DispatchedJobID'] != first['DispatchedJobID']
    node.finish()


def the_payload_is_the_tasks_from_its_first_start():
    node = started('cat local/in/data; rm local/in/data && exit 1; exec sleep 1000')
    name = dispatch(node, user='ann')['DispatchedJobID']

    def restarted():
        allocs = node.allocs(name)
        state = allocs and node.get('/v1/allocation/' + allocs[0]['ID'])['TaskStates']
        return state and state['t']['Restarts'] == 1 and state['t']['State'] == 'running'
    wait_for('its second start', restarted)
    assert node.cli('alloc', 'logs', node.allocs(name)[0]['ID']).stdout == 'hello\n'
    node.finish()


def the_command_line_dispatches_files():
    node = started()
    path = os.path.join(node.dir, 'input')
    with open(path, 'wb') as out:
        out.write(b'from a file\n')
    said = node.cli('job', 'dispatch', '-meta', 'user=ann', '-meta', 'size=7', 'job', path).stdout
    name = said.split('Dispatched Job ID = ')[1].split()[0]
    wait_for('the end of it', lambda: status(node, name) == 'dead')
    assert node.cli('alloc', 'logs', '-job', name).stdout == 'from a file\nann,7,job\n'
    with open(path, 'wb') as out:
        out.write(b'x' * 16385)
    refused = node.cli('job', 'dispatch', '-meta', 'user=ann', 'job', path, check=False)
    assert refused.returncode != 0 and 'of at most 16384' in refused.stdout, refused.stdout
    node.finish()


sys.exit(tap([a_dispatch_brings_its_payload_and_meta, what_the_job_does_not_want_is_refused,
              one_token_makes_one_job_over_crashes, the_payload_is_the_tasks_from_its_first_start,
              the_command_line_dispatches_files]))
