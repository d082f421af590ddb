#!/usr/bin/env python3
"""What strangers send is read by a process that has nothing, and whatever becomes of it the daemon goes on."""
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (BUILD, NO_RESCHEDULE, PATIENCE, Node, Refused, milliseconds,  # noqa: E402
                 raw_exec, restart_policy, service, sleeper, tap, wait_for)

PARSER = os.path.join(BUILD, 'cairn-parse')
JOB = 'job "a" {\n  group "g" {\n    task "t" {\n      driver = "raw_exec"\n      config {\n' \
      '        command = "%s"\n      }\n    }\n  }\n}\n'


def status_of(pid):
    with open('/proc/%d/status' % pid) as status:
        return dict(line.rstrip('\n').split(':\t', 1) for line in status if ':\t' in line)


def it_has_no_privilege_while_it_reads():
    ours, its = socket.socketpair()
    parser = subprocess.Popen([PARSER], preexec_fn=lambda: os.dup2(its.fileno(), 3), pass_fds=[3],
                              env={}, stdin=subprocess.DEVNULL)
    its.close()
    ours.sendall(b'o{"a":')
    wait_for('its walls', lambda: status_of(parser.pid)['Seccomp'] == '2')
    status = status_of(parser.pid)
    assert status['NoNewPrivs'] == '1' and status['CapEff'] == status['CapPrm'] == '0' * 16, status
    if os.getuid() == 0:
        users = set(status['Uid'].split() + status['Gid'].split())
        assert len(users) == 1 and users.isdisjoint({'0', '65534'}), users
        assert status['Groups'].strip() == '', status
        with open('/proc/%d/limits' % parser.pid) as limits:
            files = next(line for line in limits if line.startswith('Max open files'))
        assert files.split()[3:5] == ['0', '0'], files
    ours.sendall(b'1}')
    ours.shutdown(socket.SHUT_WR)
    assert ours.recv(100) == b'vo\1\0\0\0\1\0\0\0ai\1\0\0\0\0\0\0\0'
    assert parser.wait() == 0


def calls_of_the_system_are_not_its_own():
    """The same program under a tracer would do as well: what fails is told by its own filter."""
    ours, its = socket.socketpair()
    parser = subprocess.Popen([PARSER], preexec_fn=lambda: os.dup2(its.fileno(), 3), pass_fds=[3],
                              env={}, stdin=subprocess.DEVNULL)
    its.close()
    text = JOB.replace('"%s"', 'file("/etc/passwd")').replace('\n', '\\n').replace('"', '\\"')
    ours.sendall(b'j{"JobHCL":"' + text.encode() + b'"}')
    ours.shutdown(socket.SHUT_WR)
    answer = b''
    while part := ours.recv(65536):
        answer += part
    assert answer[:1] == b'r' and b'root:' not in answer, answer
    assert parser.wait() == 0


def with_parser(node, script):
    """The node, started with another program in the parser's place."""
    beside = os.path.join(node.dir, 'beside')
    os.mkdir(beside)
    for name in ('cairn-shim', 'cairn-fetch'):
        os.symlink(os.path.join(BUILD, name), os.path.join(beside, name))
    if script is not None:
        with open(os.path.join(beside, 'cairn-parse'), 'w') as file:
            file.write('#!/bin/sh\n' + script)
        os.chmod(os.path.join(beside, 'cairn-parse'), 0o755)
    command = node.command
    node.command = lambda: command() + ['-shim', os.path.join(beside, 'cairn-shim')]
    node.start()
    return beside


def refusal(node, path='/v1/jobs', body=None):
    try:
        node.put(path, body if body is not None else {'Job': service(sleeper())})
    except Refused as refused:
        return refused.status, refused.text
    raise AssertionError('it was not refused')


def one_that_was_got_hold_of_is_not_believed():
    for script, said in (('kill -SEGV $$\n', 'signal 11'), ('printf "vo\\001" >&3\n', 'did not answer'),
                         ('head -c 100m /dev/zero >&3\n', 'said too much'), ('exit 2\n', 'version'),
                         (None, 'cairn-parse')):
        node = Node()
        with_parser(node, script)
        for path, body in (('/v1/jobs', None), ('/v1/jobs/parse', {'JobHCL': JOB % 'true'})):
            status, text = refusal(node, path, body)
            assert status >= 500 and said in text, (script, status, text)
        assert node.get('/v1/jobs') == []
        node.finish()


def what_it_says_is_checked_as_what_was_sent():
    node = Node()
    with_parser(node, 'printf "vo\\001\\000\\000\\000\\003\\000\\000\\000Jobo\\000\\000\\000\\000" >&3\n')
    status, text = refusal(node)
    assert status == 400 and 'must not be empty' in text, text
    node.finish()


def one_that_hangs_holds_up_nobody_else():
    node = Node()
    beside = with_parser(node, 'exec sleep 1000\n')
    try:
        node.text('PUT', '/v1/jobs', {'Job': service(sleeper())}, timeout_s=1)
        raise AssertionError('it was answered')
    except (TimeoutError, OSError):
        pass
    assert node.call('GET', '/v1/jobs') == []
    os.unlink(os.path.join(beside, 'cairn-parse'))
    os.symlink(PARSER, os.path.join(beside, 'cairn-parse'))
    node.run_job(service(sleeper()))
    wait_for('the task', node.running)
    node.finish()


def many_at_once_are_all_read():
    node = Node()
    node.start()
    jobs = [dict(service(sleeper()), ID='j%d' % i, Name='j%d' % i) for i in range(40)]
    for job in jobs:
        job['TaskGroups'][0]['Count'] = 0
    connections = []
    for job in jobs:
        connections.append(subprocess.Popen(
            [os.path.join(BUILD, 'cairn'), 'job', 'run', '-detach', '-'],
            env=dict(os.environ, NOMAD_ADDR='http://127.0.0.1:%d' % node.port), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        connections[-1].stdin.write((JOB % 'true').replace('job "a"', 'job "%s"' % job['ID'])
                                    .replace('group "g" {', 'group "g" {\n    count = 0'))
        connections[-1].stdin.close()
    for connection in connections:
        assert connection.wait() == 0, connection.stdout.read()
    assert len(node.get('/v1/jobs')) == 40
    node.finish()


# A hundred thousand digits; and then looking for what is not among them again and again, or as many
# lists of maps as the steps of a template allow.
DIGITS = '{{ $x := printf "%01000d" 0 }}' + '{{ $x = replaceAll "0" "0000000000" $x }}' * 2
SPINS = DIGITS + '{{ $l := split "" $x }}{{ range loop 50000 }}{{ $y := in $l "1" }}{{ end }}'
GROWS = DIGITS + '{{ $x = replaceAll "0" "{},{},{}," $x | printf "[%s{}]" }}' + \
    ''.join('{{ $m%d := parseJSON $x }}' % i for i in range(8))


def with_template(job, data, **fields):
    """A job whose task renders DATA, and is not started again when that fails."""
    made = service(raw_exec('t', 'exec sleep 1000', KillTimeout=milliseconds(500), Templates=[
        dict({'EmbeddedTmpl': data, 'DestPath': 'local/out'}, **fields)]), restart=restart_policy(0, 0))
    made['ID'] = made['Name'] = job
    made['TaskGroups'][0]['ReschedulePolicy'] = NO_RESCHEDULE
    return made


def said_of_hooks(node, job):
    return [event['DisplayMessage'] for event in (node.task(job, 'g', 't') or {}).get('Events') or []
            if event['Type'] == 'Task hook failed']


def what_takes_too_much_to_render_fails_alone():
    node = Node()
    node.start()
    node.run_job(with_template('spins', SPINS))
    node.run_job(with_template('grows', GROWS))
    node.run_job(with_template('good', '{{ "a" | toUpper }}'))
    wait_for('the good one', lambda: node.running(job='good'))
    long, late, large = 'it takes more than 1000000 steps', 'too long to render', 'too much memory'
    for job, reasons in (('spins', [long, late]), ('grows', [large, late] if PATIENCE > 1 else [large])):
        wait_for('the end of it', lambda: node.dead(job=job))
        said = said_of_hooks(node, job)[0]  # a busy machine may not come as far as that
        assert any(reason in said for reason in reasons), said
    assert node.process.poll() is None and node.running(job='good')
    node.finish()


def texts_of_templates_are_read_when_a_job_is_registered():
    node = Node()
    node.start()
    for path in ('/v1/jobs', '/v1/job/bad/plan'):
        status, text = refusal(node, path, {'Job': with_template('bad', '{{ fil "x" }}')})
        assert status == 400 and 'job: group "g", task "t": template: line 1' in text, (status, text)
    told = node.put('/v1/validate/job', {'Job': dict(with_template('bad', '{{ }'), Priority=1000)})
    assert len(told['ValidationErrors']) == 2 and 'template: line 1' in told['ValidationErrors'][1], told
    node.run_job(dict(with_template('good', 'x'), cairnTemplates=['is not asked']))
    wait_for('the task', lambda: node.running(job='good'))
    node.finish()


# What is in the renderer's place asks for files that it has no business with, and says what it gets.
CURIOUS = '''#!%s
import os
def take(length):
    got = b""
    while len(got) < length:
        got += os.read(3, length - len(got)) or os._exit(0)
    return got
def message():
    head = take(5)
    return head[:1] + take(int.from_bytes(head[1:], "little"))
def say(kind, what):
    os.write(3, kind + len(what).to_bytes(4, "little") + what)
while True:
    while message()[:1] != b"t":
        pass
    got = []
    for path in (b"local/given", b"/etc/passwd", b"../../../../../../etc/passwd", b"local/link", b"local", b"local/../../x"):
        say(b"a", path)
        got.append(message())
    say(b"s", b";".join(got))
''' % sys.executable


def renderer_that_was_got_hold_of_gets_files_of_its_task_alone():
    node = Node()
    beside = with_parser(node, None)
    parser = os.path.join(beside, 'cairn-parse')
    os.symlink(PARSER, parser)
    job = with_template('job', '{{ env "NOMAD_TASK_NAME" }}')
    job['TaskGroups'][0]['Tasks'][0]['Config']['args'][1] = \
        'echo mine > local/given; ln -sf /etc/passwd local/link; touch local/there; exec sleep 1000'
    node.run_job(job)
    out = wait_for('the task', lambda: node.running() and os.path.join(
        node.data, 'alloc', node.alloc('job', 'g')['ID'], 't', 'local', 'out'))
    wait_for('what it makes', lambda: os.path.exists(os.path.join(os.path.dirname(out), 'there')))
    os.unlink(parser)
    with open(parser, 'w') as file:
        file.write(CURIOUS)
    os.chmod(parser, 0o755)
    node.put('/v1/client/allocation/%s/restart' % node.alloc('job', 'g')['ID'], {})
    wait_for('what it says', lambda: os.path.getsize(out) > 2)
    with open(out, 'rb') as file:
        answers = file.read().split(b';')
    assert [answer[:1] for answer in answers] == [b'f'] + 5 * [b'x'] and answers[0] == b'fmine\n', answers
    os.unlink(parser)
    os.symlink(PARSER, parser)
    node.finish()


if __name__ == '__main__':
    sys.exit(tap([
        it_has_no_privilege_while_it_reads,
        calls_of_the_system_are_not_its_own,
        one_that_was_got_hold_of_is_not_believed,
        what_it_says_is_checked_as_what_was_sent,
        one_that_hangs_holds_up_nobody_else,
        many_at_once_are_all_read,
        what_takes_too_much_to_render_fails_alone,
        texts_of_templates_are_read_when_a_job_is_registered,
        renderer_that_was_got_hold_of_gets_files_of_its_task_alone,
    ]))
