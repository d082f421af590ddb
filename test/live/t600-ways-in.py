#!/usr/bin/env python3
"""Ways in: logs and files of a task, followed and cut, from the command line and over HTTP."""
import base64
import json
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Node, tap, wait_for  # noqa: E402

CONFIG = 'plugin "raw_exec" {\n  config {\n    enabled = true\n  }\n}\n'


def task(name, script, **more):
    return dict({'Name': name, 'Driver': 'raw_exec',
                 'Config': {'command': '/bin/sh', 'args': ['-c', script]}}, **more)


def job(*tasks):
    return {'ID': 'job', 'Type': 'service', 'TaskGroups': [
        {'Name': 'g', 'Tasks': list(tasks),
         'RestartPolicy': {'Attempts': 0, 'Mode': 'fail', 'Interval': 10 ** 12}}]}


def start(*tasks):
    node = Node(config=CONFIG)
    node.start()
    node.run_job(job(*tasks))
    for each in tasks:
        wait_for('the task to run', lambda: node.running(each['Name']))
    return node, node.alloc('job', 'g')['ID']


def follow(node, path):
    """Connects and asks; what comes is chunks behind a head."""
    connection = socket.create_connection(('127.0.0.1', node.port))
    connection.sendall(('GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' % path)
                       .encode())
    return connection.makefile('rb')


def chunks(stream):
    while stream.readline() not in (b'\r\n', b''):
        pass
    while True:
        length = int(stream.readline() or b'0', 16)
        if length == 0:
            return
        yield stream.read(length)
        stream.readline()


def frames(stream):
    decoder, text = json.JSONDecoder(), ''
    for chunk in chunks(stream):
        text += chunk.decode()
        while text:
            try:
                frame, end = decoder.raw_decode(text)
            except ValueError:
                break
            text = text[end:].lstrip()
            yield frame


def rotation_is_followed_without_gap_or_double():
    go = 'while [ ! -e "$NOMAD_TASK_DIR/go" ]; do sleep 0.05; done; '
    lines = 600000  # 4 MB
    node, alloc = start(task('t', go + 'seq 1 %d; sleep 1000' % lines,
                             LogConfig={'MaxFiles': 100, 'MaxFileSizeMB': 1}))
    streams = [follow(node, '/v1/client/fs/logs/%s?task=t&type=stdout&follow=true' % alloc)
               for _ in range(3)]
    open(os.path.join(node.data, 'alloc', alloc, 't', 'local', 'go'), 'w').close()
    expected = ''.join('%d\n' % number for number in range(1, lines + 1))
    for stream in streams:
        got, length = [], 0
        for frame in frames(stream):
            got.append(base64.b64decode(frame.get('Data', '')).decode())
            length += len(got[-1])
            if length >= len(expected):
                break
        assert ''.join(got) == expected
    node.cli('job', 'stop', '-purge', 'job')
    node.finish()


def the_end_of_a_log_and_of_a_file_is_shown():
    node, alloc = start(task('t', 'seq 1 30; seq 1 5 >&2; seq 1 30 >"$NOMAD_TASK_DIR/file"; '
                             'sleep 1000'), task('other', 'sleep 1000'))
    wait_for('the output', lambda: node.cli('alloc', 'fs', alloc, 't/local/file', check=False)
             .stdout.endswith('30\n'))
    wait_for('the log', lambda: node.cli('alloc', 'logs', alloc, 't').stdout.endswith('30\n'))
    assert node.cli('alloc', 'logs', '-tail', '-n', '2', alloc, 't').stdout == '29\n30\n'
    assert node.cli('alloc', 'logs', '-c', '3', '-task', 't', alloc).stdout == '30\n'
    assert node.cli('alloc', 'logs', '-job', '-stderr', '-n', '1', 'job', 't').stdout == '5\n'
    assert node.cli('alloc', 'fs', '-tail', '-n', '2', alloc, 't/local/file').stdout == '29\n30\n'
    assert node.cli('alloc', 'fs', '-job', '-c', '3', 'job', 't/local/file').stdout == '30\n'
    failed = node.cli('alloc', 'logs', '-job', 'job', check=False)
    assert failed.returncode != 0 and 'name one of' in failed.stdout, failed.stdout
    assert node.cli('alloc', 'logs', '-job', 'nobody', 't', check=False).returncode != 0
    node.cli('job', 'stop', '-purge', 'job')
    node.finish()


def a_follower_is_told_what_is_written_next():
    node, alloc = start(task('t', 'echo first; while [ ! -e "$NOMAD_TASK_DIR/go" ]; do '
                             'sleep 0.05; done; echo second; sleep 1000'))
    follower = subprocess.Popen([os.path.join(node.build, 'cairn'), 'alloc', 'logs', '-f', alloc],
                                env=dict(os.environ, NOMAD_ADDR='http://127.0.0.1:%d' % node.port),
                                stdout=subprocess.PIPE, text=True)
    try:
        assert follower.stdout.readline() == 'first\n'
        open(os.path.join(node.data, 'alloc', alloc, 't', 'local', 'go'), 'w').close()
        assert follower.stdout.readline() == 'second\n'
    finally:
        follower.kill()
        follower.wait()
    node.cli('job', 'stop', '-purge', 'job')
    node.finish()


def a_log_whose_alloc_goes_ends():
    node, alloc = start(task('t', 'echo first; sleep 1000'))
    stream = follow(node, '/v1/client/fs/logs/%s?task=t&type=stdout&follow=true' % alloc)
    seen = frames(stream)
    assert base64.b64decode(next(seen)['Data']) == b'first\n'
    node.cli('job', 'stop', '-purge', 'job')
    node.cli('system', 'gc')
    for _ in seen:
        pass
    node.finish()


if __name__ == '__main__':
    sys.exit(tap([
        rotation_is_followed_without_gap_or_double,
        the_end_of_a_log_and_of_a_file_is_shown,
        a_follower_is_told_what_is_written_next,
        a_log_whose_alloc_goes_ends,
    ]))
