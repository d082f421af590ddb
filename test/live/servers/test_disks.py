#!/usr/bin/python3
"""An ephemeral disk that moves between machines: taken over whole or not at all, from whoever its node is and whatever
that sends; and given to whoever may have it."""
import base64
import hashlib
import http.client
import http.server
import io
import os
import stat
import sys
import tarfile
import threading
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Refused, tap, wait_for  # noqa: E402
from peer import Servers  # noqa: E402
from test_join import alloc_of, await_status, finish, joined, running, script, sleeper  # noqa: E402
from test_lent_tokens import begin  # noqa: E402

MOVING = {'EphemeralDisk': {'SizeMB': 10, 'Migrate': True, 'Sticky': True}}
OWNER = 4711  # of a file; nobody in particular


class Archive:
    """A snapshot as a node sends it."""

    def __init__(self):
        self.bytes = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.bytes, mode='w', format=tarfile.PAX_FORMAT)
        for name in ('alloc/data', 't/local'):
            self.add(name, tarfile.DIRTYPE, mode=0o777)

    def add(self, name, kind=tarfile.REGTYPE, data=b'', **fields):
        entry = tarfile.TarInfo(name)
        entry.type, entry.size, entry.uid, entry.gid = kind, len(data), OWNER, OWNER
        for field, value in fields.items():
            setattr(entry, field, value)
        self.tar.addfile(entry, io.BytesIO(data))
        return self

    def whole(self):
        self.tar.close()
        return self.bytes.getvalue()


def good():
    return (Archive().add('alloc/data/shared', data=b'kept', mode=0o640)
            .add('alloc/data/n\u00e4me', data=b'named')
            .add('alloc/data/out', tarfile.SYMTYPE, linkname='/etc/hostname')
            .add('t/local/own', data=b'x' * 200000, mode=0o6755)
            .add('t/secrets/stray', data=b'no disk').add('alloc/logs/stray', data=b'no disk'))


class Other:
    """A node that somebody else's disk is on: answers what MAKE makes of the alloc that is asked for."""

    def __init__(self, servers, make, status=200, holds=False, breaks=False):
        self.asked, self.goes_on = [], threading.Event()
        other = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):
                other.asked.append((self.path, self.headers.get('X-Nomad-Token')))
                self.send_response(status)
                self.send_header('Transfer-Encoding', 'chunked')
                self.end_headers()
                body = make(self.path.split('/')[-2])
                half = len(body) // 2
                self.chunk(body[:half])
                if holds:
                    other.goes_on.wait(60)
                self.chunk(body[half:])
                if breaks:
                    self.close_connection = True
                else:
                    self.wfile.write(b'0\r\n\r\n')

            def chunk(self, data):
                self.wfile.write(b'%x\r\n%s\r\n' % (len(data), data))
                self.wfile.flush()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # whoever asked is gone
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.id = str(uuid.uuid4())
        servers.others[self.id] = {'ID': self.id, 'Status': 'ready', 'TLSEnabled': False,
                                   'HTTPAddr': '127.0.0.1:%d' % self.server.server_port}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.goes_on.set()
        self.server.shutdown()
        self.server.server_close()


def take_over(servers, other_id, seconds=1001, **fields):
    """An alloc that has ended on another node, and the one here that is to have its disk."""
    previous = alloc_of(sleeper(999), ClientStatus='complete', DesiredStatus='stop', Group=MOVING)
    servers.add(previous, other_id)
    alloc = alloc_of(sleeper(seconds), PreviousAllocation=previous['ID'], Group=MOVING, **fields)
    servers.tokens[alloc['ID']] = 'a-token'
    servers.add(alloc)
    return previous, alloc


def directory(node, alloc):
    return os.path.join(node.data, 'alloc', alloc['ID'])


def content(node, alloc, name):
    with open(os.path.join(directory(node, alloc), name), 'rb') as file:
        return file.read()


def messages(node, alloc):
    return [event['DisplayMessage']
            for event in node.get('/v1/allocation/' + alloc['ID'])['TaskStates']['t']['Events']
            if event['Type'] == 'Task hook message']


def remains(root):
    """Of what has come and was not moved into place."""
    return [name for name in os.listdir(root) if name.startswith('.disk')]


def assert_moved(node, alloc):
    assert content(node, alloc, 'alloc/data/shared') == b'kept'
    assert content(node, alloc, 'alloc/data/n\u00e4me') == b'named'
    assert content(node, alloc, 't/local/own') == b'x' * 200000
    root = directory(node, alloc)
    shared, own = (os.lstat(os.path.join(root, name)) for name in ('alloc/data/shared', 't/local/own'))
    assert stat.S_IMODE(shared.st_mode) == 0o640 and stat.S_IMODE(own.st_mode) == 0o755, (shared, own)
    assert os.geteuid() != 0 or (shared.st_uid, shared.st_gid) == (OWNER, OWNER), shared
    assert os.readlink(os.path.join(root, 'alloc/data/out')) == '/etc/hostname'
    assert not os.path.lexists(os.path.join(root, 't/secrets/stray'))
    assert not os.path.lexists(os.path.join(root, 'alloc/logs/stray'))
    assert not remains(root), os.listdir(root)


def assert_empty(node, alloc):
    root = directory(node, alloc)
    assert os.listdir(os.path.join(root, 'alloc/data')) == []
    assert os.listdir(os.path.join(root, 't/local')) == []
    assert not remains(root), os.listdir(root)


# --- taking one over ---

def it_comes_whole_from_the_other_node():
    with Servers() as servers, Other(servers, lambda _: good().whole()) as other:
        node = joined(servers)
        previous, alloc = take_over(servers, other.id)
        node.await_pid('sleep 1001')
        assert_moved(node, alloc)
        assert other.asked == [('/v1/client/allocation/%s/snapshot' % previous['ID'], 'a-token')], other.asked
        assert messages(node, alloc) == []
        assert 'a-token' not in node.log(1 << 20)
        finish(servers, node)


def with_another(name, kind=tarfile.REGTYPE, data=b'', **fields):
    return lambda _: good().add(name, kind, data, **fields).whole()


def half_a_disk_or_a_hostile_one_is_none():
    """The alloc begins with an empty one, and says why."""
    cases = [
        ('bad response code: 403', dict(make=lambda _: b'no', status=403)),
        ('bad response code: 404', dict(make=lambda _: b'no', status=404)),
        ('transfer closed', dict(make=lambda _: good().whole(), breaks=True)),  # behind its last byte
        ('its node could not pack it: no room', dict(
            make=lambda of: good().add('NOMAD-%s-ERROR.log' % of, data=b'no room').whole())),
        ('lies outside', dict(make=with_another('../../escaped', data=b'!'))),
        ('lies outside', dict(make=with_another('/escaped', data=b'!'))),
        ('is no file', dict(make=with_another('alloc/data/node', tarfile.CHRTYPE, devmajor=1, devminor=3))),
        ('is a link that leads out', dict(make=with_another('t/local/h', tarfile.LNKTYPE, linkname='../../../x'))),
        ('cannot unpack', dict(make=lambda _: b'no tar at all' * 100)),
    ]
    with Servers() as servers:
        node = joined(servers)
        for number, (why, how) in enumerate(cases):
            with Other(servers, **how) as other:
                previous, alloc = take_over(servers, other.id, 1001 + number, name='job%d' % number)
                node.await_pid('sleep %d' % (1001 + number))
            told = messages(node, alloc)
            assert len(told) == 1 and previous['ID'][:8] in told[0] and why in told[0], (why, told)
            assert_empty(node, alloc)
        assert not os.path.exists('/escaped')
        finish(servers, node)


def nothing_is_written_through_a_link():
    with Servers() as servers:
        node = joined(servers)
        outside = os.path.join(node.dir, 'outside')
        os.mkdir(outside, 0o777)

        def make(_):
            return (good().add('alloc/data/way', tarfile.SYMTYPE, linkname=outside)
                    .add('alloc/data/way/x', data=b'!').whole())
        with Other(servers, make) as other:
            _, alloc = take_over(servers, other.id)
            node.await_pid('sleep 1001')
        assert os.listdir(outside) == [], os.listdir(outside)
        assert content(node, alloc, 'alloc/data/way/x') == b'!'  # in a directory in its place
        assert_moved(node, alloc)
        finish(servers, node)


def a_node_that_is_gone_is_not_waited_for():
    with Servers() as servers:
        node = joined(servers)
        _, alloc = take_over(servers, str(uuid.uuid4()))
        node.await_pid('sleep 1001')
        told = messages(node, alloc)
        assert len(told) == 1 and 'the servers know its node no more' in told[0], told
        assert_empty(node, alloc)
        finish(servers, node)


def a_crash_in_the_middle_begins_it_again():
    with Servers() as servers, Other(servers, lambda _: good().whole(), holds=True) as other:
        node = joined(servers)
        _, alloc = take_over(servers, other.id)
        for times in (1, 2):
            wait_for('the disk to be asked for', lambda: len(other.asked) == times)
            wait_for('it to be begun', lambda: remains(directory(node, alloc)))
            node.kill()
            wait_for('nobody to fetch any more', lambda: not fetchers(node))
            assert node.pid_of('sleep 1001') is None
            node.start()
        wait_for('it to be asked for again', lambda: len(other.asked) == 3)
        other.goes_on.set()
        node.await_pid('sleep 1001')
        assert_moved(node, alloc)
        assert messages(node, alloc) == []
        node.kill()
        node.start()  # and what has come stays
        assert_moved(node, alloc)
        assert len(other.asked) == 3, other.asked
        finish(servers, node)


def fetchers(node):
    """Processes that get or pack something for NODE."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/cmdline' % pid, 'rb') as line, open('/proc/%s/stat' % pid) as state:
                words, parent = line.read().split(b'\0'), state.read().rsplit(')', 1)[1].split()[1]
        except OSError:
            continue
        if words[0] == b'cairn-fetch' and words[1] != b'checks' and (
                not node.alive() or int(parent) in (node.process.pid, 1)):
            found.append(int(pid))
    return found


def one_that_is_stopped_gets_none():
    with Servers() as servers, Other(servers, lambda _: good().whole(), holds=True) as other:
        node = joined(servers)
        _, alloc = take_over(servers, other.id)
        wait_for('the disk to be asked for', lambda: other.asked)
        servers.stop(alloc['ID'])
        await_status(servers, alloc, 'complete')
        wait_for('it to be over', lambda: not fetchers(node) and not remains(directory(node, alloc)))
        assert node.pid_of('sleep 1001') is None
        finish(servers, node)


# --- giving one away ---

WRITES = '''cd "$NOMAD_ALLOC_DIR/data" && echo kept > shared && ln -s /etc/passwd out && mkfifo pipe && mkdir d
cd ../../t/local && echo own > own && chmod 600 own && echo no > ../secrets/no && %s exec sleep 1001'''
DEEP = 'i=0; while [ $i -lt 600 ]; do mkdir d && cd -P d; i=$((i+1)); done;'


def snapshot(node, alloc, token=None):
    node.token, kept = token, node.token
    connection = http.client.HTTPConnection('127.0.0.1', node.port, timeout=20)
    try:
        connection.request('GET', '/v1/client/allocation/%s/snapshot' % alloc['ID'],
                           headers={'X-Nomad-Token': token} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
        node.token = kept


def members(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {entry.name: (entry, entry.isreg() and tar.extractfile(entry).read()) for entry in tar}


def a_disk_is_given_when_its_alloc_has_ended():
    with Servers() as servers:
        node = joined(servers)
        alloc = alloc_of(script(WRITES % '', KillTimeout=2 * 10**9))
        running(servers, node, alloc, 'sleep 1001')
        status, text = snapshot(node, alloc)
        assert status == 409 and b'has not ended' in text, (status, text)
        servers.stop(alloc['ID'])
        await_status(servers, alloc, 'complete')
        status, data = snapshot(node, alloc)
        assert status == 200, (status, data)
        found = members(data)
        assert sorted(found) == ['alloc/data', 'alloc/data/d', 'alloc/data/out', 'alloc/data/shared', 't/local',
                                 't/local/own'], sorted(found)
        assert found['alloc/data/shared'][1] == b'kept\n' and found['t/local/own'][1] == b'own\n'
        assert found['alloc/data/out'][0].issym() and found['alloc/data/out'][0].linkname == '/etc/passwd'
        assert found['t/local/own'][0].mode == 0o600, found['t/local/own'][0].mode
        assert snapshot(node, {'ID': str(uuid.uuid4())})[0] == 404
        finish(servers, node)


def what_cannot_be_packed_is_told_at_the_end():
    with Servers() as servers:
        node = joined(servers)
        alloc = alloc_of(script(WRITES % DEEP, KillTimeout=2 * 10**9))
        running(servers, node, alloc, 'sleep 1001')
        servers.stop(alloc['ID'])
        await_status(servers, alloc, 'complete')
        status, data = snapshot(node, alloc)
        last = list(members(data).values())[-1]
        assert status == 200 and last[0].name == 'NOMAD-%s-ERROR.log' % alloc['ID'], last
        assert last[1].startswith(b'Error snapshotting: cannot look below'), last[1]
        finish(servers, node)


def with_tokens_it_is_for_who_shows_the_one_made_for_it():
    with Servers() as servers:
        book, node = begin(servers)
        alloc, other = (alloc_of(sleeper(seconds), name=name) for seconds, name in ((1001, 'one'), (1002, 'other')))
        for each, command in ((alloc, 'sleep 1001'), (other, 'sleep 1002')):
            running(servers, node, each, command)
            servers.stop(each['ID'])
            await_status(servers, each, 'complete')
        secret = servers.nodes[servers.node()]['SecretID'].encode()
        token, others = (base64.urlsafe_b64encode(
            hashlib.blake2b(each['ID'].encode(), key=secret).digest()).decode() for each in (alloc, other))
        asked = len(book.resolved)
        for shown in (None, others, token[:-4], token + 'A', 'x' * 88, secret.decode()):
            assert snapshot(node, alloc, shown)[0] == 403, shown
        assert snapshot(node, alloc, token)[0] == 200
        assert len(book.resolved) == asked, book.resolved  # it is no token that they could know
        try:
            node.token, kept = token, node.token
            node.get('/v1/client/fs/ls/%s?path=/' % alloc['ID'])
            raise AssertionError('it opens more than the disk')
        except Refused as answer:
            assert answer.status == 403, answer.status
        finally:
            node.token = kept
        finish(servers, node)


if __name__ == '__main__':
    sys.exit(tap([
        it_comes_whole_from_the_other_node,
        half_a_disk_or_a_hostile_one_is_none,
        nothing_is_written_through_a_link,
        a_node_that_is_gone_is_not_waited_for,
        a_crash_in_the_middle_begins_it_again,
        one_that_is_stopped_gets_none,
        a_disk_is_given_when_its_alloc_has_ended,
        what_cannot_be_packed_is_told_at_the_end,
        with_tokens_it_is_for_who_shows_the_one_made_for_it,
    ]))
