#!/usr/bin/env python3
"""Two people without privileges on one machine: neither reads, changes, stops nor outlives anything of
the other's, through the API or around it.

There is one namespace, the default one.  Alice has it, and Bob a token that grants him another; his
tasks are run by who runs the node."""
import json
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, Refused, milliseconds, raw_exec, service, start_ticks, tap, wait_for  # noqa: E402

ALICE, BOB = 61001, 61002  # nobody else's
CONFIG = '''acl {
  enabled = true
}
client {
  artifact {
    set_environment_variables = "CAIRN_TEST_MARK"
  }
}
plugin "raw_exec" {
  config {
    enabled = true
  }
}
'''
RULES = '''namespace "%s" {
  policy       = "write"
  capabilities = ["alloc-node-exec"]
}
'''
KEEPER = ('echo of-%s > $NOMAD_SECRETS_DIR/own; echo of-%s > $NOMAD_TASK_DIR/file; echo of-%s; '
          'echo of-%s > $NOMAD_ALLOC_DIR/data/file; touch $NOMAD_TASK_DIR/up; exec sleep 1000')


def add_users():
    """Names for the two, as payloads of a namespace of mounts of its own see them."""
    names = '/tmp/cairn-two-users-%d' % os.getpid()
    with open('/etc/passwd') as users, open(names, 'w') as to:
        to.write(users.read() + ''.join('%s:x:%d:%d::/:/bin/sh\n' % (name, uid, uid) for name, uid in
                                        (('cairn-alice', ALICE), ('cairn-bob', BOB))))
    os.chmod(names, 0o644)
    return names


class TwoUsers(Node):
    def __init__(self):
        super().__init__(config=CONFIG)
        os.chmod(self.dir, 0o711)
        self.names = add_users()
        self.prefix = ['unshare', '--mount', '--propagation', 'unchanged', 'sh', '-c',
                       'mount --make-rprivate /etc 2>/dev/null; mount --bind "$0" /etc/passwd && exec "$@"', self.names]
        self.start()
        self.first = self.token = self.put('/v1/acl/bootstrap')['SecretID']
        self.tokens, self.known = {}, {}
        for name, namespace in (('alice', 'default'), ('bob', 'bob')):
            self.put('/v1/acl/policy/' + name, {'Name': name, 'Rules': RULES % namespace})
            self.tokens[name] = self.put('/v1/acl/token', {
                'Type': 'client', 'Name': name, 'Policies': [name]})['SecretID']
            self.run_as(name)

    def run_as(self, name):
        script = KEEPER % ((name,) * 4)
        job = dict(service(raw_exec('t', script, User='cairn-' + name, Env={'SECRET': 'of-' + name},
                                    KillTimeout=milliseconds(500))),
                   ID=name, Name=name)
        self.put('/v1/jobs', {'Job': job})

        def up():
            allocs = self.allocs(name)
            if not allocs or allocs[0]['ClientStatus'] != 'running':
                return None
            root = '/proc/%d/root%s/alloc/%s' % (self.process.pid, self.data, allocs[0]['ID'])
            return allocs[0]['ID'] if os.path.exists(root + '/t/local/up') else None

        alloc = wait_for('the task of ' + name, up)
        pid = wait_for('its payload', lambda: next((pid for pid in self.payloads() if self.uid(pid) == (
            ALICE if name == 'alice' else BOB)), None))
        self.known[name] = {'alloc': alloc, 'pid': pid, 'ticks': start_ticks(pid)}

    @staticmethod
    def uid(pid):
        try:
            return os.stat('/proc/%d' % pid).st_uid
        except FileNotFoundError:
            return None

    def close(self):
        super().close()
        if os.path.exists(self.names):
            os.unlink(self.names)

    def finish(self):
        self.token = self.first
        super().finish()


def outcome(node, method, path, body=None):
    try:
        return 200, node.text(method, path, body)
    except Refused as refused:
        return refused.status, refused.text


def the_api_answers_each_of_his_own_alone():
    node = TwoUsers()
    theirs, job = node.known['alice'], node.get('/v1/job/alice?namespace=default')
    evaluation = node.alloc('alice', 'g')['EvalID']
    alloc = theirs['alloc']
    command = 'command=%5B%22%2Fbin%2Ftrue%22%5D'
    tries = [('GET', path, None) for path in (
        '/v1/job/alice?namespace=default', '/v1/job/alice/allocations?namespace=default',
        '/v1/job/alice/versions?namespace=default', '/v1/job/alice/summary?namespace=default',
        '/v1/jobs?namespace=default', '/v1/allocations?namespace=default', '/v1/allocation/' + alloc,
        '/v1/evaluations?namespace=default', '/v1/evaluation/' + evaluation,
        '/v1/evaluation/%s/allocations' % evaluation, '/v1/client/allocation/%s/stats' % alloc,
        '/v1/client/fs/ls/%s?path=/' % alloc, '/v1/client/fs/cat/%s?path=t/local/file' % alloc,
        '/v1/client/fs/stat/%s?path=t/local/file' % alloc,
        '/v1/client/fs/readat/%s?path=t/local/file&offset=0&limit=9' % alloc,
        '/v1/client/fs/stream/%s?path=t/local/file&offset=0' % alloc,
        '/v1/client/fs/logs/%s?task=t&type=stdout' % alloc,
        '/v1/client/allocation/%s/exec?task=t&%s' % (alloc, command),
        '/v1/scaling/policies?namespace=default', '/v1/deployments?namespace=default',
        '/v1/nodes', '/v1/metrics', '/v1/agent/monitor', '/v1/agent/self', '/v1/client/stats',
        '/v1/acl/tokens', '/v1/acl/policy/alice')]
    tries += [('PUT', '/v1/jobs', {'Job': job}), ('PUT', '/v1/jobs?namespace=bob', {'Job': job}),
              ('PUT', '/v1/job/alice', {'Job': job}), ('PUT', '/v1/job/alice/plan', {'Job': job}),
              ('DELETE', '/v1/job/alice?namespace=default', None),
              ('DELETE', '/v1/job/alice?namespace=default&purge=true', None),
              ('PUT', '/v1/job/alice/revert?namespace=default', {'JobID': 'alice', 'JobVersion': 0}),
              ('PUT', '/v1/job/alice/scale?namespace=default', {'Count': 0, 'Target': {'Group': 'g'}}),
              ('PUT', '/v1/allocation/%s/stop' % alloc, {}),
              ('PUT', '/v1/client/allocation/%s/restart' % alloc, {}),
              ('PUT', '/v1/client/allocation/%s/signal' % alloc, {'Signal': 'SIGKILL'}),
              ('PUT', '/v1/client/allocation/%s/gc' % alloc, None), ('PUT', '/v1/system/gc', None),
              ('PUT', '/v1/node/%s/drain' % ('0' * 36), {}), ('PUT', '/v1/acl/token', {}),
              ('PUT', '/v1/acl/policy/bob', {'Name': 'bob', 'Rules': RULES % 'default'})]
    node.token = node.tokens['bob']
    for method, path, body in tries:
        for query in ('', '&namespace=bob'):
            status, text = outcome(node, method, path + (query if '?' in path else ''), body)
            asks_nobody = '/exec?' in path and status == 400 and 'WebSockets' in text
            assert asks_nobody or status in (403, 404) or \
                (query and status < 300 and alloc not in text), \
                (method, path + query, status, text[:200])
            assert 'of-alice' not in text, (method, path, text[:200])
    for path in ('/v1/jobs?namespace=*', '/v1/allocations?namespace=*', '/v1/evaluations?namespace=*',
                 '/v1/namespaces', '/v1/deployments?namespace=*', '/v1/acl/policies'):
        status, text = outcome(node, 'GET', path)
        assert 'alice' not in text and alloc not in text, (path, status, text)
    for context in ('all', 'jobs', 'allocs', 'evals'):
        for prefix in ('alice', alloc[:4], evaluation[:4], ''):
            for namespace in ('default', 'bob', '*'):
                status, text = outcome(node, 'PUT', '/v1/search?namespace=' + namespace,
                                       {'Prefix': prefix, 'Context': context})
                assert 'alice' not in text and alloc not in text and evaluation not in text, text
    node.token = node.tokens['alice']
    assert node.text('GET', '/v1/client/fs/cat/%s?path=t/local/file' % alloc) == 'of-alice\n'
    assert start_ticks(theirs['pid']) == theirs['ticks']
    node.finish()


def what_happens_is_streamed_to_whom_it_is_for():
    node = TwoUsers()
    streams = {}
    for name in ('alice', 'bob'):
        for namespace in ('*', 'default'):
            stream = socket.create_connection(('127.0.0.1', node.port))
            stream.sendall(('GET /v1/event/stream?topic=Job&topic=Allocation&namespace=%s HTTP/1.1\r\nHost: 127.0.0.1\r\n'
                            'X-Nomad-Token: %s\r\n\r\n' % (namespace, node.tokens[name])).encode())
            stream.settimeout(2)
            streams[name, namespace] = stream
    node.token = node.tokens['alice']
    node.put('/v1/client/allocation/%s/restart' % node.known['alice']['alloc'], {})
    heard = {}
    for key, stream in streams.items():
        heard[key] = b''
        try:
            while len(heard[key]) < 1 << 20:
                part = stream.recv(65536)
                if not part:
                    break
                heard[key] += part
        except TimeoutError:
            pass
        stream.close()
    alloc = node.known['alice']['alloc'].encode()
    assert alloc in heard['alice', '*'] and alloc in heard['alice', 'default']
    for namespace in ('*', 'default'):
        told = heard['bob', namespace]
        assert alloc not in told and b'"alice"' not in told and b'of-alice' not in told, told[:500]
    node.finish()


# What a process of bob's tries around the API; prints one line for each thing that it could.
SPY = r'''
import ctypes, json, os, resource, signal, socket, sys
given = json.load(sys.stdin)
os.setgroups([]); os.setresgid(*[given["uid"]] * 3); os.setresuid(*[given["uid"]] * 3)
libc = ctypes.CDLL(None, use_errno=True)
def could(what, act):
    try:
        act()
    except OSError:
        return
    print(what)
def read(path):
    with open(path, "rb") as file:
        file.read(1)
def listen(path):
    s = socket.socket(socket.AF_UNIX, given["types"].get(path, socket.SOCK_STREAM)); s.settimeout(1)
    s.connect(path); s.send(b"\0" * 16)
for path in given["secret"]:
    could("read " + path, lambda: read(path))
for path in given["directories"]:
    could("listed " + path, lambda: os.listdir(path))
    could("made a file in " + path, lambda: os.close(os.open(path + "/made", os.O_CREAT | os.O_WRONLY)))
    could("renamed " + path, lambda: os.rename(path, path + ".x"))
    could("linked into " + path, lambda: os.symlink("/etc", path + "/link"))
for pid in given["pids"]:
    for name in ("environ", "mem", "maps", "fd", "cwd", "root", "exe", "stack"):
        path = "/proc/%d/%s" % (pid, name)
        could("looked into " + path, lambda: os.readlink(path) if name in ("cwd", "root", "exe")
              else os.listdir(path) if name == "fd" else read(path))
    for number in (0, signal.SIGCONT, signal.SIGTERM, signal.SIGKILL):
        could("signalled %d" % pid, lambda: os.kill(pid, number))
    could("set limits of %d" % pid, lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (1, 1)))
    could("set nice of %d" % pid, lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    if libc.ptrace(16, pid, 0, 0) == 0:
        print("traced %d" % pid)
for path in given["sockets"]:
    could("spoke to " + path, lambda: listen(path))
for path in given["cgroups"]:
    could("moved into " + path, lambda: open(path + "/cgroup.procs", "w").write(str(os.getpid())))
    could("killed by " + path, lambda: open(path + "/cgroup.kill", "w").write("1"))
print("end")
'''


def sockets_of(node):
    """Named ones, and those without a name, of what is ours."""
    found, types = [], {}
    with open('/proc/net/unix') as table:
        for line in table.read().splitlines()[1:]:
            fields = line.split()
            if len(fields) > 7 and (node.dir in fields[7] or 'cairn' in fields[7]):
                path = fields[7].replace('@', '\0', 1) if fields[7].startswith('@') else fields[7]
                found.append(path)
                types[path] = int(fields[4], 16)
    return found, types


def nothing_is_reached_around_the_api():
    node = TwoUsers()
    theirs = node.known['alice']
    inside = '/proc/%d/root' % node.process.pid
    root = '%s/alloc/%s' % (node.data, theirs['alloc'])
    sockets, types = sockets_of(node)
    secret = [root + below for below in ('/t/secrets/own', '/t/local/file', '/alloc/data/file',
                                         '/alloc/logs/t.stdout.0')]
    for directory, _, names in os.walk(node.data):
        if not directory.startswith(os.path.join(node.data, 'alloc', node.known['bob']['alloc'])):
            secret += [os.path.join(directory, name) for name in names]
    secret += [node.config, node.output]
    for path in (node.config, node.output):
        os.chmod(path, 0o600)
    directories = [node.data, node.data + '/client', node.data + '/alloc', root, root + '/alloc',
                   root + '/t', root + '/t/local', root + '/t/secrets', root + '/alloc/data',
                   root + '/alloc/logs']
    shims = [pid for pid in node.shims() if node.uid(pid) == 0]
    assert shims and os.path.exists(inside + root), (shims, root)
    given = {'uid': BOB, 'secret': secret, 'directories': directories, 'sockets': sockets,
             'types': types, 'pids': [theirs['pid'], node.process.pid] + shims,
             'cgroups': node.cgroups(node.node_mark())}
    # As somebody who has a shell on the machine, and from inside his own task's mounts.
    done = subprocess.run([sys.executable, '-I', '-c', SPY], input=json.dumps(given),
                          capture_output=True, text=True)
    assert done.stdout.splitlines() == ['end'], (done.stdout, done.stderr)
    done = subprocess.run(['nsenter', '-t', str(node.known['bob']['pid']), '-m', '-p', sys.executable,
                           '-I', '-c', SPY], input=json.dumps(given), capture_output=True, text=True)
    assert done.stdout.splitlines() == ['end'], (done.stdout, done.stderr)
    time.sleep(0.2)
    assert start_ticks(theirs['pid']) == theirs['ticks'] and node.alive()
    node.finish()


def who_fetches_is_out_of_reach():
    """A download of alice's, and git, are no processes of bob's, not even where his task is nobody, nor of
    who downloads for him."""
    node = TwoUsers()
    stuck = socket.create_server(('127.0.0.1', 0))
    url = 'http://127.0.0.1:%d/a' % stuck.getsockname()[1]
    node.token = node.tokens['alice']
    for name, source in (('fetches', url), ('clones', 'git::' + url)):
        task = raw_exec('t', 'exec sleep 1', User='cairn-alice', Artifacts=[
            {'GetterSource': source, 'GetterHeaders': {'X-Secret': 'of-alice'} if name == 'fetches' else None,
             'RelativeDest': 'local'}])
        node.put('/v1/jobs', {'Job': dict(service(task), ID=name, Name=name)})
    peers = [stuck.accept()[0] for _ in range(2)]  # both are at it

    def fetchers():
        return [pid for pid, line in node.payloads().items()
                if line.startswith(('cairn-fetch', 'git', '/usr/lib/git')) and node.uid(pid) not in (0, None)]

    pids = wait_for('who fetches', lambda: len(fetchers()) >= 3 and fetchers())
    given = {'secret': [], 'directories': [], 'sockets': [], 'types': {}, 'pids': pids, 'cgroups': []}
    for uid in (65534, BOB):
        done = subprocess.run([sys.executable, '-I', '-c', SPY], input=json.dumps(dict(given, uid=uid)),
                              capture_output=True, text=True)
        assert done.stdout.splitlines() == ['end'], (uid, done.stdout, done.stderr)
    assert set(pids) <= set(fetchers())
    assert len({node.uid(pid) for pid in pids}) == 2, 'one download is a process of the other'
    for peer in peers + [stuck]:
        peer.close()
    node.finish()


def nobody_outlives_his_own_end():
    """What bob leaves running in sessions of its own ends with his job, and alice's goes on."""
    node = TwoUsers()
    theirs = node.known['alice']
    script = ('for i in 1 2 3; do setsid sh -c "trap \'\' TERM HUP INT; (trap \'\' TERM; sleep 1003) & '
              'sleep 1003" & done; touch $NOMAD_TASK_DIR/left; exec sleep 1002')
    job = dict(service(raw_exec('t', script, User='cairn-bob', KillTimeout=milliseconds(300))),
               ID='leaver', Name='leaver')
    node.put('/v1/jobs', {'Job': job})
    left = lambda: [pid for pid, line in node.payloads().items() if 'sleep 1003' in line]  # noqa: E731
    wait_for('what he leaves', lambda: len(left()) >= 6)
    node.call('DELETE', '/v1/job/leaver?purge=true')
    wait_for('their end', lambda: not left())
    assert start_ticks(theirs['pid']) == theirs['ticks']
    node.finish()


def who_owned_a_token_has_nothing_once_it_is_gone():
    """A token that is deleted ends what waits and follows under it."""
    node = TwoUsers()
    alloc = node.known['alice']['alloc']
    follower = socket.create_connection(('127.0.0.1', node.port))
    follower.sendall(('GET /v1/client/fs/logs/%s?task=t&type=stdout&follow=true&plain=true HTTP/1.1\r\n'
                      'Host: 127.0.0.1\r\nX-Nomad-Token: %s\r\n\r\n'
                      % (alloc, node.tokens['alice'])).encode())
    follower.settimeout(10)
    assert b'200' in follower.recv(4096)
    accessor = next(token['AccessorID'] for token in node.get('/v1/acl/tokens')
                    if token['Name'] == 'alice')
    node.call('DELETE', '/v1/acl/token/' + accessor)
    node.token = node.tokens['alice']
    assert outcome(node, 'GET', '/v1/allocation/' + alloc)[0] == 403
    follower.close()
    node.finish()


def pages_of_a_browser_reach_nothing():
    """Wrong names, foreign pages, and the content types that a form may send."""
    node = Node()
    node.start()

    def ask(method, path, headers, body=b''):
        connection = socket.create_connection(('127.0.0.1', node.port))
        lines = ['%s %s HTTP/1.1' % (method, path), 'Content-Length: %d' % len(body),
                 'Connection: close'] + headers
        connection.sendall('\r\n'.join(lines).encode() + b'\r\n\r\n' + body)
        answer = b''
        while part := connection.recv(65536):
            answer += part
        connection.close()
        return int(answer.split()[1]), answer

    job = json.dumps({'Job': service(raw_exec('t', 'touch %s/forged' % node.dir))}).encode()
    page = ['Origin: http://evil.example', 'Sec-Fetch-Site: cross-site']
    for kind in ('text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x',
                 'application/json'):
        for origin in (['Origin: http://evil.example'], ['Origin: null'], page,
                       ['Origin: http://127.0.0.1:1'], ['Origin: https://localhost']):
            status, _ = ask('POST', '/v1/jobs', ['Host: 127.0.0.1', 'Content-Type: ' + kind] + origin, job)
            assert status == 403, (kind, origin, status)
    for host in ('evil.example', '127.0.0.1.evil.example', 'localhost.evil.example:%d' % node.port,
                 'evil.example:%d' % node.port):
        for method, path in (('POST', '/v1/jobs'), ('GET', '/v1/jobs'), ('GET', '/v1/metrics'),
                             ('GET', '/v1/event/stream')):
            assert ask(method, path, ['Host: ' + host], job if method == 'POST' else b'')[0] == 403
    for headers in (['Sec-Fetch-Mode: no-cors'], ['Referer: http://evil.example/'], ['Cookie: a=b'],
                    ['User-Agent: Mozilla/5.0'], []):
        for path in ('/v1/client/gc', '/v1/client/allocation/%s/gc' % ('0' * 36)):
            assert ask('GET', path, ['Host: localhost'] + headers)[0] in (403, 405), (path, headers)
    status, answer = ask('OPTIONS', '/v1/jobs', ['Host: 127.0.0.1', 'Origin: http://evil.example',
                                                 'Access-Control-Request-Method: PUT'])
    assert status >= 400 and b'Access-Control-Allow' not in answer, answer
    status, answer = ask('GET', '/v1/jobs', ['Host: 127.0.0.1'])
    assert status == 200 and b'Access-Control-Allow' not in answer and b'nosniff' in answer
    assert node.get('/v1/jobs') == [] and not os.path.exists(node.dir + '/forged')
    node.finish()


# Exchanges a directory for a link to where only root may read, and back, as fast as it can.
SWAPPER = r'''
import ctypes, os, sys
libc = ctypes.CDLL(None)
os.chdir(os.environ["NOMAD_TASK_DIR"])
os.mkdir("d"); open("d/file", "w").write("own"); os.mkdir("d/e"); open("d/e/file", "w").write("own")
os.symlink(sys.argv[1], "link")
open("ready", "w").close()
while True:
    for _ in range(1000):
        libc.renameat2(-100, b"d", -100, b"link", 2)
'''


def links_that_a_task_swaps_lead_readers_nowhere():
    node = Node()
    victim = os.path.join(node.dir, 'victim')
    os.makedirs(victim + '/e')
    for below in ('/file', '/e/file'):
        with open(victim + below, 'w') as file:
            file.write('of root alone')
    os.chmod(victim, 0o700)
    node.start()
    node.run_job(service({'Name': 't', 'Driver': 'raw_exec', 'Config': {
        'command': sys.executable, 'args': ['-I', '-c', SWAPPER, victim]}, 'KillTimeout': 10 ** 8}))
    wait_for('the swapper', node.running)
    alloc = node.alloc('job', 'g')['ID']
    wait_for('it to be ready', lambda: 'ready' in outcome(
        node, 'GET', '/v1/client/fs/ls/%s?path=t/local' % alloc)[1])
    seen, end = {}, time.monotonic() + 4
    while time.monotonic() < end:
        for verb, path in (('cat', 't/local/d/file'), ('cat', 't/local/d/e/file'), ('ls', 't/local/d'),
                           ('readat', 't/local/d/file&offset=0&limit=99'), ('stat', 't/local/d/e/file'),
                           ('cat', 't/local/link/file'), ('ls', 't/local/link/e')):
            status, text = outcome(node, 'GET', '/v1/client/fs/%s/%s?path=%s' % (verb, alloc, path))
            assert 'of root' not in text, (verb, path, text)
            assert verb != 'stat' or status >= 400 or json.loads(text)['Size'] == 3, text
            seen[status] = seen.get(status, 0) + 1
    assert seen.get(200, 0) > 10 and len(seen) > 1, seen  # both were met
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it is two others')
        sys.exit(77)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.exit(tap([
        the_api_answers_each_of_his_own_alone,
        what_happens_is_streamed_to_whom_it_is_for,
        nothing_is_reached_around_the_api,
        who_fetches_is_out_of_reach,
        nobody_outlives_his_own_end,
        who_owned_a_token_has_nothing_once_it_is_gone,
        pages_of_a_browser_reach_nothing,
        links_that_a_task_swaps_lead_readers_nowhere,
    ]))
