#!/usr/bin/env python3
"""What a volume is mounted with in secret is told to its plugin and to nobody else: not by the API, a
command, a log, the journal's tools, an export, a file that others may read, a process's arguments or
environment, before, in and after a call, over crashes of the daemon and a damaged journal."""
import json
import os
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Refused, flip, tap, wait_for  # noqa: E402
from storage import Storage, await_sleepers, await_statuses, job, sleeper_pids, stop  # noqa: E402

NOBODY = 65534
FILE = '''
id          = "%(id)s"
name        = "%(id)s"
type        = "csi"
plugin_id   = "test"
external_id = "%(id)s"
capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}
mount_options {
  mount_flags = ["password=%(flag)s"]
}
secrets {
  key = "%(key)s"
}
'''


class Kept:
    """A storage, and two secrets that no other process of this host has."""

    def __init__(self):
        self.storage = Storage('file', 'json', 'api')
        self.node = self.storage.node
        tag = os.urandom(6).hex()
        self.key, self.flag = 'hunter-' + tag, 'sesame-' + tag

    def file(self, name, text):
        """One that only who has them may read."""
        path = self.storage.path(name)
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), 'w') as out:
            out.write(text)
        return path

    def volume(self, name):
        return {'ID': name, 'Name': name, 'ExternalID': name, 'PluginID': 'test',
                'Secrets': {'key': self.key},
                'MountOptions': {'MountFlags': ['password=' + self.flag]},
                'RequestedCapabilities': [{'AccessMode': 'single-node-writer',
                                           'AttachmentMode': 'file-system'}]}

    def has(self, text):
        return self.key in text or self.flag in text

    def answers(self):
        """All of the API that is no stream, a log of its own or a payload's file."""
        node = self.node
        own = node.get('/v1/nodes')[0]['ID']
        paths = ['jobs', 'allocations', 'allocations?task_states=true&resources=true', 'evaluations',
                 'nodes', 'node/' + own, 'node/%s/allocations' % own, 'client/stats', 'agent/self',
                 'agent/members', 'metrics', 'metrics?format=prometheus', 'deployments', 'volumes?type=csi',
                 'volumes?type=host', 'plugins?type=csi', 'plugin/csi/test', 'event/stream?index=1']
        for name in [volume['ID'] for volume in node.get('/v1/volumes?type=csi')]:
            paths.append('volume/csi/' + name)
        for name in [found['ID'] for found in node.get('/v1/jobs')]:
            paths += ['job/' + name + part for part in
                      ('', '/allocations', '/evaluations', '/summary', '/versions', '/deployments')]
        for alloc in node.allocs():
            paths += ['allocation/' + alloc['ID'], 'evaluation/' + alloc['EvalID']]
        for path in paths:
            if path.startswith('event/'):
                done = subprocess.run(['curl', '-sN', '--max-time', '1',
                                       'http://127.0.0.1:%d/v1/%s' % (node.port, path)],
                                      check=False, stdout=subprocess.PIPE, text=True)
                yield path, done.stdout
                continue
            try:
                yield path, node.text('GET', '/v1/' + path)
            except Refused as answer:  # an evaluation of a daemon that died
                assert answer.status == 404 and path.startswith('evaluation/'), path

    def commands(self):
        """Those that ask a daemon."""
        words = [('node', 'status', '-self', '-verbose'), ('volume', 'status', '-type', 'csi'),
                 ('plugin', 'status', '-verbose', 'test'), ('status',), ('operator', 'metrics')]
        for name in [volume['ID'] for volume in self.node.get('/v1/volumes?type=csi')]:
            words += [('volume', 'status', name), ('volume', 'status', '-json', name),
                      ('volume', 'status', '-verbose', name)]
        for alloc in self.node.allocs():
            words += [('alloc', 'status', '-verbose', alloc['ID']), ('alloc', 'status', '-json', alloc['ID']),
                      ('job', 'inspect', alloc['JobID']), ('job', 'status', '-verbose', alloc['JobID'])]
        for one in words:
            yield ' '.join(one), self.node.cli(*one, check=False).stdout

    def tools(self):
        """Those that read the journal, whether somebody writes it or not."""
        node, out = self.node, os.path.join(self.node.dir, 'export')
        page = os.path.join(node.dir, 'page')
        there = ('-dir', node.data)
        for path, words in ((out, ('export', '-out', out)), (page, ('timeline', '-html', page))):
            if os.path.exists(path):
                os.unlink(path)
            node.cli('journal', *words, *there, check=False)  # 1 of one that is damaged
            with open(path) as file:
                yield path, file.read()
        with open(out) as file:
            ids = [(line['entry']['kind'], line['entry']['id']) for line in map(json.loads, file)
                   if line.get('table') == 'state']
        assert ids
        words = [('list',), ('list', '-json'), ('log',), ('log', '-json'), ('log', '-v'), ('stats',),
                 ('stats', '-json'), ('restore',), ('restore', '-json'), ('timeline',), ('verify',),
                 ('quarantine',), ('quarantine', '-json')]
        words += [('at', '-all', '-0s'), ('at', '-json', '-0s'), ('diff', '+0s', '-0s')]
        words += [('show', '-all', *form, '-kind', kind, name) for kind, name in ids
                  for form in ((), ('-json',))]
        for verb, *rest in words:
            done = node.cli('journal', verb, *there, *rest, check=False)
            yield ' '.join([verb] + rest), done.stdout
        copy = os.path.join(node.dir, 'copy')
        if not os.path.exists(copy):
            node.cli('journal', 'import', '-dir', copy, out, check=False)

    def files(self):
        """None is for others, and who is nobody finds none."""
        for root, _, names in os.walk(self.node.dir):
            for path in [os.path.join(root, name) for name in names]:
                try:
                    if not stat.S_ISREG(os.lstat(path).st_mode) or path.endswith('.last'):
                        continue  # what the plugin of the test writes down itself
                    with open(path, 'rb') as file:
                        text = file.read().decode(errors='replace')
                    mode = stat.S_IMODE(os.stat(path).st_mode)
                except FileNotFoundError:
                    continue
                if self.has(text):
                    assert mode & 0o077 == 0, '%s has mode %o' % (path, mode)
        found = subprocess.run(['grep', '-rlaF', '-e', self.key, '-e', self.flag, self.node.dir,
                                '/run/cairn'], check=False, user=NOBODY, group=NOBODY, extra_groups=[],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        assert [path for path in found.splitlines() if not path.endswith('.last')] == [], found

    def processes(self):
        for pid in filter(str.isdigit, os.listdir('/proc')):
            for name in ('cmdline', 'environ'):
                try:
                    with open('/proc/%s/%s' % (pid, name), 'rb') as file:
                        text = file.read().decode(errors='replace')
                except (FileNotFoundError, ProcessLookupError, PermissionError):
                    continue
                assert not self.has(text), (pid, name)

    def stays(self, when):
        """Nobody can tell, whoever runs at this moment."""
        shown = list(self.tools()) + [('what it says', self.node.log(1 << 22))]
        if self.node.alive():
            shown += list(self.answers()) + list(self.commands())
        assert all(text for name, text in shown if name in ('log', 'list', 'what it says')), when
        told = [name for name, text in shown if self.has(text)]
        assert not told, (when, told)
        self.files()
        self.processes()


def what_is_secret_is_told_to_the_plugin_alone():
    kept = Kept()
    storage, node = kept.storage, kept.node
    storage.run_plugin()
    node.cli('volume', 'register', kept.file('file.hcl', FILE % {
        'id': 'file', 'key': kept.key, 'flag': kept.flag}))
    node.put('/v1/volume/csi/api', {'Volumes': [kept.volume('api')]})
    node.cli('volume', 'register', kept.file('json.hcl', FILE % {
        'id': 'json', 'key': kept.key, 'flag': kept.flag}))
    kept.stays('registered')
    # The daemon dies in a call with them, and is not there.
    storage.next('NodeStageVolume', 'wait 3000')
    node.run_job(job('exec sleep 1000', 'api', name='api'))
    wait_for('the call', lambda: '> NodeStageVolume' in storage.read('calls'))
    kept.stays('in a call')
    node.kill()
    kept.stays('dead in a call')
    node.start()
    await_statuses(node, 'running', name='api')
    before = await_sleepers(node)
    kept.stays('mounted')
    # The plugin tells them itself.
    storage.next('NodeStageVolume', 'say 8 no room for %s' % kept.key,
                 'say 3 no mount -o password=%s with %s' % (kept.flag, kept.key))
    node.run_job(job('exec sleep 1000', 'file', name='file'))
    await_statuses(node, 'failed', name='file')
    why = json.dumps(node.task('file', 'g', 't'))
    assert 'no room for ***' in why and 'no mount -o *** with ***' in why, why
    kept.stays('said by the plugin')
    # What a damaged record says is put aside, and shown as far as it can be.
    alloc = node.alloc('api', 'g')['ID']
    node.kill()
    journal = os.path.join(node.data, 'client/journal/data.mdb')
    assert flip(journal, b'\x01' + (alloc + '/api').encode(), 24) > 0
    kept.stays('damaged')
    node.start()
    wait_for('its failure', lambda: node.get('/v1/allocation/' + alloc)['ClientStatus'] == 'failed')
    kept.stays('put aside')
    assert before
    for name in ('api', 'file'):
        stop(node, name)
    wait_for('the end of all', lambda: not sleeper_pids(node) and not storage.directories(), limit_s=90)
    kept.stays('let go')
    # To the plugin they were told.
    node.run_job(job('exec sleep 1000', 'json', name='json'))
    last = os.path.join(node.data, 'client', 'csi', 'plugins', node.alloc('plugin', 'g')['ID'],
                        'csi.sock.NodePublishVolume.last')

    def is_told():
        if not os.path.exists(last):
            return False
        with open(last) as file:
            text = file.read()
        return '"json"' in text and kept.key in text and kept.flag in text

    wait_for('the plugin to know them', is_told)
    await_statuses(node, 'running', name='json')
    # A daemon that has not mounted it hides them as well in what the plugin says of its end.
    node.kill()
    node.start()
    await_statuses(node, 'running', name='json')
    storage.next('NodeUnpublishVolume', 'say 13 busy -o password=%s with %s' % (kept.flag, kept.key))
    stop(node, 'json')
    wait_for('its words', lambda: 'busy -o *** with ***' in node.log(1 << 20))
    kept.stays('said to who came back')
    storage.finish()


sys.exit(tap([what_is_secret_is_told_to_the_plugin_alone]))
