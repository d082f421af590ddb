"""A Docker Engine for tests: as much of its API as cairn asks for, on a UNIX socket, and what real ones
do at bad moments.  Containers are pretended, but for one process of each, which gives them a pid and is
in the network that they are in, and for what shares a network, which runs; so do commands in them."""
import json
import os
import re
import shutil
import socketserver
import subprocess
import tempfile
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler

# Makes a root of files that are bound there, and runs the last of them in it.
IN_ROOT = 'root=$1; shift; while [ $# -gt 1 ]; do touch "$root$2"; mount --bind "$1" "$root$2"; shift 2; done; ' \
    'while [ -e "$root/wait" ]; do sleep 0.01; done; exec chroot "$root" "$1"'
NEVER = '0001-01-01T00:00:00Z'


def stamp(unix_ns):
    return time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(unix_ns // 10**9)) + '.%09dZ' % (unix_ns % 10**9)


def image_id(name):
    return 'sha256:' + name.replace('/', '_')


class Container:
    def __init__(self, engine, name, body):
        self.engine, self.name, self.body = engine, name, body
        self.id = os.urandom(32).hex()
        self.process = None
        self.created = int(time.time())
        self.code, self.oom, self.error = 0, False, ''
        self.started, self.finished = NEVER, NEVER
        self.messages = []  # (time, stream, bytes)
        self.signals = []

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    @property
    def shares(self):
        """Whether it is there for the network of another one."""
        return 'cairn.network' in (self.body.get('Labels') or {})

    def network(self):
        return os.stat('/proc/%d/ns/net' % self.process.pid).st_ino

    def line(self):
        host = self.body.get('HostConfig') or {}
        mode = host.get('NetworkMode', '')
        if self.shares:
            root = os.path.join(self.engine.dir, self.name)
            os.mkdir(root)
            if self.engine.hold_networks:
                with open(root + '/wait', 'w', encoding='ascii'):
                    pass
            binds = [text for one in host['Mounts'] for text in (one['Source'], one['Target'])]
            return ['unshare', '--mount', 'sh', '-ec', IN_ROOT, 'sh', root, *binds, self.body['Entrypoint'][0]]
        if mode.startswith('container:'):
            other = self.engine.containers.get(mode[len('container:'):])
            if other is None or not other.running:
                raise ValueError('cannot join network of a non running container')
            return ['nsenter', '--net=/proc/%d/ns/net' % other.process.pid, 'sleep', '100000']
        return ['sleep', '100000']

    def start(self):
        self.process = subprocess.Popen(self.line(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        start_new_session=True)
        self.started = stamp(time.time_ns())
        self.engine.starts.append(self.name)

    def end(self, code=0, oom=False):
        """It ends; whoever waits hears of it."""
        with self.engine.changed:
            if self.process is None:
                return
            self.process.kill()
            self.process.wait()
            self.process = None
            self.code, self.oom, self.finished = code, oom, stamp(time.time_ns())
            self.engine.changed.notify_all()

    def let_go(self):
        """It may enter the network that it is there for."""
        os.unlink(os.path.join(self.engine.dir, self.name, 'wait'))

    def say(self, text, stream=1, at_ns=None):
        with self.engine.changed:
            self.messages.append((at_ns or time.time_ns(), stream, text.encode()))
            self.engine.changed.notify_all()

    def inspected(self):
        return {'Id': self.id, 'Name': '/' + self.name,
                'ExecIDs': [one.id for one in self.engine.commands.values() if one.container is self] or None,
                'Config': dict(self.body, Labels=self.body.get('Labels') or {}),
                'State': {'Running': self.running, 'Dead': False, 'OOMKilled': self.oom,
                          'Pid': self.process.pid if self.process else 0, 'ExitCode': self.code,
                          'Error': self.error, 'StartedAt': self.started, 'FinishedAt': self.finished}}


class Command:
    def __init__(self, container, body):
        self.container, self.body = container, body
        self.id = os.urandom(32).hex()
        self.process, self.code, self.sizes = None, None, []

    def run(self, connection):
        """Over a connection that is its own: frames of what it writes, and its input."""
        body = self.body
        env = dict(os.environ, **dict(one.split('=', 1) for one in body.get('Env') or []))
        self.process = subprocess.Popen(body['Cmd'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=env, start_new_session=True)
        lock = threading.Lock()

        def pass_on(stream, pipe):
            for text in iter(lambda: os.read(pipe.fileno(), 5000), b''):
                head = b'' if body['Tty'] else bytes([stream, 0, 0, 0]) + len(text).to_bytes(4, 'big')
                with lock:
                    try:
                        connection.sendall(head + text)
                    except OSError:
                        return

        def take():
            try:
                while text := connection.recv(65536):
                    self.process.stdin.write(text)
                    self.process.stdin.flush()
                self.process.stdin.close()
            except OSError:
                pass

        threads = [threading.Thread(target=pass_on, args=(1, self.process.stdout)),
                   threading.Thread(target=pass_on, args=(2, self.process.stderr))]
        for thread in threads:
            thread.start()
        threading.Thread(target=take, daemon=True).start()
        for thread in threads:
            thread.join()
        code = self.process.wait()
        self.code = code if code >= 0 else 128 - code

    def inspected(self):
        runs = self.process is not None and self.code is None
        return {'ID': self.id, 'Running': runs, 'ExitCode': self.code, 'Pid': self.process.pid if self.process else 0}


class Fault:
    """What comes in place of an answer, COUNT times: a status and a body; CUT: half of the body, and
    then nothing; DO: the real thing happens first; WAIT: an event that is waited for before."""

    def __init__(self, method, path, status=500, body=None, cut=False, do=False, wait=None, count=1):
        self.method, self.path = method, re.compile(path)
        self.status, self.cut, self.do, self.wait, self.count = status, cut, do, wait, count
        self.body = body if body is not None else json.dumps({'message': 'it hurts'})
        self.seen = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def address_string(self):
        return 'unix'

    def log_message(self, *arguments):
        pass

    def answer(self, status, value=None):
        body = value if isinstance(value, bytes) else b'' if value is None else json.dumps(value).encode()
        if status == 204:
            body = b''
        self.answered = (status, body)
        if self.silent:
            return
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fault(self, fault):
        fault.seen.set()
        if fault.do:
            self.silent = True
            self.act()
            self.silent = False
        if fault.wait is not None:
            fault.wait.wait()
        body = fault.body.encode()
        self.send_response(fault.status)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body[:len(body) // 2] if fault.cut else body)
        self.close_connection = True

    def handle_one(self):
        engine, self.silent = self.server.engine, False
        url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(url.query))
        self.words = [urllib.parse.unquote(word) for word in url.path.split('/')[1:]]
        length = int(self.headers.get('Content-Length') or 0)
        self.body = self.rfile.read(length)
        with engine.changed:
            engine.requests.append((self.command, self.path))
            found = next((fault for fault in engine.faults if fault.count > 0 and
                          fault.method == self.command and fault.path.search(self.path)), None)
            if found:
                found.count -= 1
            engine.changed.notify_all()
        if found:
            self.fault(found)
        else:
            self.act()

    do_GET = do_POST = do_DELETE = handle_one

    def act(self):
        engine, words = self.server.engine, self.words
        if words == ['version']:
            self.answer(200, {'Version': '99.1', 'ApiVersion': '1.41'})
        elif words[0] == 'images' and words[-1] == 'json':
            name = '/'.join(words[1:-1])
            known = name in engine.images
            self.answer(200 if known else 404,
                        {'Id': image_id(name)} if known else {'message': 'No such image: ' + name})
        elif words[0] == 'images' and self.command == 'DELETE':
            self.remove_image(words[1])
        elif words == ['images', 'create']:
            self.pull()
        elif words == ['images', 'load']:
            self.load()
        elif words == ['containers', 'create']:
            self.create()
        elif words == ['containers', 'json']:
            self.answer(200, [{'Id': one.id, 'Names': ['/' + one.name], 'Labels': one.body['Labels'],
                               'Created': one.created}
                              for one in engine.containers.values()])
        elif words[0] == 'exec' and words[1] in engine.commands:
            self.of_command(engine.commands[words[1]])
        elif words[0] == 'containers':
            container = engine.containers.get(words[1])
            if container is None:
                self.answer(404, {'message': 'No such container: ' + words[1]})
            else:
                self.of_container(container)
        else:
            self.answer(404, {'message': 'page not found'})

    def pull(self):
        engine = self.server.engine
        name = '%s:%s' % (self.query['fromImage'], self.query['tag'])
        engine.auths.append(self.headers.get('X-Registry-Auth'))
        lines = [{'status': 'Pulling from ' + name}]
        if name in engine.registry:
            engine.images.add(name)
            lines.append({'status': 'Status: Downloaded newer image'})
        else:
            lines.append({'errorDetail': {'message': 'no'}, 'error': 'manifest for %s not found' % name})
        self.answer(200, b''.join(json.dumps(line).encode() + b'\r\n' for line in lines))

    def load(self):
        """An archive is the name of the image in it, and zeros."""
        name = self.body.rstrip(b'\0').decode()
        self.server.engine.images.add(name)
        self.answer(200, json.dumps({'stream': 'Loaded image: ' + name}).encode() + b'\r\n')

    def remove_image(self, wanted):
        engine = self.server.engine
        with engine.changed:
            found = {name for name in engine.images if image_id(name) == wanted}
            if any(one.running and one.body.get('Image') == wanted for one in engine.containers.values()):
                self.answer(409, {'message': 'image is being used by running container'})
                return
            engine.images -= found
        self.answer(200 if found else 404, [{'Untagged': name} for name in found])

    def create(self):
        engine, name = self.server.engine, self.query['name']
        with engine.changed:
            if name in engine.containers:
                self.answer(409, {'message': 'Conflict. The name "%s" is in use' % name})
                return
            container = engine.containers[name] = Container(engine, name, json.loads(self.body))
            engine.made.append(name)
            engine.changed.notify_all()
        self.answer(201, {'Id': container.id, 'Warnings': []})

    def of_command(self, command):
        verb = self.words[2]
        if verb == 'json':
            self.answer(200, command.inspected())
        elif verb == 'resize':
            command.sizes.append((int(self.query['h']), int(self.query['w'])))
            self.answer(200)
        elif verb == 'start':
            # What is read of the connection by now is lost, as by real ones.
            self.wfile.write(b'HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n'
                             b'Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n')
            command.run(self.connection)
            self.close_connection = True

    def of_container(self, container):
        engine, verb = self.server.engine, self.words[2] if len(self.words) > 2 else ''
        if self.command == 'DELETE':
            with engine.changed:
                del engine.containers[container.name]
            container.end(137)
            self.answer(204)
        elif verb == 'json':
            self.answer(200, container.inspected())
        elif verb == 'start':
            with engine.changed:
                was_running = container.running
                try:
                    if not was_running:
                        container.start()
                except ValueError as error:
                    self.answer(409, {'message': str(error)})
                    return
                engine.changed.notify_all()
            self.answer(304 if was_running else 204)
        elif verb == 'exec':
            command = Command(container, json.loads(self.body))
            engine.commands[command.id] = command
            self.answer(201, {'Id': command.id})
        elif verb == 'kill':
            if not container.running:
                self.answer(409, {'message': 'Container is not running'})
                return
            signal = int(self.query['signal'])
            container.signals.append(signal)
            self.answer(204)
            if signal == 9:
                container.end(137)
            elif signal in engine.deadly:
                container.end(engine.deadly[signal])
        elif verb == 'wait':
            with engine.changed:
                while container.running and not engine.stopped:
                    engine.changed.wait()
                if engine.stopped:
                    self.close_connection = True
                    return
            self.answer(200, {'StatusCode': container.code})
        elif verb == 'logs':
            self.logs(container)
        else:
            self.answer(404, {'message': 'page not found'})

    def logs(self, container):
        engine, sent = self.server.engine, 0
        whole, _, part = self.query.get('since', '0').partition('.')
        since = int(whole) * 10**9 + int((part or '0').ljust(9, '0'))
        self.send_response(200)
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        while True:
            with engine.changed:
                while len(container.messages) == sent and container.running and not engine.stopped:
                    engine.changed.wait()
                new = container.messages[sent:]
                sent += len(new)
                over = not container.running and len(container.messages) == sent
                if engine.stopped:
                    self.close_connection = True
                    return
            frames = b''
            for at, stream, text in new:
                if at >= since:
                    text = stamp(at).encode() + b' ' + text
                    frames += bytes([stream, 0, 0, 0]) + len(text).to_bytes(4, 'big') + text
            if frames:
                self.wfile.write(b'%x\r\n%s\r\n' % (len(frames), frames))
            if over:
                self.wfile.write(b'0\r\n\r\n')
                return


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # whoever asked has gone


class Engine:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix='engine-')
        self.socket = os.path.join(self.dir, 'engine.sock')
        self.changed = threading.Condition(threading.RLock())
        self.containers, self.commands, self.images, self.registry = {}, {}, {'img:1'}, set()
        self.hold_networks = False  # what shares one enters it when it is told to
        self.faults, self.requests, self.auths, self.starts, self.made = [], [], [], [], []
        self.deadly = {15: 143}  # signals that end a container, and with which code
        self.server, self.stopped = None, True

    def config(self, more=''):
        return 'plugin "docker" {\n config {\n endpoint = "unix://%s"\n%s }\n}\n' % (self.socket, more)

    def open(self):
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        self.stopped = False
        self.server = Server(self.socket, Handler)
        self.server.engine = self
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        """It is away, and with it every connection; containers run on."""
        with self.changed:
            self.stopped = True
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()
        os.unlink(self.socket)

    def fail(self, *arguments, **fields):
        fault = Fault(*arguments, **fields)
        with self.changed:
            self.faults.append(fault)
        return fault

    def one(self):
        """The only container there is, or None, but for those that are there for another one's network."""
        with self.changed:
            found = [one for one in self.containers.values() if not one.shares]
        assert len(found) <= 1, [one.name for one in found]
        return found[0] if found else None

    def end(self):
        for container in list(self.containers.values()):
            container.end(137)
        if not self.stopped:
            self.close()
        shutil.rmtree(self.dir)

    def count(self, method, path):
        with self.changed:
            return sum(1 for one, at in self.requests if one == method and re.search(path, at))
