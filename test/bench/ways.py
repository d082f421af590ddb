"""Ways in, measured: logs that are followed, commands in tasks."""
import json
import os
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.parse

from lib import Node, service, wait_for

TICKS = os.sysconf('SC_CLK_TCK')
FOLLOWERS, LINES, SESSIONS, IDLE_S, READERS, READS_S = 1000, 50, 50, 20, 4, 5


def connect(node, target, more=''):
    connection = socket.create_connection(('127.0.0.1', node.port))
    connection.sendall(('GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n' % (target, more)).encode())
    return connection


def cpu_s(pid):
    with open('/proc/%d/stat' % pid) as stat:
        fields = stat.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def first_byte_ms(node, alloc, fifo):
    """From the write of a line to its coming, at a follower who waits; the median."""
    follower = connect(node, '/v1/client/fs/logs/%s?task=t&type=stdout&follow=true&plain=true' % alloc)
    follower.recv(4096)
    took = []
    with open(fifo, 'w', buffering=1) as lines:
        for number in range(LINES):
            time.sleep(0.05)  # it is idle again
            begun = time.monotonic()
            lines.write('line %d\n' % number)
            while b'line %d' % number not in follower.recv(4096):
                pass
            took.append((time.monotonic() - begun) * 1000)
    follower.close()
    return statistics.median(took)


def idle_percent(node, alloc):
    followers = [connect(node, '/v1/client/fs/logs/%s?task=t&type=stdout&follow=true' % alloc)
                 for _ in range(FOLLOWERS)]
    time.sleep(3)
    before = cpu_s(node.process.pid)
    time.sleep(IDLE_S)
    used = cpu_s(node.process.pid) - before
    for follower in followers:
        follower.close()
    return used / IDLE_S * 100


# Asks for sys.argv[2] again and again over one connection, and prints how many answers came whole.
READER = """
import socket, sys, time
connection = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
ask = b'GET %s HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n' % sys.argv[2].encode()
end, count = time.monotonic() + float(sys.argv[3]), 0
while time.monotonic() < end:
    connection.sendall(ask)
    head, found, body = b'', b'', b''
    while not found:
        head, found, body = (head + connection.recv(65536)).partition(b'\\r\\n\\r\\n')
    length = int(head.lower().partition(b'content-length: ')[2].split(None, 1)[0])
    left = length - len(body)
    while left > 0:
        left -= len(connection.recv(65536))
    count += 1
print(count)
"""


def reads_per_cpu_s(node, target):
    """TARGET read again and again over kept connections, in a second of the daemon's time."""
    before = cpu_s(node.process.pid)
    readers = [subprocess.Popen(['python3', '-c', READER, str(node.port), target, str(READS_S)],
                                stdout=subprocess.PIPE, text=True) for _ in range(READERS)]
    count = sum(int(reader.communicate()[0]) for reader in readers)
    return count / (cpu_s(node.process.pid) - before)


def session_ms(node, alloc):
    query = urllib.parse.urlencode({'task': 'e', 'command': json.dumps(['/bin/true'])})
    begun = time.monotonic()
    session = connect(node, '/v1/client/allocation/%s/exec?%s' % (alloc, query),
                      'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n'
                      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n')
    told = b''
    while b'exit_code' not in told:
        told += session.recv(4096)
    took = (time.monotonic() - begun) * 1000
    session.close()
    return took


def bare_ms(pid):
    begun = time.monotonic()
    subprocess.run(['nsenter', '-t', str(pid), '-m', '-p', '-i', '/bin/true'], check=True)
    return (time.monotonic() - begun) * 1000


def ways_rows(build):
    with tempfile.TemporaryDirectory() as place:
        fifo = os.path.join(place, 'fifo')
        os.mkfifo(fifo)
        os.chmod(place, 0o755)
        node = Node(build, 'plugin "raw_exec" {\n  config {\n    enabled = true\n  }\n}\n')
        node.start()
        lines = {'Name': 't', 'Driver': 'raw_exec', 'KillTimeout': 10 ** 8, 'Config': {
            'command': '/bin/sh', 'args': ['-c', 'cat %s; exec sleep 10000' % fifo]}}
        still = {'Name': 'e', 'Driver': 'exec', 'KillTimeout': 10 ** 8, 'Config': {
            'command': '/bin/sleep', 'args': ['10001']}}
        node.run_job(service(lines, still))
        wait_for('the tasks to run', lambda: node.running('t') and node.running('e'), 60)
        alloc = node.alloc('job', 'g')['ID']
        byte = first_byte_ms(node, alloc, fifo)
        idle = idle_percent(node, alloc)
        pid = node.await_pid('/bin/sleep 10001')
        reads = [reads_per_cpu_s(node, target) for target in (
            '/v1/status/leader', '/v1/job/job', '/v1/allocation/' + alloc)]
        ours = statistics.median(session_ms(node, alloc) for _ in range(SESSIONS))
        bare = statistics.median(bare_ms(pid) for _ in range(SESSIONS))
        node.finish()
    return [('first byte of a followed log', '%.1f ms' % byte, '', '', '5 ms'),
            ('idle CPU, 1,000 followers', '%.2f %%' % idle, '', '', '0.5 %'),
            ('reads of a job, one core', '%.0f /s' % reads[1], 'who leads %.0f /s' % reads[0],
             '%.2f x' % (reads[0] / reads[1]), '20000 /s'),
            ('reads of an alloc, one core', '%.0f /s' % reads[2], 'who leads %.0f /s' % reads[0],
             '%.2f x' % (reads[0] / reads[2]), '20000 /s'),
            ('alloc exec of true', '%.1f ms' % ours, 'nsenter and exec %.1f ms' % bare,
             '%.2f x' % (ours / bare), '3 x')]
