"""The agent of Consul, as far as a node asks it: services and checks, kept as the real one keeps
them (1.20: what is a success, what an error, what `replace-existing-checks` does).  It asks nothing
itself: the test says what a check has found.

    consul = Consul()
    node = Node(config='consul { address = "%s" }' % consul.address)
    consul.calls                 # (method, path) of what has been asked, in order
    consul.say('web', 'passing') # of all checks of services of that name
    consul.stop(); consul.start(); consul.forget()
"""
import http.server
import json
import os
import socket
import socketserver
import threading
import urllib.parse
import uuid

SELF = {'Config': {'Datacenter': 'dc9', 'NodeName': 'box', 'Version': '1.20.0', 'Revision': 'abc',
                   'Server': True},
        'DebugConfig': {'ConnectEnabled': True, 'GRPCPort': 8502, 'GRPCTLSPort': 8503, 'DNSPort': 8600},
        'Member': {'Tags': {'segment': ''}}, 'xDS': {'SupportedProxies': {'envoy': ['1.31.0']}}}


class Consul:
    def __init__(self, token=None, version='1.20.0', unix_socket=None):
        self.services, self.checks, self.calls = {}, {}, []
        self.token, self.version, self.unix_socket = token, version, unix_socket
        self.refused = set()  # names of services that are not taken
        self.issued, self.logins = {}, []  # tokens by whom they were asked for, and how
        self.login_fails = []  # (status, text) of the next logins
        self.logins_max = None  # there are tokens for so many, and then there is no leader
        self.registered_by = {}  # names of services, and the tokens with which
        self.catalog = {'dc9': {}}  # datacenters, the nearest first: who is offered where, by name and tag
        self.lock = threading.RLock()
        self.port, self.server, self.away = 0, None, False
        self.start()

    @property
    def address(self):
        return 'unix://' + self.unix_socket if self.unix_socket else '127.0.0.1:%d' % self.port

    # --- its life ---

    def start(self):
        outer = self

        class Answer(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def handle_any(self):
                if outer.away:  # a connection of before
                    self.close_connection = True
                    return
                length = int(self.headers.get('Content-Length') or 0)
                body = self.rfile.read(length)
                status, text = outer.answer(self.command, self.path, body,
                                            self.headers.get('X-Consul-Token'))
                self.send_response(status)
                self.send_header('Content-Length', str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_PUT = do_POST = handle_any

            def address_string(self):
                return 'node'

            def log_message(self, *_):
                pass

        if self.unix_socket:
            if os.path.exists(self.unix_socket):
                os.unlink(self.unix_socket)

            class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
                daemon_threads = True
            self.server = Server(self.unix_socket, Answer)
        else:
            class Server(http.server.ThreadingHTTPServer):
                def server_bind(self):  # of http.server, but for a name that nobody knows
                    self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    self.socket.bind(self.server_address)
                    self.server_name, self.server_port = 'consul', self.socket.getsockname()[1]
            self.server = Server(('127.0.0.1', self.port), Answer)
            self.port = self.server.socket.getsockname()[1]
        self.away = False
        threading.Thread(target=self.server.serve_forever, kwargs={'poll_interval': 0.02},
                         daemon=True).start()

    def stop(self):
        self.away = True
        self.server.shutdown()
        self.server.server_close()

    def forget(self):
        with self.lock:
            self.services, self.checks = {}, {}

    # --- what a test says and reads ---

    def say(self, name, status):
        with self.lock:
            for check in self.checks.values():
                if check['ServiceName'] == name:
                    check['Status'] = status

    def named(self, name):
        """The services of that name."""
        with self.lock:
            return [one for one in self.services.values() if one['Service'] == name]

    def names(self):
        with self.lock:
            return sorted(one['Service'] for one in self.services.values())

    def checks_of(self, name):
        with self.lock:
            return [one for one in self.checks.values() if one['ServiceName'] == name]

    def changes(self):
        """What has been asked to be otherwise: (what, id or name)."""
        with self.lock:
            return [call for call in self.calls if call[0] == 'PUT' and '/check/update/' not in call[1]]

    def count(self, part):
        with self.lock:
            return sum(part in call[1] for call in self.calls)

    # --- answers ---

    def answer(self, method, target, body, token):
        path, _, query = target.partition('?')
        with self.lock:
            self.calls.append((method, target))
            if path.startswith('/v1/acl/log') and method != 'POST':
                return 405, b'method %s not allowed' % method.encode()
            if path == '/v1/acl/login':
                return self.login(json.loads(body))
            if path == '/v1/acl/logout':
                return self.logout(token)
            if self.token is not None and token not in (self.token, *self.issued.values()):
                if path == '/v1/agent/services' and token is None:
                    return 200, b'{}'  # what may not be seen is filtered
                return 403, b'Permission denied' if token is None else b'ACL not found'
            if path == '/v1/acl/token/self':
                return 200, json.dumps({'SecretID': token}).encode()
            if method == 'GET':
                own = json.loads(json.dumps(SELF))
                if path.startswith('/v1/catalog/'):
                    return self.look_up(path, dict(urllib.parse.parse_qsl(query)))
                own['Config']['Version'] = self.version
                found = {'/v1/agent/self': own, '/v1/agent/services': self.services,
                         '/v1/agent/checks': self.checks}.get(path)
                return (200, json.dumps(found).encode()) if found is not None else (404, b'')
            if path == '/v1/agent/service/register':
                self.registered_by[json.loads(body)['Name']] = token
                return self.register(json.loads(body), 'replace-existing-checks' in query)
            name = urllib.parse.unquote(path.rpartition('/')[2])
            if path.startswith('/v1/agent/service/deregister/'):
                return self.deregister(name)
            if path.startswith('/v1/agent/check/update/'):
                return self.update(name, json.loads(body))
            return 404, b''

    def look_up(self, path, query):
        if path == '/v1/catalog/datacenters':
            return 200, json.dumps(list(self.catalog)).encode()
        name = urllib.parse.unquote(path.rpartition('/')[2])
        places = self.catalog[query['dc']].get((name, query['tag']), [])
        return 200, json.dumps([
            {'Node': 'box', 'Address': '192.0.2.9', 'ServiceName': name, 'ServiceTags': [query['tag']],
             'ServiceAddress': host, 'ServicePort': int(port)}
            for host, _, port in (place.rpartition(':') for place in places)]).encode()

    def login(self, asked):
        self.logins.append(asked)
        if self.login_fails:
            status, text = self.login_fails.pop(0)
            return status, text.encode()
        if len(self.issued) == self.logins_max:
            return 500, b'No cluster leader'
        token = str(uuid.uuid4())
        self.issued[asked['Meta']['requested_by']] = token
        return 200, json.dumps({'AccessorID': str(uuid.uuid4()), 'SecretID': token}).encode()

    def logout(self, token):
        for who in [who for who, one in self.issued.items() if one == token]:
            del self.issued[who]
            return 200, b''
        return 403, b'ACL not found'

    def register(self, asked, replaces):
        if asked['Name'] in self.refused:
            return 403, b'Permission denied: Missing service:write on ' + asked['Name'].encode()
        weights = asked.get('Weights') or {'Passing': 1, 'Warning': 1}
        self.services[asked['ID']] = {
            'ID': asked['ID'], 'Service': asked['Name'], 'Tags': asked.get('Tags') or [],
            'Meta': asked.get('Meta') or {}, 'Port': asked.get('Port', 0),
            'Address': asked.get('Address', ''), 'Weights': weights,
            'EnableTagOverride': asked.get('EnableTagOverride', False)}
        connect = asked.get('Connect') or {}
        if connect.get('Native'):
            self.services[asked['ID']]['Connect'] = {'Native': True}
        if 'SidecarService' in connect:
            self.register_sidecar(asked, connect['SidecarService'])
        kept = {one['CheckID'] for one in asked.get('Checks') or []}
        if replaces:
            for name in [name for name, one in self.checks.items()
                         if one['ServiceID'] == asked['ID'] and name not in kept]:
                del self.checks[name]
        for one in asked.get('Checks') or []:
            if ('Interval' in one) == ('TTL' in one):
                return 400, b'Invalid check: Interval and TTL cannot both be specified'
            before = self.checks.get(one['CheckID'])
            self.checks[one['CheckID']] = {
                'CheckID': one['CheckID'], 'Name': one['Name'], 'ServiceID': asked['ID'],
                'ServiceName': asked['Name'], 'Notes': one.get('Notes', ''),
                'Status': before['Status'] if before else one.get('Status', 'critical'),
                'Output': before['Output'] if before else '', 'Asked': one}
        return 200, b''

    def register_sidecar(self, asked, sidecar):
        """What it is not told it has from its service."""
        proxy = json.loads(json.dumps(sidecar['Proxy']))
        for upstream in proxy['Upstreams']:
            upstream.setdefault('DestinationType', 'service')
        self.services[asked['ID'] + '-sidecar-proxy'] = {
            'Kind': 'connect-proxy', 'ID': asked['ID'] + '-sidecar-proxy',
            'Service': asked['Name'] + '-sidecar-proxy', 'Port': sidecar['Port'],
            'Address': sidecar['Address'], 'Tags': sidecar.get('Tags') or asked.get('Tags') or [],
            'Meta': sidecar.get('Meta') or asked.get('Meta') or {},
            'Proxy': {'DestinationServiceID': asked['ID'], 'LocalServiceAddress': '127.0.0.1', **proxy}}

    def deregister(self, name):
        self.services.pop(name + '-sidecar-proxy', None)
        if self.services.pop(name, None) is None:
            return 404, b'Unknown service ID "%s". Ensure that the service ID is passed.' % name.encode()
        for check in [check for check, one in self.checks.items() if one['ServiceID'] == name]:
            del self.checks[check]
        return 200, b''

    def update(self, name, asked):
        check = self.checks.get(name)
        if check is None or 'TTL' not in check['Asked']:
            return 404, b'Unknown check ID'
        check['Status'], check['Output'] = asked['Status'], asked['Output']
        return 200, b''
