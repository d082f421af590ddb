"""What tasks are given before they start: artifacts and templates."""
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time

from lib import Node, milliseconds, raw_exec, service, wait_for

ARTIFACT_MB = 100
TEMPLATES = 300


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Served:
    """A directory over HTTP, by a process of its own kind for whoever fetches."""

    def __init__(self, directory):
        def handler(*args):
            return Quiet(*args, directory=directory)
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
        self.url = 'http://127.0.0.1:%d/' % self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self.url

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def make_archive(path):
    """Files that cannot be packed any smaller; returns the digest of the archive."""
    with tempfile.NamedTemporaryFile() as part, tarfile.open(path, 'w') as archive:
        part.write(os.urandom(1 << 20))
        part.flush()
        for number in range(ARTIFACT_MB):
            archive.add(part.name, 'file%d' % number)
    digest = hashlib.sha256()
    with open(path, 'rb') as file:
        for chunk in iter(lambda: file.read(1 << 20), b''):
            digest.update(chunk)
    return digest.hexdigest()


def bare_ms(url, digest, directory):
    os.mkdir(directory)
    began_s = time.monotonic()
    subprocess.run('curl -sf -o a.tar %s && echo "%s  a.tar" | sha256sum -c --quiet && tar xf a.tar'
                   % (url, digest), shell=True, check=True, cwd=directory)
    took_ms = (time.monotonic() - began_s) * 1000
    shutil.rmtree(directory)
    return took_ms


def times_ns(node, job):
    events = (node.task(job, 'g', 't') or {}).get('Events') or []
    return {event['Type']: event['Time'] for event in events}


def fetched_ms(node, url, digest, number):
    job = dict(service(raw_exec('t', 'exec sleep 1000', KillTimeout=milliseconds(500), Artifacts=[
        {'GetterSource': url, 'RelativeDest': 'local',
         'GetterOptions': {'checksum': 'sha256:' + digest}}])), ID='a%d' % number)
    node.run_job(job)
    at = wait_for('the task', lambda: 'Started' in times_ns(node, job['ID'])
                  and times_ns(node, job['ID']), 120)
    node.call('DELETE', '/v1/job/%s?purge=true' % job['ID'])
    wait_for('its end', lambda: not node.allocs())
    return (at['Started'] - at['Downloading Artifacts']) / 1e6


def artifact_row(build, rounds=5):
    """One archive, fetched, checked and unpacked, against curl, sha256sum and tar in turns."""
    ours, bare = [], []
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o711)
        digest = make_archive(os.path.join(directory, 'a.tar'))
        node = Node(build)
        os.chmod(node.dir, 0o711)
        node.start()
        with Served(directory) as root:
            for number in range(rounds):
                bare.append(bare_ms(root + 'a.tar', digest, os.path.join(directory, 'bare')))
                ours.append(fetched_ms(node, root + 'a.tar', digest, number))
        node.finish()
    return ('artifact of %d MB' % ARTIFACT_MB, '%.0f ms' % min(ours),
            'curl, sha256sum, tar %.0f ms' % min(bare), '%.2f x' % (min(ours) / min(bare)), '1.2 x')


def templates_row(build):
    """All templates of a task are rendered again when a file that one of them reads changes: how
    long that takes, and how many of the others are written or told of."""
    node = Node(build)
    node.start()
    data = '{{ range $i, $p := split "," "a,b,c" }}{{ $i }}={{ $p }} {{ env "NOMAD_ALLOC_ID" }}{{ end }}'
    many = [{'EmbeddedTmpl': data, 'DestPath': 'local/f%d' % i} for i in range(TEMPLATES)]
    node.run_job(service(raw_exec('t', 'exec sleep 1000', KillTimeout=milliseconds(500), Templates=[
        {'EmbeddedTmpl': '1', 'DestPath': 'local/read', 'Once': True}] + many + [
            {'EmbeddedTmpl': '{{ file "local/read" }}', 'DestPath': 'local/last', 'ChangeMode': 'noop'}])))
    wait_for('the task', lambda: node.task('job', 'g', 't') and times_ns(node, 'job').get('Started'))
    place = os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'], 't', 'local')

    def stamps():
        return [os.stat(os.path.join(place, 'f%d' % i)).st_ino for i in range(TEMPLATES)]

    def last():
        with open(os.path.join(place, 'last')) as file:
            return file.read()

    before, took = stamps(), []
    for number in range(5):
        time.sleep(0.3)  # the daemon listens to the kernel ten times a second
        with open(os.path.join(place, 'new'), 'w') as out:
            out.write('round %d' % number)
        began_s = time.monotonic()
        os.rename(os.path.join(place, 'new'), os.path.join(place, 'read'))
        while last() != 'round %d' % number:
            time.sleep(0.001)
        took.append((time.monotonic() - began_s) * 1000)
    written = sum(a != b for a, b in zip(before, stamps()))
    told = sum(event['Type'] in ('Signaling', 'Restart Signaled')
               for event in node.task('job', 'g', 't')['Events'])
    node.finish()
    return ('%d templates rendered again' % TEMPLATES, '%.0f ms' % min(took), 'of these 100 ms to settle',
            '', '%d+%d of 0' % (written, told))


def seconds_of(pid):
    """Of a core, what it and those of its children that have ended have worked."""
    with open('/proc/%d/stat' % pid) as stat:
        return sum(int(field) for field in stat.read().rpartition(')')[2].split()[11:15]) / \
            os.sysconf('SC_CLK_TCK')


def rested_s(pid):
    """What it has worked when it does not any more."""
    before, now = -1, 0
    while now - before > 0.015:
        time.sleep(1)
        before, now = now, seconds_of(pid)
    return now


def settled_mb(pid):
    """What it keeps when its caches have been emptied, as they are on an idle node."""
    found = []
    for _ in range(5):
        time.sleep(3)
        with open('/proc/%d/status' % pid) as status:
            found.append(int(re.search(r'^VmRSS:\s+(\d+) kB', status.read(), re.M).group(1)) / 1024)
    return found[-1]


def rendered_rows(build, config):
    """Tasks with a template each: what the daemon keeps of them, and what they cost when it comes back
    to them, over as many without."""
    worked, rss_mb = [], 0
    for templates in ([], [{'EmbeddedTmpl': '{{ env "NOMAD_ALLOC_ID" }}', 'DestPath': 'local/id',
                            'ChangeMode': 'noop'}]):
        node = Node(build, config)
        node.start()
        job = service(raw_exec('t', 'exec sleep 1000', KillTimeout=milliseconds(500), Templates=templates))
        job['TaskGroups'][0]['Count'] = TEMPLATES
        node.run_job(job)
        wait_for('all to run', lambda: sum(alloc['ClientStatus'] == 'running'
                                           for alloc in node.allocs('job')) == TEMPLATES, 120, 0.5)
        node.kill()
        node.start()
        worked.append(rested_s(node.process.pid))
        rss_mb = settled_mb(node.process.pid)
        node.finish()
    return [('daemon RSS, %d tasks with a template each' % TEMPLATES, '%.1f MB' % rss_mb, '', '', '12 MB'),
            ('they are rendered again behind a restart', '%.2f s' % (worked[1] - worked[0]), 'of a core', '', '')]
