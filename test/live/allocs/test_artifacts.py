#!/usr/bin/env python3
"""Artifacts on a real node: fetched once and whole, by whom nothing is entrusted, and refused when they
are not what was meant; archives that lead elsewhere reach nothing."""
import contextlib
import hashlib
import http.server
import io
import os
import subprocess
import sys
import tarfile
import threading
import time
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, Node, events, milliseconds, raw_exec, restart_policy,  # noqa: E402
                 service, tap, wait_for)

NOBODY = 65534


class Origin(http.server.ThreadingHTTPServer):
    """Serves `files`, says 404 of all else, counts, and lets /hang wait until it is closed."""
    daemon_threads = True

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Answer)
        self.files, self.asked, self.headers = {}, [], {}
        self.closing = threading.Event()
        self.url = 'http://127.0.0.1:%d' % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.closing.set()
        self.shutdown()
        self.server_close()


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        self.server.headers[self.path] = self.headers
        path = self.path.split('?')[0]
        if path == '/hang':
            self.send_response(200)
            self.send_header('Content-Length', '1000')
            self.end_headers()
            self.wfile.write(b'begun')
            self.wfile.flush()
            self.server.closing.wait()
            return
        body = self.server.files.get(path)
        self.send_response(200 if body is not None else 404)
        self.send_header('Content-Length', str(len(body or b'')))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body or b'')

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def opened(limits=''):
    config = 'client {\n  artifact {\n    set_environment_variables = "CAIRN_TEST_MARK"\n%s  }\n}\n' % limits
    node, origin = Node(config=config), Origin()
    os.chmod(node.dir, 0o711)
    node.start()
    try:
        yield node, origin
        node.finish()
    finally:
        origin.close()


def task(*artifacts, script='exec sleep 1000', **fields):
    return raw_exec('t', script, KillTimeout=milliseconds(500), Artifacts=list(artifacts), **fields)


def path_of(node, *names):
    return os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'], 't', *names)


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def tar(*entries, compression='gz'):
    """A tar of (name, bytes or a function that changes its TarInfo)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w:' + compression) as archive:
        for name, what in entries:
            info = tarfile.TarInfo(name)
            if callable(what):
                what(info)
                archive.addfile(info)
            else:
                info.size, info.mode = len(what), 0o755
                archive.addfile(info, io.BytesIO(what))
    return out.getvalue()


def fetchers(node):
    """Processes that fetch: they carry the node's mark, since its configuration hands it on."""
    return [pid for pid, line in node.payloads().items() if line.startswith('cairn-fetch')]


def failure(node):
    """What users read of a download that failed, None before."""
    found = [event for event in (node.task('job', 'g', 't') or {}).get('Events') or []
             if event['Type'] == 'Failed Artifact Download']
    return found[-1]['DisplayMessage'] if found else None


def fails_with(node, origin, artifact, said):
    """Runs a job whose artifact cannot be taken; its only start is refused with SAID."""
    node.run_job(service(task(dict({'GetterSource': origin.url + '/a.tar.gz'}, **artifact)),
                         restart=restart_policy(0), ReschedulePolicy=NO_RESCHEDULE))
    message = wait_for('the refusal', lambda: failure(node))
    assert said in message, message
    state = wait_for('its end', node.dead)
    assert state['Failed'] and 'Started' not in events(state), events(state)
    place = path_of(node)
    node.call('DELETE', '/v1/job/job?purge=true')
    wait_for('the alloc to be gone', lambda: not node.allocs())
    return place


def what_was_fetched_is_there_once_and_stays():
    with opened() as (node, origin):
        origin.files['/tool'] = b'#!/bin/sh\necho fetched\n'
        origin.files['/a.tar.gz'] = tar(('bin/run', b'#!/bin/sh\nexec sleep 1000\n'), ('note', b'x'))
        node.run_job(service(task(
            {'GetterSource': origin.url + '/tool', 'GetterMode': 'file', 'RelativeDest': 'local/t/tool',
             'GetterHeaders': {'X-Alloc': '${NOMAD_ALLOC_ID}'},
             'GetterOptions': {'checksum': 'sha256:' + hashlib.sha256(origin.files['/tool']).hexdigest()}},
            {'GetterSource': origin.url + '/${NOMAD_META_what}?v=1', 'RelativeDest': '${NOMAD_TASK_DIR}/all'},
            User='nobody', Meta={'what': 'a.tar.gz'},
            Config={'command': '${NOMAD_TASK_DIR}/all/bin/run'})))
        state = wait_for('the task', node.running)
        assert events(state) == ['Received', 'Task Setup', 'Downloading Artifacts', 'Started'], state
        assert read(path_of(node, 'local', 't', 'tool')) == origin.files['/tool']
        for name in ('local/t/tool', 'local/t', 'local/all/bin/run'):
            assert os.stat(path_of(node, name)).st_uid == NOBODY, name
        assert origin.headers['/tool']['X-Alloc'] == node.alloc('job', 'g')['ID']
        assert sorted(origin.asked) == ['/a.tar.gz?v=1', '/tool'], origin.asked
        node.put('/v1/client/allocation/%s/restart' % node.alloc('job', 'g')['ID'], {})
        wait_for('the second start', lambda: events(node.running()).count('Started') == 2)
        node.kill()
        node.start()
        state = wait_for('the task', node.running)
        assert len(origin.asked) == 2, 'fetched again: %r' % origin.asked
        assert events(state).count('Downloading Artifacts') == 1, events(state)


def download_that_fails_follows_the_restart_policy():
    with opened() as (node, origin):
        node.run_job(service(task({'GetterSource': origin.url + '/later?token=secret'}),
                             restart=restart_policy(1000, 50)))
        message = wait_for('the failure', lambda: failure(node))
        assert message == 'failed to download artifact "%s/later": bad response code: 404' % origin.url
        assert 'secret' not in message
        assert 'Started' not in events(node.task('job', 'g', 't'))
        origin.files['/later'] = b'now'
        wait_for('the task', node.running)
        assert read(path_of(node, 'local', 'later')) == b'now'


def what_is_not_what_was_meant_is_not_taken():
    with opened() as (node, origin):
        origin.files['/a.tar.gz'] = tar(('file', b'content'))
        place = fails_with(node, origin, {'GetterOptions': {'checksum': 'md5:' + '0' * 32}},
                           'Checksums did not match')
        assert not os.path.exists(place)
        origin.files['/a.tar.gz'] = origin.files['/a.tar.gz'][:-20]
        fails_with(node, origin, {}, 'cannot unpack')
        origin.files['/a.tar.gz'] = b'\x1f\x8b no archive'
        fails_with(node, origin, {}, 'cannot unpack')
        origin.files['/plain'] = b'plain'
        fails_with(node, origin, {'GetterSource': origin.url + '/plain', 'GetterMode': 'dir'}, 'no archive')
        fails_with(node, origin, {'GetterSource': 'file:///etc/shadow'}, '/etc/shadow')


def link(target, kind=tarfile.SYMTYPE):
    def change(info):
        info.type, info.linkname = kind, target
    return change


def archives_that_lead_elsewhere_reach_nothing():
    def device(info):
        info.type, info.devmajor, info.devminor = tarfile.CHRTYPE, 1, 3

    evil = [
        ([('../../out', b'x')], 'lies outside of the archive'),
        ([('/tmp/cairn-out', b'x')], 'lies outside of the archive'),
        ([('l', link('/etc')), ('l/cairn-out', b'x')], 'leads out of the archive'),
        ([('l', link('../../..')), ('l/out', b'x')], 'leads out of the archive'),
        ([('p/q/l', link('../..')), ('m', link('p/q/l/..'))], 'leads out of the archive'),
        ([('h', link('/etc/passwd', tarfile.LNKTYPE))], 'leads out of the archive'),
        ([('h', link('../../../x', tarfile.LNKTYPE))], 'leads out of the archive'),
        ([('null', device)], 'is no file, directory or link'),
    ]
    with opened() as (node, origin):
        for entries, said in evil:
            origin.files['/a.tar.gz'] = tar(*entries)
            fails_with(node, origin, {}, said)
        assert not os.path.exists('/tmp/cairn-out') and not os.path.exists('/etc/cairn-out')
        assert not [name for name in os.listdir(os.path.join(node.data, 'alloc')) if name == 'out']
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, 'w') as archive:
            archive.writestr('../../out', 'x')
        origin.files['/a.zip'] = packed.getvalue()
        fails_with(node, origin, {'GetterSource': origin.url + '/a.zip'}, 'lies outside of the archive')


def what_is_larger_than_the_node_allows_is_not_taken():
    with opened('    http_max_size = "1MB"\n    decompression_size_limit = "2MB"\n'
                '    decompression_file_count_limit = 5\n') as (node, origin):
        origin.files['/large'] = os.urandom(1100000)
        fails_with(node, origin, {'GetterSource': origin.url + '/large'}, 'larger than 1000000 bytes')
        origin.files['/a.tar.gz'] = tar(('zeroes', bytes(3000000)))
        fails_with(node, origin, {}, 'more than 2000000 bytes')
        fails_with(node, origin, {'GetterMode': 'file', 'RelativeDest': 'local/z'}, 'more than 2000000 bytes')
        origin.files['/a.tar.gz'] = tar(*[('f%d' % i, b'') for i in range(6)])
        fails_with(node, origin, {}, 'more than 5 files')


def every_way_of_packing_is_unpacked():
    with opened() as (node, origin):
        artifacts, expected = [], {}
        for compression in ('', 'gz', 'bz2', 'xz'):
            name = '/a.tar' + ('.' + compression if compression else '')
            origin.files[name] = tar(('f', compression.encode()), compression=compression)
            artifacts.append({'GetterSource': origin.url + name, 'RelativeDest': 'local/' + compression})
            expected['local/%s/f' % compression] = compression.encode()
        zstd = subprocess.run(['zstd', '-q'], input=tar(('f', b'zst'), compression=''), check=True,
                              stdout=subprocess.PIPE).stdout
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as archive:
            archive.writestr('d/f', 'zip')
        gzip = subprocess.run(['gzip', '-c'], input=b'one', check=True, stdout=subprocess.PIPE).stdout
        origin.files.update({'/z': zstd, '/a.zip': packed.getvalue(), '/one.gz': gzip, '/sums': b''})
        artifacts += [
            {'GetterSource': origin.url + '/z', 'RelativeDest': 'local/zst',
             'GetterOptions': {'archive': 'tar.zst', 'checksum': 'file:%s/sums' % origin.url}},
            {'GetterSource': origin.url + '/a.zip', 'GetterMode': 'dir', 'RelativeDest': 'secrets'},
            {'GetterSource': origin.url + '/one.gz', 'GetterMode': 'file', 'RelativeDest': 'local/one'},
            {'GetterSource': origin.url + '/a.zip', 'GetterOptions': {'archive': 'false', 'filename': 'n'}},
        ]
        origin.files['/sums'] = b'0' * 64 + b'  other\n' + hashlib.sha256(zstd).hexdigest().encode() + b' *z\n'
        expected.update({'local/zst/f': b'zst', 'secrets/d/f': b'zip', 'local/one': b'one',
                         'local/n': packed.getvalue()})
        node.run_job(service(task(*artifacts)))
        wait_for('the task', node.running)
        for name, content in expected.items():
            assert read(path_of(node, name)) == content, name


def repository_is_cloned():
    with opened() as (node, origin):
        repository = os.path.join(node.dir, 'repository')
        git = ['git', '-C', repository, '-c', 'user.name=t', '-c', 'user.email=t@t']
        subprocess.run(['git', 'init', '-q', '-b', 'main', repository], check=True)
        for content in ('first', 'second'):
            with open(os.path.join(repository, 'file'), 'w') as out:
                out.write(content)
            subprocess.run(git + ['add', '.'], check=True)
            subprocess.run(git + ['commit', '-q', '-m', content], check=True)
            subprocess.run(git + ['tag', content], check=True)
        os.mkdir(os.path.join(repository, 'part'))
        with open(os.path.join(repository, 'part', 'file'), 'w') as out:
            out.write('beside')
        os.symlink('/etc/passwd', os.path.join(repository, 'outside'))
        subprocess.run(git + ['checkout', '-q', '-b', 'beside'], check=True)
        subprocess.run(git + ['add', '.'], check=True)
        subprocess.run(git + ['commit', '-q', '-m', 'beside'], check=True)
        subprocess.run(git + ['checkout', '-q', 'main'], check=True)
        source = 'git::file://' + repository
        node.run_job(service(task({'GetterSource': source, 'RelativeDest': 'local/new'},
                                  {'GetterSource': source, 'GetterOptions': {'ref': 'first'},
                                   'RelativeDest': 'local/old'},
                                  {'GetterSource': source, 'RelativeDest': 'local/shallow',
                                   'GetterOptions': {'ref': 'first', 'depth': '1'}},
                                  {'GetterSource': source + '//part', 'RelativeDest': 'local/part',
                                   'GetterOptions': {'ref': 'beside', 'depth': '1'}})))
        wait_for('the task', lambda: node.running() or failure(node))
        assert failure(node) is None, failure(node)
        assert read(path_of(node, 'local', 'shallow', 'file')) == b'first'
        assert os.listdir(path_of(node, 'local', 'part')) == ['file']
        assert read(path_of(node, 'local', 'part', 'file')) == b'beside'
        assert read(path_of(node, 'local', 'new', 'file')) == b'second'
        assert read(path_of(node, 'local', 'old', 'file')) == b'first'
        assert sorted(os.listdir(path_of(node))) == ['local', 'secrets', 'tmp'], 'left behind'
        node.run_job(service(task({'GetterSource': source,
                                   'GetterOptions': {'checksum': 'md5:' + '0' * 32}})))
        wait_for('the refusal', lambda: 'checksum cannot be asked' in (failure(node) or ''))


def directory_of_an_archive_is_what_stands_behind_two_slashes():
    with opened() as (node, origin):
        origin.files['/a.tar.gz'] = tar(('./top/', link('', tarfile.DIRTYPE)), ('./top/in/a', b'a'),
                                        ('top/in/up', link('a')),
                                        ('top/in/again', link('top/in/a', tarfile.LNKTYPE)),
                                        ('top/inside', b'x'), ('out', link('/etc')))
        source = origin.url + '/a.tar.gz//top/in?x=1'
        node.run_job(service(task({'GetterSource': source})))
        wait_for('the task', lambda: node.running() or failure(node))
        assert failure(node) is None, failure(node)
        place = path_of(node, 'local')
        assert sorted(os.listdir(place)) == ['a', 'again', 'up'], os.listdir(place)
        assert read(os.path.join(place, 'up')) == read(os.path.join(place, 'again')) == b'a'
        assert '/a.tar.gz?x=1' in origin.asked, origin.asked
        node.call('DELETE', '/v1/job/job?purge=true')
        wait_for('the alloc to be gone', lambda: not node.allocs())
        for part, said in (('top/none', 'no directory top/none'), ('top/in/a', 'is no directory'),
                           ('top/../in', 'goes up')):
            fails_with(node, origin, {'GetterSource': origin.url + '/a.tar.gz//' + part}, said)
        origin.files['/a.tar.gz'] = tar(('top/in/up', link('../inside')),
                                        ('top/inside', b'x'))
        fails_with(node, origin, {'GetterSource': source}, 'leads out of the archive')
        origin.files['/a.tar.gz'] = tar(('out', b'x'), ('top/in/up', link('out', tarfile.LNKTYPE)))
        fails_with(node, origin, {'GetterSource': source}, 'cannot write')


def what_is_no_file_is_not_read_as_one():
    with opened() as (node, origin):
        for path in (node.dir, '/dev/zero'):
            fails_with(node, origin, {'GetterSource': 'file://' + path}, 'it is no file')


def stop_does_not_wait_for_a_download():
    with opened() as (node, origin):
        node.run_job(service(task({'GetterSource': origin.url + '/hang'})))
        wait_for('the download', lambda: origin.asked)
        began = time.monotonic()
        node.call('DELETE', '/v1/job/job')
        wait_for('its end', node.dead)
        assert time.monotonic() - began < 60, 'it waited'
        wait_for('nobody to fetch', lambda: not fetchers(node))


def download_ends_with_the_daemon_and_begins_again():
    with opened() as (node, origin):
        node.run_job(service(task({'GetterSource': origin.url + '/hang'})))
        wait_for('the download', lambda: origin.asked and fetchers(node))
        node.kill()
        wait_for('nobody to fetch', lambda: not fetchers(node))
        node.start()
        wait_for('the second download', lambda: len(origin.asked) == 2)
        state = node.task('job', 'g', 't')
        assert events(state) == ['Received', 'Task Setup', 'Downloading Artifacts'], events(state)


if __name__ == '__main__':
    sys.exit(tap([
        what_was_fetched_is_there_once_and_stays,
        download_that_fails_follows_the_restart_policy,
        what_is_not_what_was_meant_is_not_taken,
        archives_that_lead_elsewhere_reach_nothing,
        what_is_larger_than_the_node_allows_is_not_taken,
        every_way_of_packing_is_unpacked,
        repository_is_cloned,
        directory_of_an_archive_is_what_stands_behind_two_slashes,
        what_is_no_file_is_not_read_as_one,
        stop_does_not_wait_for_a_download,
        download_ends_with_the_daemon_and_begins_again,
    ]))
