#!/usr/bin/env python3
"""Requests for more than a node can have are refused with the limit, and cost nothing."""
import os
import re
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import NO_RESCHEDULE, Node, Refused, tap, wait_for  # noqa: E402

COUNT, GROUPS, TASKS = 2000, 100, 64          # each allowed by itself (fsm/limits.h)
JOB_ALLOCS, NODE_ALLOCS = 4096, 16384


def job(name, groups, count, tasks=1):
    """As small as such a request can be: all that is not said has a default."""
    parts = [{'Name': 't%d' % t, 'Driver': 'raw_exec', 'Config': {'command': '/bin/true'}}
             for t in range(tasks)]
    return {'ID': name, 'Type': 'batch', 'TaskGroups': [
        {'Name': 'g%d' % g, 'Count': count, 'Tasks': parts, 'EphemeralDisk': {'SizeMB': 100000},
         'ReschedulePolicy': NO_RESCHEDULE}
        for g in range(groups)]}


def refused(node, wanted, status, *parts):
    try:
        node.call('PUT', '/v1/jobs', {'Job': wanted}, timeout_s=30)
    except Refused as answer:
        assert answer.status == status, answer
        for part in parts:
            assert part in answer.text, '%r is not in %s' % (part, answer)
        return
    raise AssertionError('accepted')


def products_of_what_is_allowed_are_refused_by_their_sums():
    node = Node()
    node.start()
    refused(node, job('j', 34, COUNT), 400, '68000 allocs', 'a job may have 4096')
    refused(node, job('j', GROUPS, COUNT), 400, '200000 allocs', 'a job may have 4096')
    refused(node, job('j', 1, COUNT, TASKS), 400, '128000 tasks', 'a job may have 8192')
    refused(node, job('j', GROUPS + 1, 1), 400, '101 groups, there may be 100')
    refused(node, job('j', 1, COUNT + 1), 400, 'at most 2000')
    assert node.get('/v1/jobs') == [] and node.allocs() == []
    node.kill()
    node.start()
    assert node.get('/v1/jobs') == [] and node.allocs() == []
    node.finish()


def many_jobs_fill_a_node_which_answers_restarts_and_is_emptied():
    node = Node(config='client {\n  gc_max_allocs = 100000\n  cpu_total_compute = 2000000000\n'
                '  memory_total_mb = 2000000000\n  disk_total_mb = 2000000000\n}\n')
    node.start()
    # Directories cannot be made: allocs fail at once, and ended ones count like any other.
    place = os.path.join(node.data, 'alloc')
    os.rmdir(place)
    open(place, 'w').close()
    for number in range(NODE_ALLOCS // JOB_ALLOCS):
        node.call('PUT', '/v1/jobs', {'Job': job('full-%d' % number, 4, JOB_ALLOCS // 4)},
                  timeout_s=30)
    refused(node, job('more', 1, 1), 400, 'no room for 1 more allocs', '16384 of at most 16384')
    node.kill()
    os.unlink(place)
    node.start()
    refused(node, job('more', 1, 1), 400, 'no room for 1 more allocs')
    assert len(node.get('/v1/jobs')) == NODE_ALLOCS // JOB_ALLOCS

    for number in range(NODE_ALLOCS // JOB_ALLOCS):
        node.call('DELETE', '/v1/job/full-%d?purge=true' % number, timeout_s=30)
    wait_for('the allocs to be gone', lambda: node.get('/v1/jobs') == [], limit_s=120, pause_s=0.5)
    assert node.allocs() == []
    node.finish()


def anonymous_kb(pid):
    with open('/proc/%d/status' % pid) as status:
        return int(re.search(r'^RssAnon:\s+(\d+) kB', status.read(), re.M).group(1))


def follow_and_leave(node, count, begun):
    pid = node.process.pid
    followers = []
    for _ in range(count):
        followers.append(socket.create_connection(('127.0.0.1', node.port)))
        followers[-1].sendall(b'GET /v1/event/stream HTTP/1.1\r\nHost: localhost\r\n\r\n')
    for follower in followers:
        assert follower.recv(12) == b'HTTP/1.1 200'
    held = anonymous_kb(pid) - begun
    assert held > 2000, held
    for follower in followers:
        follower.close()
    wait_for('most of %d kB to be given back' % held,
             lambda: anonymous_kb(pid) - begun < held / 2)


def followers_who_leave_leave_their_memory():
    """No turn is made when they go, and caches are emptied after turns: the first time that may be
    those of the start, the second time there are none."""
    node = Node()
    node.start()
    begun = anonymous_kb(node.process.pid)
    follow_and_leave(node, 200, begun)
    follow_and_leave(node, 200, begun)
    node.finish()


if __name__ == '__main__':
    sys.exit(tap([
        products_of_what_is_allowed_are_refused_by_their_sums,
        many_jobs_fill_a_node_which_answers_restarts_and_is_emptied,
        followers_who_leave_leave_their_memory,
    ]))
