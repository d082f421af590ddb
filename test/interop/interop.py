#!/usr/bin/env python3
"""Asks a real Nomad agent and cairn the same, about the same job, and prints by field what they answer
otherwise.

usage: test/interop/interop.py --nomad PATH

Both run in a network, mounts and processes of their own, and end with it.  Compared are logs, files,
commands in tasks, statistics and events: the status of each answer, its fields and their types, and
the values of those that do not depend on the machine and the moment.  What may differ is in REASONS;
it ends with 1 if anything else does.  Where there is no Nomad it says so and is skipped.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'live'))
from lib import BUILD, Node, wait_for  # noqa: E402

SKIPPED = 77
INSIDE = 'CAIRN_INTEROP_INSIDE'
NOMAD_CONFIG = '''
data_dir = "%s"
client {
  options {
    "fingerprint.denylist" = "env_aws,env_gce,env_azure,env_digitalocean,consul,vault,cni"
  }
}
plugin "raw_exec" {
  config {
    enabled = true
  }
}
'''
SAYING = ('for i in 1 2 3; do echo "line $i"; done; echo wrong >&2; echo kept > $NOMAD_TASK_DIR/file; '
          'mkdir $NOMAD_TASK_DIR/below; ln -s file $NOMAD_TASK_DIR/link; ln -s /etc $NOMAD_TASK_DIR/out; '
          'touch $NOMAD_ALLOC_DIR/data/empty; exec sleep 1000')


def job():
    task = {'Name': 't', 'Driver': 'raw_exec', 'User': '',
            'Config': {'command': '/bin/sh', 'args': ['-c', SAYING]},
            'Resources': {'CPU': 50, 'MemoryMB': 32}}
    return {'ID': 'job', 'Name': 'job', 'Type': 'service', 'Datacenters': ['dc1'],
            'TaskGroups': [{'Name': 'g', 'Count': 1, 'Tasks': [task]}]}


class Agent:
    """One of the two."""

    def __init__(self, name, port):
        self.name, self.url, self.alloc = name, 'http://127.0.0.1:%d' % port, None

    def ask(self, method, path, body=None, timeout_s=10):
        """(status, text) of an answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path.replace('ALLOC', self.alloc or ''), data=data,
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return answer.status, answer.read().decode(errors='replace')
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors='replace')

    def get(self, path):
        return json.loads(self.ask('GET', path)[1])

    def is_ready(self):
        try:
            return any(node['Status'] == 'ready' for node in self.get('/v1/nodes'))
        except (OSError, ValueError):
            return False

    def run(self):
        status, text = self.ask('PUT', '/v1/jobs', {'Job': job()})
        assert status == 200, (self.name, status, text)

        def running():
            allocs = self.get('/v1/allocations')
            return allocs[0]['ID'] if allocs and allocs[0]['ClientStatus'] == 'running' else None

        self.alloc = wait_for('the job on ' + self.name, running, 60, 0.2)
        time.sleep(1)  # it says all that it has to say

    def command(self, program, *words):
        done = subprocess.run([program, *(word.replace('ALLOC', self.alloc) for word in words)],
                              env=dict(os.environ, NOMAD_ADDR=self.url), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
        return {'stdout': done.stdout, 'stderr': done.stderr, 'exit code': done.returncode}

    def events(self, topics, act):
        """What is streamed while ACT is done and two seconds later."""
        heard, enough = [], threading.Event()
        connection = urllib.request.urlopen(self.url + '/v1/event/stream?' + '&'.join(
            'topic=' + topic for topic in topics), timeout=30)

        def listen():
            try:
                for line in connection:
                    heard.extend(json.loads(line).get('Events') or [])
                    if enough.is_set():
                        return
            except (OSError, ValueError, AttributeError):
                pass  # it was closed meanwhile

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        act()
        time.sleep(4)
        enough.set()
        return heard


# --- comparing ---

def kind(value):
    return {bool: 'bool', int: 'number', float: 'number', str: 'text', type(None): 'null',
            list: 'list', dict: 'object'}[type(value)]


def fields(value, path=''):
    """(path, leaf) of all that is in VALUE; elements of lists are [], numbers as names are N."""
    if isinstance(value, dict) and value:
        for name, member in value.items():
            name = 'N' if name.isdigit() else name
            yield from fields(member, '%s.%s' % (path, name) if path else name)
    elif isinstance(value, list) and value:
        for member in value:
            yield from fields(member, path + '[]')
    else:
        yield path or '(all of it)', value


# What depends on the machine or the moment.
OF_ITS_OWN = re.compile(r'(ID|Index|Time|Timestamp|At|Name|Device|Mountpoint|Hash|Key|Offset)s?$|^Data$'
                        r'|UUID|FilterKeys|SecretID|DisplayMessage|ContentType')


MOMENT = 'which of its steps are told depends on the moment'
OF_THE_TASK = 'statistics are those of the task, not of each process in it'
ASKED_FOR_NONE = 'a task that is not there is left out, and not counted as zero'

# What differs, and may: (what was asked, field) -> why.
REASONS = [
    ('', r'^(text|stderr)$', 'errors have words of their own'),
    ('/v1/client/fs/cat/', r'^status$', 'an error has the status of an error'),
    ('/v1/client/fs/ls/', r'FileMode$', "a task's directory belongs to its user"),
    ('', r'MemoryStats\.Measured\[\]$', 'what is used is measured for each driver'),
    ('stats', r'Tasks\.t\.Pids\.', OF_THE_TASK),
    ('stats?task=none', r'Measured', ASKED_FOR_NONE),
    ('/v1/client/stats', r'^body\.CPU\[\]\.Total$', 'who knows Nomad 1 only finds it under this name'),
    ('Allocation/', r'(ClientDescription|ClientStatus|DesiredDescription|State|DeploymentStatus.*)$', MOMENT),
    ('Allocation/', r'Metrics\.ScoreMetaData', 'one node is not scored'),
    ('Allocation/', r'SigningKeyID$', 'tasks get no identities yet'),
    ('Job/', r'\.Identity\.', 'tasks get no identities yet'),
    ('Job/JobDeregistered', r'Job\.Stable$', 'a stop makes no version, so that it is still the one that was good'),
    ('Job/', r'Update\.HealthCheck$', 'what is not said is filled in at once'),
]
# The types of events that only one of them tells, and may.
REASONS_OF_TYPES = {
    'Allocation/PlanResult': 'an order is told as the update that it is',
    'Deployment/AllocationUpdated': 'a deployment is told when it has changed',
    'Deployment/PlanResult': 'a deployment is told when it has changed',
    'Deployment/DeploymentStatusUpdate': 'a deployment is told when it has changed',
    'Job/AllocationUpdated': 'a job is told when somebody has changed it',
    'Job/EvaluationUpdated': 'a job is told when somebody has changed it',
    'Job/JobRegistered': 'a job is told when somebody has changed it',
    'Job/PlanResult': 'a job is told when somebody has changed it',
    'Node/AllocationUpdated': 'a node is told when it has changed',
    'Node/NodeRegistration': 'a node is told when it has changed',
    'Node/NodeStreamEvent': 'a node is told when it has changed',
}


def reason_of(what, path):
    return next((why for asked, field, why in REASONS if asked in what and re.search(field, path)), None)


def is_empty(values):
    """To a client that knows the types, it is as if it was left out."""
    return all(value in (None, '', 0, False, [], {}) for value in values)


def shown(value):
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + '...'


def differences(theirs, ours):
    """(path, line) of each, and how many fields are the same."""
    known = [{}, {}]
    for values, answer in zip(known, (theirs, ours)):
        for path, value in fields(answer):
            values.setdefault(path, []).append(value)
    lines, same = [], 0
    for path in sorted(known[0].keys() | known[1].keys()):
        left, right = known[0].get(path), known[1].get(path)
        if is_empty(left or []) and is_empty(right or []):
            same += 1
            continue
        if left is None or right is None:
            lines.append((path, '%-58s only %s: %s' % (path, 'cairn' if left is None else 'Nomad',
                                                      shown((left or right)[0]))))
            continue
        kinds = [{kind(value) for value in values} for values in (left, right)]
        if not kinds[0] & kinds[1]:
            lines.append((path, '%-58s Nomad: %s, cairn: %s' % (path, shown(left[0]), shown(right[0]))))
        elif kinds[0] | kinds[1] <= {'text', 'bool'} and not OF_ITS_OWN.search(path) and \
                set(left) != set(right):
            lines.append((path, '%-58s Nomad: %s, cairn: %s' % (path, shown(sorted(set(left), key=str)),
                                                               shown(sorted(set(right), key=str)))))
        else:
            same += 1
    return lines, same


class Report:
    def __init__(self):
        self.same = self.different = self.excused = 0

    def note(self, line, why):
        self.excused += why is not None
        self.different += why is None
        print('    %s%s' % (line, ': ' + why if why else ' !'))

    def add(self, what, theirs, ours):
        lines, same = differences(theirs, ours)
        self.same += same
        print('%-66s %3d the same%s' % (what, same, ', %d not' % len(lines) if lines else ''))
        for path, line in lines:
            self.note(line, reason_of(what, path))


def neutral(agent, text):
    return text.replace(agent.alloc, 'ALLOC').replace(agent.alloc[:8], 'ALLOC')


def answer_of(agent, path):
    """The status, and what is in the answer: JSON, frames of a stream, or text."""
    status, text = agent.ask('GET', path)
    try:
        return {'status': str(status), 'body': json.loads(text)}
    except ValueError:
        frames = re.findall(r'\{[^{}]*\}', text)
        if frames and 'Data' in frames[0]:
            return {'status': str(status), 'frames': [json.loads(frame) for frame in frames]}
        return {'status': str(status), 'text': neutral(agent, text).strip()}


LOGS = '/v1/client/fs/logs/ALLOC?task=t&type='
ANSWERS = {
    'logs': [LOGS + 'stdout&plain=true', LOGS + 'stderr&plain=true', LOGS + 'stdout',
             LOGS + 'stdout&plain=true&origin=end&offset=7', LOGS + 'stdout&plain=true&offset=5',
             LOGS + 'other', '/v1/client/fs/logs/ALLOC?task=none&type=stdout',
             '/v1/client/fs/logs/ALLOC?type=stdout', LOGS + 'stdout&origin=middle',
             '/v1/client/fs/logs/00000000-0000-0000-0000-000000000000?task=t&type=stdout'],
    'files': ['/v1/client/fs/ls/ALLOC?path=/', '/v1/client/fs/ls/ALLOC?path=t/local',
              '/v1/client/fs/ls/ALLOC?path=none', '/v1/client/fs/stat/ALLOC?path=t/local/file',
              '/v1/client/fs/stat/ALLOC?path=t/local/link', '/v1/client/fs/stat/ALLOC?path=alloc/data/empty',
              '/v1/client/fs/cat/ALLOC?path=t/local/file', '/v1/client/fs/cat/ALLOC?path=t/local/below',
              '/v1/client/fs/cat/ALLOC?path=t/local/none', '/v1/client/fs/cat/ALLOC?path=t/local/out/passwd',
              '/v1/client/fs/cat/ALLOC?path=../../../etc/passwd', '/v1/client/fs/cat/ALLOC?path=t/secrets/x',
              '/v1/client/fs/readat/ALLOC?path=t/local/file&offset=1&limit=2',
              '/v1/client/fs/readat/ALLOC?path=t/local/file&offset=1',
              '/v1/client/fs/stream/ALLOC?path=t/local/file&offset=0&follow=false'],
    'statistics': ['/v1/client/allocation/ALLOC/stats', '/v1/client/stats',
                   '/v1/client/allocation/ALLOC/stats?task=none'],
}
COMMANDS = {
    'commands in tasks': [
        ('alloc', 'exec', '-task', 't', 'ALLOC', '/bin/sh', '-c', 'echo out; echo err >&2; exit 7'),
        ('alloc', 'exec', '-task', 't', 'ALLOC', '/bin/sh', '-c', 'echo $NOMAD_TASK_NAME; basename $(pwd)'),
        ('alloc', 'exec', '-task', 't', 'ALLOC', '/no/such/program'),
        ('alloc', 'exec', '-task', 'none', 'ALLOC', '/bin/true')],
    'the same by the command line of Nomad': [
        ('alloc', 'logs', 'ALLOC', 't'), ('alloc', 'logs', '-stderr', 'ALLOC', 't'),
        ('alloc', 'logs', '-tail', '-n', '1', 'ALLOC', 't'), ('alloc', 'fs', 'ALLOC', 't/local/file'),
        ('alloc', 'fs', '-stat', 'ALLOC', 't/local/none')],
}
TOPICS = ['Job', 'Allocation', 'Deployment', 'Node']


def compare(nomad, cairn, program):
    report = Report()
    for area, paths in ANSWERS.items():
        print('\n== ' + area)
        for path in paths:
            report.add(path, answer_of(nomad, path), answer_of(cairn, path))
    for area, commands in COMMANDS.items():
        print('\n== ' + area)
        for words in commands:
            told = [{name: neutral(agent, value) if isinstance(value, str) else str(value)
                     for name, value in agent.command(program, *words).items()}
                    for agent in (nomad, cairn)]
            report.add(' '.join(words), *told)
    print('\n== events of a restart and of an end')
    told = []
    for agent in (nomad, cairn):
        heard = agent.events(TOPICS, lambda: (  # noqa: B023
            agent.ask('PUT', '/v1/client/allocation/ALLOC/restart', {}), time.sleep(1),
            agent.ask('DELETE', '/v1/job/job')))
        by_type = {}
        for event in heard:
            by_type.setdefault('%s/%s' % (event['Topic'], event['Type']), []).append(event)
        told.append(by_type)
    for name in sorted(told[0].keys() & told[1].keys()):
        report.add(name, told[0][name], told[1][name])
    for only, types, others in (('Nomad', *told), ('cairn', *reversed(told))):
        for name in sorted(types.keys() - others.keys()):
            report.note('only %s tells: %s' % (only, name), REASONS_OF_TYPES.get(name))
    print('\n%d fields and values are the same, %d differ for a reason, %d without one' %
          (report.same, report.excused, report.different))
    return report.different == 0


# --- the two of them ---


def inside(program):
    place = tempfile.mkdtemp(prefix='cairn-interop-')
    config, log = os.path.join(place, 'nomad.hcl'), os.path.join(place, 'nomad.log')
    with open(config, 'w') as file:
        file.write(NOMAD_CONFIG % os.path.join(place, 'data'))
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(('AWS_', 'NOMAD_', 'CONSUL_', 'VAULT_'))}
    theirs = None
    ours = Node()
    try:
        with open(log, 'w') as out:
            theirs = subprocess.Popen([program, 'agent', '-dev', '-config', config], stdout=out, stderr=out,
                                      stdin=subprocess.DEVNULL, env=clean)
        nomad, cairn = Agent('Nomad', 4646), Agent('cairn', ours.port)
        ours.start()

        def ready():
            if theirs.poll() is not None:
                with open(log) as said:
                    raise SystemExit('Nomad did not start:\n' + said.read()[-2000:])
            return nomad.is_ready()

        wait_for('Nomad', ready, 90, 0.3)
        print('Nomad %s, cairn %s' % (nomad.get('/v1/agent/self')['config']['Version']['Version'],
                                      subprocess.run([os.path.join(BUILD, 'cairn'), 'version'],
                                                     capture_output=True, text=True).stdout.split('\n')[0]))
        for agent in (nomad, cairn):
            agent.run()
        return compare(nomad, cairn, program)
    finally:
        if theirs is not None and theirs.poll() is None:
            theirs.terminate()
            try:
                theirs.wait(20)
            except subprocess.TimeoutExpired:
                theirs.kill()
        ours.close()
        for point in sorted((line.split()[4] for line in open('/proc/self/mountinfo')
                             if line.split()[4].startswith(place)), reverse=True):
            subprocess.run(['umount', '-l', point], check=False)
        shutil.rmtree(place, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('--nomad', metavar='PATH', help='the program of Nomad; without it the one in PATH')
    options = parser.parse_args()
    program = shutil.which(options.nomad or 'nomad')
    if program is None:
        print('skipped: there is no program %s to compare with: get one from '
              'https://releases.hashicorp.com/nomad and name it with --nomad PATH' % (options.nomad or 'nomad'))
        return SKIPPED
    if os.getuid() != 0:
        print('skipped: both run tasks in namespaces of their own, which needs root')
        return SKIPPED
    if INSIDE not in os.environ:
        os.environ[INSIDE] = '1'
        os.execvp('unshare', ['unshare', '--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc',
                              'sh', '-c', 'ip link set lo up; exec "$@"', 'interop', sys.executable,
                              os.path.abspath(__file__), '--nomad', os.path.abspath(program)])
    return 0 if inside(program) else 1


if __name__ == '__main__':
    sys.exit(main())
