"""Commands in tasks, over WebSockets of our own."""
import base64
import json
import os
import socket
import struct
import urllib.parse

from lib import start_ticks, words_of


class Session:
    """One of them."""

    def __init__(self, node, alloc, task, command, tty=False, headers='', **more):
        query = urllib.parse.urlencode(dict({'task': task, 'command': json.dumps(command),
                                             'tty': str(tty).lower()}, **more))
        self.socket = socket.create_connection(('127.0.0.1', node.port))
        self.socket.sendall((
            'GET /v1/client/allocation/%s/exec?%s HTTP/1.1\r\nHost: 127.0.0.1\r\n'
            'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n'
            'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n'
            % (alloc, query, headers)).encode())
        self.stream = self.socket.makefile('rb')
        self.head = b''
        while not self.head.endswith(b'\r\n\r\n'):
            byte = self.stream.read(1)
            assert byte, self.head
            self.head += byte
        self.status = int(self.head.split()[1])
        self.out = {'stdout': b'', 'stderr': b''}
        self.code = self.closed = None

    def send(self, message):
        text, mask = json.dumps(message).encode(), os.urandom(4)
        head = bytes([0x81, 0x80 | len(text)]) if len(text) < 126 else \
            bytes([0x81, 0xfe]) + struct.pack('>H', len(text))
        self.socket.sendall(head + mask + bytes(byte ^ mask[at % 4]
                                                for at, byte in enumerate(text)))

    def type(self, text):
        self.send({'stdin': {'data': base64.b64encode(text.encode()).decode()}})

    def hear(self):
        """One message; False after the last."""
        head = self.stream.read(2)
        if len(head) < 2:
            return False
        length = head[1] & 0x7f
        if length == 126:
            length, = struct.unpack('>H', self.stream.read(2))
        body = self.stream.read(length)
        if head[0] & 0xf == 8:
            self.closed = (struct.unpack('>H', body[:2])[0], body[2:].decode())
            return False
        message = json.loads(body)
        for name in self.out:
            self.out[name] += base64.b64decode(message.get(name, {}).get('data', ''))
        if message.get('exited'):
            self.code = message['result']['exit_code']
        return True

    def hear_all(self):
        while self.hear():
            pass
        return self

    def hear_until(self, text):
        while text.encode() not in self.out['stdout']:
            assert self.hear(), (self.out, self.code, self.closed)
        return self

    def leave(self):
        self.stream.close()
        self.socket.close()


def pids(command):
    """The processes whose command line is COMMAND."""
    found = []
    for name in os.listdir('/proc'):
        try:
            if words_of(int(name))[1] == command and start_ticks(int(name)) is not None:
                found.append(int(name))
        except (OSError, ValueError):
            continue
    return found
