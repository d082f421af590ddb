#!/usr/bin/env python3
"""The API by TLS: who is let in, what passes through, and certificates that are renewed."""
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, Refused, service, sleeper, tap, wait_for  # noqa: E402

CONFIG = '''
addresses {
  http = "127.0.0.1 unix://%(dir)s/api.sock"
}
tls {
  http                = true
  ca_file             = "%(dir)s/ca.pem"
  cert_file           = "%(dir)s/own.pem"
  key_file            = "%(dir)s/own.key"
  verify_https_client = %(verify)s
  tls_min_version     = "%(version)s"
}
'''


def openssl(directory, *arguments):
    subprocess.run(['openssl', *arguments], cwd=directory, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def authority(directory, name):
    openssl(directory, 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
            '-nodes', '-keyout', name + '.key', '-out', name + '.pem', '-days', '2',
            '-subj', '/CN=' + name)


def certificate(directory, name, signer, purpose):
    with open(os.path.join(directory, name + '.ext'), 'w') as out:
        out.write('subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=%s\n' % purpose)
    openssl(directory, 'req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
            '-keyout', name + '.key', '-out', name + '.csr', '-subj', '/CN=' + name)
    openssl(directory, 'x509', '-req', '-in', name + '.csr', '-CA', signer + '.pem', '-CAkey',
            signer + '.key', '-CAcreateserial', '-out', name + '.pem', '-days', '2', '-extfile',
            name + '.ext')


class TlsNode(Node):
    """A node that is asked on its UNIX socket by the harness, and by TLS by the tests."""

    def __init__(self, verify=True, version='tls12'):
        super().__init__(config='# written below\n')
        self.bind = '127.0.0.1'
        for name in ('ca', 'other'):
            authority(self.dir, name)
        for name, signer, purpose in (('server', 'ca', 'serverAuth'), ('next', 'ca', 'serverAuth'),
                                      ('client', 'ca', 'clientAuth'),
                                      ('stranger', 'other', 'clientAuth')):
            certificate(self.dir, name, signer, purpose)
        self.show('server')
        self.configure(verify, version)

    def configure(self, verify=True, version='tls12'):
        with open(self.config, 'w') as out:
            out.write(CONFIG % {'dir': self.dir, 'verify': str(verify).lower(), 'version': version})

    def show(self, name):
        for kind in ('pem', 'key'):
            shutil.copy(self.path(name + '.' + kind), self.path('own.' + kind))

    def path(self, name):
        return os.path.join(self.dir, name)

    def text(self, method, path, body=None, timeout_s=10):
        """By the socket: what the harness asks is not what is tried here."""
        connection = http.client.HTTPConnection('localhost', timeout=timeout_s)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.path('api.sock'))
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status >= 300:
            raise Refused(answer.status, text)
        return text

    def command(self):
        return [self.bind if word == '127.0.0.1' else word for word in super().command()]

    def tool(self, *arguments, cert='client', ca='ca', **options):
        env = dict(os.environ, NOMAD_ADDR='https://127.0.0.1:%d' % self.port,
                   NOMAD_CACERT=self.path(ca + '.pem'))
        if cert:
            env.update(NOMAD_CLIENT_CERT=self.path(cert + '.pem'),
                       NOMAD_CLIENT_KEY=self.path(cert + '.key'))
        return subprocess.run([os.path.join(self.build, 'cairn'), *arguments], env=env, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)

    def dial(self, cert='client', **options):
        context = ssl.create_default_context(cafile=self.path('ca.pem'))
        if cert:
            context.load_cert_chain(self.path(cert + '.pem'), self.path(cert + '.key'))
        for name, value in options.items():
            setattr(context, name, value)
        plain = socket.create_connection(('127.0.0.1', self.port), timeout=10)
        return context.wrap_socket(plain, server_hostname='localhost')

    def shown(self):
        with self.dial() as peer:
            return dict(entry[0] for entry in peer.getpeercert()['subject'])['commonName']


def ask(peer, path='/v1/agent/health'):
    peer.sendall(('GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n' % path).encode())
    return peer.recv(4096)


def started(**options):
    node = TlsNode(**options)
    node.start()
    return node


def is_refused(node, cert):
    try:
        with node.dial(cert) as peer:
            return not ask(peer)
    except (ssl.SSLError, ConnectionError):
        return True


def who_shows_a_certificate_is_let_in_and_nobody_else():
    node = started()
    assert node.tool('node', 'status').returncode == 0
    with node.dial() as peer:
        assert ask(peer).startswith(b'HTTP/1.1 200')
    for cert in (None, 'stranger', 'server'):  # a server's is no client's
        assert is_refused(node, cert), cert
        assert node.tool('node', 'status', cert=cert).returncode != 0, cert
    said = node.tool('node', 'status', ca='other')
    assert said.returncode != 0 and b'certificate' in said.stdout, said.stdout
    with socket.create_connection(('127.0.0.1', node.port), timeout=10) as plain:
        plain.sendall(b'GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n')
        assert b'HTTP' not in plain.recv(4096)
    node.terminate()
    node.close()


def certificates_in_place_of_tokens_open_the_network():
    node = TlsNode()
    node.bind = '0.0.0.0'
    node.start()
    assert node.tool('node', 'status').returncode == 0
    node.terminate()
    node.configure(verify=False)
    node.start(wait=False)
    assert node.process.wait(20) != 0 and 'certificates of clients' in node.log()
    node.close()


def old_versions_are_refused_and_newer_ones_may_be():
    node = started(verify=False, version='tls13')
    with node.dial(None) as peer:
        assert peer.version() == 'TLSv1.3' and ask(peer).startswith(b'HTTP/1.1 200')
    try:
        node.dial(None, maximum_version=ssl.TLSVersion.TLSv1_2)
        raise AssertionError('TLS 1.2 was taken')
    except ssl.SSLError:
        pass
    node.terminate()
    node.close()


def what_a_session_says_passes_both_ways():
    node = started()
    node.run_job(service(sleeper()))
    wait_for('the task', node.running)
    alloc = node.alloc('job', 'g')['ID']
    much = os.urandom(1 << 20) * 3
    done = node.tool('alloc', 'exec', alloc, 'sh', '-c', 'cat; exit 7', input=much)
    assert done.returncode == 7 and done.stdout == much, (done.returncode, len(done.stdout))
    node.finish()


def certificates_are_renewed_for_who_comes_next():
    node = started()
    assert node.shown() == 'server'
    with node.dial() as before:
        assert ask(before).startswith(b'HTTP/1.1 200')
        shutil.copy(node.path('next.pem'), node.path('own.pem'))  # and not yet its key
        os.kill(node.process.pid, signal.SIGHUP)
        wait_for('the complaint', lambda: 'those before stay' in node.log())
        assert node.shown() == 'server'
        node.show('next')
        os.kill(node.process.pid, signal.SIGHUP)
        wait_for('the next one', lambda: node.shown() == 'next')
        assert ask(before).startswith(b'HTTP/1.1 200')  # who was there before goes on
    node.terminate()
    node.close()


def who_never_shakes_hands_is_in_nobodys_way():
    node = started()
    files = '/proc/%d/fd' % node.process.pid
    assert node.tool('node', 'status').returncode == 0
    before = len(os.listdir(files))
    idle = [socket.create_connection(('127.0.0.1', node.port), timeout=10) for _ in range(64)]
    for peer in idle[:32]:
        peer.sendall(b'\x16\x03\x01\x02\x00\x01')  # the beginning of a hello
    for peer in idle[:8]:
        peer.sendall(os.urandom(600))
    with node.dial() as peer:
        assert ask(peer).startswith(b'HTTP/1.1 200')
    for peer in idle:
        peer.close()
    with node.dial() as parked:  # and who goes while he waits is let go
        parked.sendall(b'GET /v1/jobs?index=1&wait=5m HTTP/1.1\r\nHost: localhost\r\n\r\n')
    wait_for('all to be gone', lambda: len(os.listdir(files)) <= before)
    node.terminate()
    node.close()


sys.exit(tap([who_shows_a_certificate_is_let_in_and_nobody_else,
              certificates_in_place_of_tokens_open_the_network,
              old_versions_are_refused_and_newer_ones_may_be,
              what_a_session_says_passes_both_ways,
              certificates_are_renewed_for_who_comes_next,
              who_never_shakes_hands_is_in_nobodys_way]))
