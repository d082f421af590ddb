"""Servers of a cluster, as far as a node sees them: what it is assigned, what it tells, what it is
asked.  They speak Nomad's RPC (yamux, msgpack) over real sockets, share one state that a test sets
and reads, and misbehave on demand.

    with Servers() as servers:
        node = Node(config='... %s ...' % servers.addresses[0])
        servers.add(alloc)                      # for that node, or the only one
        wait_for('it runs', lambda: servers.allocs[ID].get('ClientStatus') == 'running')
        servers.call('ClientStats.Stats', {})   # the node is called
        servers.refuse('Node.UpdateStatus', 'No cluster leader', times=3)

Values are those of io/rpc.h: {"$time": nanoseconds} for times, bytes for what is no text.  Needs
python3-msgpack of Debian, thus /usr/bin/python3.
"""
import contextlib
import copy
import itertools
import os
import re
import socket
import ssl
import struct
import sys
import threading
import time

try:
    import msgpack
except ImportError:
    print('1..0 # skipped: no python3-msgpack for this interpreter; /usr/bin/python3 and that package')
    sys.exit(77)

LIMIT_S = 30 * float(os.environ.get('CAIRN_PATIENCE', '1'))  # for a node to answer
WINDOW = 256 << 10
DATA, UPDATE, PING, GO_AWAY = range(4)
SYN, ACK, FIN, RST = 1, 2, 4, 8
ZERO_YEAR_S = 62135596800  # from the year 1 to 1970
SIGNED = 'eyJhbGciOiJSUzI1NiJ9'
# what a node tells of an alloc, always all of it
TOLD = ('ClientStatus', 'ClientDescription', 'TaskStates', 'NetworkStatus', 'DeploymentStatus')


class Refused(Exception):
    """What the other side says instead of an answer."""


class Gone(Exception):
    """The stream or the session has ended."""


# --- values ---

def pack(value):
    """VALUE in the dialect of Go: raw for text and bytes."""
    def prepare(value):
        if isinstance(value, dict) and set(value) == {'$time'}:
            seconds, ns = divmod(value['$time'] or -ZERO_YEAR_S * 10**9, 10**9)
            return struct.pack('>BqiH', 1, seconds + ZERO_YEAR_S, ns, 0xffff)
        if isinstance(value, dict):
            return {name: prepare(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [prepare(item) for item in value]
        return value
    return msgpack.packb(prepare(value), use_bin_type=False)


def plain(value):
    if isinstance(value, dict):
        return {plain(name): plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        if len(value) == 15 and value[0] == 1:
            _, seconds, ns, _ = struct.unpack('>BqiH', value)
            return {'$time': (seconds - ZERO_YEAR_S) * 10**9 + ns if seconds or ns else None}
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode()
    return value


# --- yamux, the side that was connected to ---

class Stream:
    """One stream; blocking, each of its calls for one thread at a time."""

    def __init__(self, session, number):
        self.session, self.number = session, number
        self.came, self.window, self.taken = bytearray(), WINDOW, 0
        self.ended, self.closed = False, False
        self.limit_s = None  # for something to come
        self.unpacker = msgpack.Unpacker(raw=True, strict_map_key=False, max_buffer_size=64 << 20)

    def recv(self):
        """Some bytes; b'' at the end."""
        with self.session.changed:
            if not self.session.changed.wait_for(
                    lambda: self.came or self.ended or self.session.over, self.limit_s):
                raise AssertionError('nothing comes from the node in %g s' % self.limit_s)
            got, self.came = bytes(self.came), bytearray()
        self.taken += len(got)
        if self.taken >= WINDOW // 2:
            self.session.frame(UPDATE, 0, self.number, self.taken)
            self.taken = 0
        return got

    def read(self):
        """The next object; Gone at the end."""
        while True:
            for value in self.unpacker:
                return plain(value)
            got = self.recv()
            if not got:
                raise Gone('the stream has ended')
            self.unpacker.feed(got)

    def send(self, data):
        while data:
            with self.session.changed:
                self.session.changed.wait_for(
                    lambda: self.window or self.ended or self.session.over)
                if self.ended or self.session.over:
                    raise Gone('nobody takes it')
                part, data = data[:self.window], data[self.window:]
                self.window -= len(part)
            self.session.frame(DATA, 0, self.number, len(part), part)

    def write(self, *values):
        self.send(b''.join(pack(value) for value in values))

    def close(self):
        with self.session.changed:
            if self.closed:
                return
            self.closed = True
        with contextlib.suppress(Gone):
            self.session.frame(UPDATE, FIN, self.number, 0)
        self.session.forget(self)

    def reset(self):
        with contextlib.suppress(Gone):
            self.session.frame(UPDATE, RST, self.number, 0)
        self.ended = self.closed = True
        self.session.forget(self)


class Session:
    """A node's connection to one server."""

    def __init__(self, server, link):
        self.server, self.link = server, link
        self.node = None  # the id of who speaks, once known
        self.over = False
        self.changed, self.sends = threading.Condition(), threading.Lock()
        self.streams, self.numbers = {}, itertools.count(2, 2)
        self.pings = []  # that were answered
        self.answers_pings = True

    def frame(self, kind, flags, number, length, data=b''):
        try:
            with self.sends:
                self.link.sendall(struct.pack('>BBHII', 0, kind, flags, number, length) + data)
        except (OSError, ValueError):
            raise Gone('the session has ended') from None

    def open(self, head):
        stream = Stream(self, next(self.numbers))
        with self.changed:
            self.streams[stream.number] = stream
        self.frame(UPDATE, SYN, stream.number, 0)
        stream.send(head)
        return stream

    def forget(self, stream):
        with self.changed:
            if stream.closed and stream.ended:
                self.streams.pop(stream.number, None)

    def ping(self):
        self.frame(PING, SYN, 0, 7)

    def cut(self):
        """Ends it without a word."""
        with contextlib.suppress(OSError):
            self.link.shutdown(socket.SHUT_RDWR)

    def exactly(self, length):
        got = bytearray()
        while len(got) < length:
            part = self.link.recv(length - len(got))
            if not part:
                raise Gone('the node has closed')
            got += part
        return bytes(got)

    def run(self):
        try:
            if self.exactly(1) != b'\x06':
                return
            while True:
                self.take(*struct.unpack('>BBHII', self.exactly(12)))
        except (OSError, Gone):
            pass
        except AssertionError as wrong:
            self.server.all.wrong.append(repr(wrong))
        finally:
            with self.changed:
                self.over = True
                self.changed.notify_all()
            self.link.close()

    def take(self, version, kind, flags, number, length):
        assert version == 0 and kind <= GO_AWAY, (version, kind)
        if kind == PING:
            if flags & SYN and self.answers_pings:
                self.frame(PING, ACK, 0, length)
            self.pings += [length] * bool(flags & ACK)
            return
        if kind == GO_AWAY:
            raise Gone('the node goes away: %d' % length)
        data = self.exactly(length) if kind == DATA else b''
        if flags & SYN:
            assert number % 2 and number not in self.streams, number
            self.streams[number] = Stream(self, number)
            self.frame(UPDATE, ACK, number, 0)
            threading.Thread(target=self.server.serve, args=(self, self.streams[number]),
                             daemon=True).start()
        with self.changed:
            stream = self.streams.get(number)
            if stream:
                stream.came += data
                assert len(stream.came) <= WINDOW, 'the node overruns a window'
                stream.window += length if kind == UPDATE else 0
                assert not (stream.ended and flags & FIN), 'the node sends FIN twice'
                stream.ended |= bool(flags & (FIN | RST))
                stream.closed |= bool(flags & RST)
            self.changed.notify_all()
        if stream and flags & FIN:
            self.forget(stream)


# --- servers ---

class Server:
    """One of them: a port, and the sessions that came to it."""

    def __init__(self, all_servers, context):
        self.all, self.context = all_servers, context
        self.sessions, self.accepts = [], 0
        self.listens = None
        self.port = 0
        self.resume()

    @property
    def address(self):
        return '127.0.0.1:%d' % self.port

    def resume(self):
        """Listens, again on the same port."""
        self.listens = socket.create_server(('127.0.0.1', self.port), backlog=16)
        self.port = self.listens.getsockname()[1]
        threading.Thread(target=self.accept, args=(self.listens,), daemon=True).start()

    def pause(self):
        """Nobody can connect any more, and who has is cut."""
        with contextlib.suppress(OSError):
            self.listens.shutdown(socket.SHUT_RDWR)
        self.listens.close()
        self.cut()

    def cut(self):
        for session in self.sessions:
            session.cut()

    def accept(self, listens):
        while True:
            try:
                link, _ = listens.accept()
            except OSError:
                return
            threading.Thread(target=self.welcome, args=(link,), daemon=True).start()

    def welcome(self, link):
        self.accepts += 1
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.context:
            try:
                assert link.recv(1) == b'\x04', 'the node speaks no TLS'
                link = self.context.wrap_socket(link, server_side=True)
            except (AssertionError, OSError):
                link.close()
                return
        session = Session(self, link)
        self.sessions.append(session)
        session.run()

    def serve(self, session, stream):
        """Calls of the node, one after the other on a stream."""
        with contextlib.suppress(Gone):
            head = stream.recv()
            if head[:1] not in (b'', b'\x01'):
                self.all.wrong.append('a stream for %r' % head[:1])
            stream.unpacker.feed(head[1:])
            while True:
                header = stream.read()
                args = stream.read()
                method = header['ServiceMethod']
                try:
                    error, reply = '', self.all.answer(session, method, args)
                except Refused as refused:
                    error, reply = str(refused), {}
                stream.write(dict(header, Error=error), reply)
        with contextlib.suppress(Gone):
            stream.close()


class Servers:
    """COUNT servers of one cluster; TLS: (ca, certificate, key), paths of PEM files."""

    def __init__(self, count=1, tls=None, ttl_s=10, datacenter='dc1'):
        self.changed = threading.Condition()
        self.index = self.allocs_index = 10
        self.nodes = {}      # id: what it registered, with Status
        self.allocs = {}     # id: as a server has it
        self.tokens = {}     # id of an alloc: by which it gets the disk of the one before it
        self.others = {}     # id: a node that speaks to nobody, as servers have it
        self.events = []     # of nodes
        self.variables = {}  # (namespace, path): as a server has it
        self.vars_index = 1
        self.services = []   # that are registered, by whomever
        self.services_index = 1
        self.readers = {}    # token: the paths that it may read begin so
        self.wrong = []      # what nodes have done that breaks the rules of the wire
        self.sent = []       # (method, args) in order of arrival, of all but pings
        self.signed = 0      # tokens: SIGNED, the identity and the number of each
        self.faults = {}     # method: list of what happens to the next calls of it
        self.handlers = {}   # method: function of args that gives a reply, or raises Refused
        self.ttl_s, self.datacenter = ttl_s, datacenter
        context = None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_verify_locations(tls[0])
            context.load_cert_chain(tls[1], tls[2])
            context.verify_mode = ssl.CERT_REQUIRED
        self.servers = [Server(self, context) for _ in range(count)]
        self.leader = self.servers[0]  # None: there is none

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for server in self.servers:
            server.pause()
        assert kind or not self.wrong, self.wrong

    @property
    def addresses(self):
        return [server.address for server in self.servers]

    # what a test sets

    def node(self, node_id=None):
        """The id of the only node, unless one is named."""
        if node_id is None:
            assert len(self.nodes) == 1, 'there are %d nodes' % len(self.nodes)
            node_id, = self.nodes
        return node_id

    def change(self):
        """Every change has an index and wakes who waits for one; to be held: self.changed."""
        self.index += 1
        self.changed.notify_all()
        return self.index

    def add(self, alloc, node_id=None):
        """Assigns ALLOC (fields of Nomad's Allocation), new or instead of the one with that id."""
        with self.changed:
            index = self.change()
            kept = self.allocs.get(alloc['ID'], {'CreateIndex': index})
            self.allocs[alloc['ID']] = dict(copy.deepcopy(alloc), NodeID=self.node(node_id),
                                            CreateIndex=kept['CreateIndex'], ModifyIndex=index,
                                            AllocModifyIndex=index)
            self.allocs_index = index

    def replace(self, alloc_id, **fields):
        """Changes FIELDS as a server does: the node has to ask for it again."""
        self.add(dict(self.allocs[alloc_id], **fields), self.allocs[alloc_id]['NodeID'])

    def hear(self, alloc_id, status):
        """Of an alloc of a node that is none: its client says what has become of it."""
        with self.changed:
            self.allocs[alloc_id].update(ClientStatus=status, ModifyIndex=self.change())

    def stop(self, alloc_id):
        self.replace(alloc_id, DesiredStatus='stop')

    def forget(self, alloc_id):
        """As garbage collection does: it is in no answer any more."""
        with self.changed:
            del self.allocs[alloc_id]
            self.allocs_index = self.change()

    def set_variable(self, path, items, namespace='default'):
        """ITEMS None: it is deleted."""
        with self.changed:
            self.vars_index = self.change()
            if items is None:
                del self.variables[namespace, path]
                return
            self.variables[namespace, path] = {
                'Namespace': namespace, 'Path': path, 'Items': items, 'Lock': None, 'CreateIndex': 1,
                'CreateTime': 1665770712341000000, 'ModifyIndex': self.vars_index,
                'ModifyTime': 1665770712341000000}

    def set_services(self, services):
        with self.changed:
            self.services_index, self.services = self.change(), services

    def set_status(self, status, node_id=None):
        """What the servers believe: 'down' as after missed heartbeats."""
        with self.changed:
            self.nodes[self.node(node_id)]['Status'] = status
            self.change()

    def forget_node(self, node_id=None):
        with self.changed:
            del self.nodes[self.node(node_id)]
            self.change()

    # how they misbehave: the next TIMES calls of METHOD, None: all until mend()

    def fault(self, method, act, times=1):
        self.faults[method] = [act] * times if times else itertools.repeat(act)

    def mend(self, method):
        self.faults.pop(method, None)

    def refuse(self, method, text, times=1):
        def act(_):
            raise Refused(text)
        self.fault(method, act, times)

    def cut(self, method, times=1):
        """The connection ends instead of an answer, and what was asked is not done."""
        def act(session):
            session.cut()
            raise Gone('as the test wants')
        self.fault(method, act, times)

    def hang(self, method, times=1):
        """No answer ever."""
        def act(session):
            with session.changed:
                session.changed.wait_for(lambda: session.over)
            raise Gone('as the test wants')
        self.fault(method, act, times)

    def delay(self, method, seconds, times=1):
        """The answer comes late, of what is true then."""
        self.fault(method, lambda _: time.sleep(seconds), times)

    # what a test reads

    def calls(self, method):
        """The arguments of all calls of METHOD so far."""
        return [args for name, args in list(self.sent) if name == method]

    def session(self, node_id=None):
        """The newest of the node that is up, or None."""
        node_id = self.node(node_id)
        found = [session for server in self.servers for session in server.sessions
                 if session.node == node_id and not session.over]
        return found[-1] if found else None

    # the node is called

    def call(self, method, args, node_id=None):
        """The answer of the node; Refused, Gone."""
        session = self.session(node_id)
        if session is None:
            raise Gone('no session with the node')
        stream = session.open(b'\x01')
        stream.limit_s = LIMIT_S
        try:
            stream.write({'ServiceMethod': method, 'Seq': 1}, args)
            header, reply = stream.read(), stream.read()
        finally:
            stream.close()
        assert header['ServiceMethod'] == method and header['Seq'] == 1, header
        if header['Error']:
            raise Refused(header['Error'])
        return reply

    def stream(self, method, args, node_id=None):
        """An open streaming call, whose read() gives what the node sends until Gone; Refused."""
        session = self.session(node_id)
        if session is None:
            raise Gone('no session with the node')
        stream = session.open(b'\x05')
        stream.limit_s = LIMIT_S
        stream.write({'Method': method})
        error = stream.read()['Error']
        if error:
            stream.close()
            raise Refused(error)
        stream.write(args)
        return stream

    # calls of the node

    def answer(self, session, method, args):
        if method != 'Status.Ping':
            self.sent.append((method, args))
        act = next(iter(self.faults.get(method, [])), None)
        if isinstance(self.faults.get(method), list) and self.faults[method]:
            self.faults[method].pop(0)
        if act:
            act(session)
        if method in self.handlers:
            return self.handlers[method](args)
        own = getattr(self, 'on_' + method.replace('.', '_'), None)
        if own is None:
            raise Refused("rpc: can't find method " + method)
        if not method.startswith('Status.') and not args.get('Region'):
            raise Refused('missing region for target RPC')
        return own(session, args)

    def on_Status_Ping(self, _session, _args):
        return {}

    def on_Status_Peers(self, _session, _args):
        return self.addresses

    def on_Status_Leader(self, _session, _args):
        return self.leader.address if self.leader else ''

    def known(self, args, node_id):
        """The node that NODE_ID names, if who calls may speak for it."""
        node = self.nodes.get(node_id)
        if node is None or args.get('AuthToken') != node['SecretID']:
            raise Refused('Permission denied')
        return node

    def writes(self):
        if self.leader is None:
            raise Refused('No cluster leader')

    def about_node(self, index):
        return {'HeartbeatTTL': int(self.ttl_s * 10**9), 'EvalIDs': None, 'EvalCreateIndex': 0,
                'NodeModifyIndex': index, 'Features': 0,
                'LeaderRPCAddr': self.leader.address if self.leader else '',
                'NumNodes': len(self.nodes), 'SchedulingEligibility': 'eligible',
                'Servers': [{'RPCAdvertiseAddr': address, 'RPCMajorVersion': 1,
                             'RPCMinorVersion': 1, 'Datacenter': self.datacenter}
                            for address in self.addresses],
                'SignedIdentity': None, 'Index': index, 'LastContact': 0, 'KnownLeader': False,
                'NextToken': ''}

    def on_Node_Register(self, session, args):
        self.writes()
        node = args['Node']
        for field in ('ID', 'Datacenter', 'Name', 'Attributes', 'SecretID', 'NodeResources'):
            if not node.get(field):
                raise Refused('missing %s for client registration' % field)
        with self.changed:
            known = self.nodes.get(node['ID'])
            if known and known['SecretID'] != node['SecretID']:
                raise Refused('node secret ID does not match. Not registering node.')
            if args.get('AuthToken') and not (known and known['SecretID'] == args['AuthToken']):
                raise Refused('Permission denied')
            status = known['Status'] if known else node.get('Status') or 'initializing'
            self.nodes[node['ID']] = dict(node, Status=status)
            session.node = node['ID']
            return self.about_node(self.change())

    def on_Node_UpdateStatus(self, session, args):
        self.writes()
        with self.changed:
            node = self.nodes.get(args['NodeID'])
            if node is None:
                raise Refused('node not found')
            self.known(args, args['NodeID'])
            if args['Status'] not in ('initializing', 'ready', 'down'):
                raise Refused('invalid status for node')
            session.node = args['NodeID']
            changes = node['Status'] != args['Status']
            node['Status'] = args['Status']
            return self.about_node(self.change() if changes else 0)

    def wait(self, args, index_of):
        """A blocking query: until INDEX_OF() is larger than asked for, or time is over."""
        asked = args.get('MinQueryIndex') or 0
        limit_s = (args.get('MaxQueryTime') or 300 * 10**9) / 10**9
        if asked:
            self.changed.wait_for(lambda: index_of() > asked, timeout=limit_s)

    def query_of(self, index):
        return {'Index': index, 'LastContact': 0, 'KnownLeader': self.leader is not None,
                'NextToken': ''}

    def on_Node_GetClientAllocs(self, session, args):
        with self.changed:
            self.known(args, args['NodeID'])
            session.node = args['NodeID']
            self.wait(args, lambda: self.allocs_index)
            mine = [alloc for alloc in self.allocs.values() if alloc['NodeID'] == args['NodeID']]
            return dict(self.query_of(self.allocs_index), MigrateTokens=dict(self.tokens),
                        Allocs={alloc['ID']: alloc['AllocModifyIndex'] for alloc in mine})

    def on_Alloc_GetAllocs(self, _session, args):
        def wanted():
            return [self.allocs[name] for name in args['AllocIDs'] if name in self.allocs]

        def index():
            return max([alloc['AllocModifyIndex'] for alloc in wanted()], default=0)
        with self.changed:
            if not any(args.get('AuthToken') == node['SecretID'] for node in self.nodes.values()):
                raise Refused('Permission denied')
            self.wait(args, index)
            return dict(self.query_of(index()), Allocs=copy.deepcopy(wanted()), SignedIdentities=[])

    def on_Alloc_SignIdentities(self, _session, args):
        with self.changed:
            if not any(args.get('AuthToken') == node['SecretID'] for node in self.nodes.values()):
                raise Refused('Permission denied')
            if not args.get('Identities'):
                raise Refused('no identities requested')
            signed, rejected = [], []
            for request in args['Identities']:
                identity, reason = self.identity_of(request)
                if reason:
                    rejected.append(dict(request, Reason=reason))
                    continue
                self.signed += 1
                ttl = identity.get('TTL') or 0
                name = re.sub('[^A-Za-z0-9_-]', '_', identity['Name'])  # as a token may have it
                signed.append(dict(request, JWT='%s.%s.%d' % (SIGNED, name, self.signed),
                                   Expiration={'$time': time.time_ns() + ttl if ttl else None}))
            return dict(self.query_of(self.index), SignedIdentities=signed, Rejections=rejected)

    def identity_of(self, request):
        """That of a task or a service which is asked for, and why it cannot be signed."""
        alloc = self.allocs.get(request['AllocID'])
        if alloc is None:
            return None, 'allocation not found'
        group = alloc['Job']['TaskGroups'][0]
        if request['WorkloadType'] == 1:
            services = [service for each in [group, *group['Tasks']]
                        for service in each.get('Services') or []
                        if service['Name'] == request['WorkloadIdentifier']]
            found = [service['Identity'] for service in services if service.get('Identity')
                     and service['Identity']['Name'] == request['IdentityName']]
            return (found[0], None) if found else (None, 'identity not found')
        tasks = [task for task in group['Tasks']
                 if task['Name'] == request['WorkloadIdentifier']]
        if not tasks:
            return None, 'task not found'
        found = [identity for identity in tasks[0].get('Identities') or []
                 if identity['Name'] == request['IdentityName']]
        return (found[0], None) if found else (None, 'identity not found')

    def on_Alloc_GetAlloc(self, _session, args):
        def index():
            return self.allocs.get(args['AllocID'], {}).get('ModifyIndex', self.allocs_index)
        with self.changed:
            if not any(args.get('AuthToken') == node['SecretID'] for node in self.nodes.values()):
                raise Refused('Permission denied')
            self.wait(args, index)
            return dict(self.query_of(index()),
                        Alloc=copy.deepcopy(self.allocs.get(args['AllocID'])))

    def reads(self, args, path):
        """Whose token it is may read what is at PATH."""
        begin = self.readers.get(args.get('AuthToken'))
        return begin is not None and path.startswith(begin)

    def on_Variables_Read(self, _session, args):
        key = args['Namespace'], args['Path']

        def index():
            return self.variables.get(key, {}).get('ModifyIndex', self.vars_index)
        with self.changed:
            if not self.reads(args, args['Path']):
                raise Refused('Permission denied')
            self.wait(args, index)
            return dict(self.query_of(index()), Data=copy.deepcopy(self.variables.get(key)))

    def on_Variables_List(self, _session, args):
        with self.changed:
            self.wait(args, lambda: self.vars_index)
            found = [{name: value for name, value in variable.items() if name != 'Items'}
                     for (namespace, path), variable in sorted(self.variables.items())
                     if namespace == args['Namespace'] and path.startswith(args.get('Prefix') or '')
                     and self.reads(args, path)]
            return dict(self.query_of(self.vars_index), Data=found)

    def on_ServiceRegistration_GetService(self, _session, args):
        with self.changed:
            if args.get('AuthToken') not in self.readers:
                raise Refused('Permission denied')
            self.wait(args, lambda: self.services_index)
            return dict(self.query_of(self.services_index), Services=[
                service for service in self.services
                if service['ServiceName'] == args['ServiceName']])

    def on_ServiceRegistration_List(self, _session, args):
        with self.changed:
            if args.get('AuthToken') not in self.readers:
                raise Refused('Permission denied')
            self.wait(args, lambda: self.services_index)
            names = {service['ServiceName']: service['Tags'] for service in self.services}
            stubs = [{'ServiceName': name, 'Tags': tags} for name, tags in names.items()]
            return dict(self.query_of(self.services_index),
                        Services=[{'Namespace': args['Namespace'], 'Services': stubs}] if stubs else [])

    def on_Node_GetNode(self, _session, args):
        with self.changed:
            if not any(args.get('AuthToken') == node['SecretID'] for node in self.nodes.values()):
                raise Refused('Permission denied')
            node = self.nodes.get(args['NodeID']) or self.others.get(args['NodeID'])
            return dict(self.query_of(self.index), Node=copy.deepcopy(node))

    def on_Node_UpdateAlloc(self, _session, args):
        self.writes()
        if not args.get('Alloc'):
            raise Refused('must update at least one allocation')
        with self.changed:
            node = self.known(args, args['Alloc'][0]['NodeID'])
            if node['Status'] in ('down', 'disconnected'):
                raise Refused('node %s is not allowed to update allocs while in status %s' %
                              (node['ID'], node['Status']))
            self.allocs_index = self.change()
            for update in args['Alloc']:
                alloc = self.allocs.get(update['ID'])
                if alloc is not None:
                    alloc.update({name: update.get(name) for name in TOLD},
                                 ModifyIndex=self.index)
            return {'Index': self.index}

    def on_Node_EmitEvents(self, _session, args):
        self.writes()
        with self.changed:
            for node_id, events in args['NodeEvents'].items():
                self.known(args, node_id)
                self.events += events
            return {'Index': self.change()}
