"""A disk with a cache that forgets: what a machine has not flushed may be lost when its power goes.

QEMU reaches it by the NBD protocol over a UNIX socket.  Writes are in the cache until a flush, or
come with FUA; when the power is cut each sector that is still there has reached the platter or has
not, as chance has it, in any order: more than what a kernel keeps is promised by no disk.  What was
written and flushed is noted, so that every moment in between can be looked at later.
"""
import socket
import struct
import threading

SECTOR = 512
MAGIC, OPTION, REPLY = 0x4e42444d41474943, 0x49484156454f5054, 0x3e889045565a9
REQUEST, ANSWER = 0x25609513, 0x67446698
HAS_FLAGS, SEND_FLUSH, SEND_FUA = 1, 4, 8
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
EXPORT_NAME, GO = 1, 7


class Gone(Exception):
    """The peer has closed its end."""


def pieces(offset, data, whole):
    """What reaches the platter, or does not, each by itself: (offset, bytes) of sectors, and of the
    place WHOLE, (offset, bytes), at once.  That is a file system's superblock: the checksum at its end
    is of all of it, and half a one is repaired by nobody, as none does that a disk has torn there."""
    at, end = offset, offset + len(data)
    while at < end:
        inside = whole[0] <= at < sum(whole)
        until = min(sum(whole) if inside else at + SECTOR, end)
        yield at, data[at - offset:until - offset]
        at = until


class Disk:
    def __init__(self, content, whole, noted=True):
        self.whole = whole              # the place that is never torn
        self.platter = bytearray(content)
        self.seen = bytearray(content)  # by the machine: the platter below the cache
        self.cache = []                 # (offset, bytes), in the order of coming
        self.notes = []                 # (offset, bytes) of each write, None for each flush,
        self.noted = noted              # if anybody wants them
        self.lock = threading.Lock()
        self.listening = None
        self.writes_left, self.on_last = 0, None

    # --- what a machine does with it ---

    def read(self, offset, length):
        with self.lock:
            return bytes(self.seen[offset:offset + length])

    def write(self, offset, data, at_once):
        with self.lock:
            self.seen[offset:offset + len(data)] = data
            self._note((offset, data))
            self.cache.append((offset, data))
            if at_once:
                self._flush()  # more than it asks for
            self._count()

    def flush(self):
        with self.lock:
            self._flush()

    def _flush(self):
        for offset, data in self.cache:
            self.platter[offset:offset + len(data)] = data
        self.cache = []
        self._note(None)

    def _note(self, what):
        if self.noted:
            self.notes.append(what)

    def stop_after(self, writes, on_last):
        """Of what is written from now on so much comes, then ON_LAST is called, and nothing more is
        heard of this machine: its power goes between a write and its flush."""
        with self.lock:
            self.writes_left, self.on_last = writes, on_last

    def _count(self):
        if self.writes_left > 0:
            self.writes_left -= 1
            if self.writes_left == 0:
                self.on_last()
                raise Gone()

    def cut(self, chance):
        """The power is off: of what is in the cache some sectors are kept, the others are lost.  How
        many sectors were in it, and how many of them were lost."""
        with self.lock:
            sectors, lost = 0, 0
            # Some disks lose all of it, some nearly nothing.
            kept = chance.choice((0.0, 0.5, 0.9, 1.0))
            for offset, data in self.cache:
                for at, piece in pieces(offset, data, self.whole):
                    sectors += len(piece) // SECTOR
                    if chance.random() < kept:
                        self.platter[at:at + len(piece)] = piece
                    else:
                        lost += len(piece) // SECTOR
            self.cache, self.writes_left = [], 0
            self.seen[:] = self.platter
            return sectors, lost

    # --- the protocol ---

    def serve(self, path):
        """Serves whoever connects to PATH, one after the other, on a thread of its own."""
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(path)
        self.listening.listen(1)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            peer, _ = self.listening.accept()
            with peer:
                try:
                    if self._agree(peer):
                        self._answer(peer)
                except (Gone, ConnectionError):
                    pass  # its power is off

    def _export(self):
        return struct.pack('>QH', len(self.platter), HAS_FLAGS | SEND_FLUSH | SEND_FUA)

    def _agree(self, peer):
        peer.sendall(struct.pack('>QQH', MAGIC, OPTION, 3))  # fixed newstyle, no zeroes
        receive(peer, 4)
        while True:
            _, option, length = struct.unpack('>QII', receive(peer, 16))
            receive(peer, length)
            if option == EXPORT_NAME:
                peer.sendall(self._export())
                return True
            if option == GO:
                export = struct.pack('>H', 0) + self._export()
                peer.sendall(struct.pack('>QIII', REPLY, option, 3, len(export)) + export)
                peer.sendall(struct.pack('>QIII', REPLY, option, 1, 0))
                return True
            peer.sendall(struct.pack('>QIII', REPLY, option, 0x80000001, 0))  # not known here

    def _answer(self, peer):
        while True:
            _, flags, kind, handle, offset, length = struct.unpack('>IHHQQI', receive(peer, 28))
            data = b''
            if kind == READ:
                data = self.read(offset, length)
            elif kind == WRITE:
                self.write(offset, receive(peer, length), flags & 1)
            elif kind == FLUSH:
                self.flush()
            elif kind == DISCONNECT:
                return
            error = 0 if kind in (READ, WRITE, FLUSH) else 22
            peer.sendall(struct.pack('>IIQ', ANSWER, error, handle) + data)


def receive(peer, length):
    parts = []
    while length > 0:
        part = peer.recv(min(length, 1 << 20))
        if not part:
            raise Gone()
        parts.append(part)
        length -= len(part)
    return b''.join(parts)
