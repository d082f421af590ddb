#!/usr/bin/env python3
"""Who may do what: tokens and policies over the API and the command line, over a crash."""
import os
import subprocess
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import BUILD, Node, Refused, raw_exec, service, sleeper, tap, wait_for  # noqa: E402

TOKENS = 'acl {\n  enabled = true\n}\n'
READ = 'namespace "default" {\n  policy = "read"\n}\n'


def started(config=TOKENS):
    node = Node(config=config)
    node.start()
    node.token = node.put('/v1/acl/bootstrap')['SecretID']
    return node


def refused(status, call):
    try:
        call()
    except Refused as refusal:
        assert refusal.status == status, (refusal.status, refusal.text)
        return refusal.text
    raise AssertionError('it was not refused')


def ended(node):
    """What an agent said that did not start."""
    before = len(node.log(100000))
    node.start(wait=False)
    assert node.process.wait(60) != 0
    return node.log(100000)[before:]


def policy(node, name, rules):
    node.put('/v1/acl/policy/' + name, {'Name': name, 'Rules': rules})


def token(node, *policies, **fields):
    return node.put('/v1/acl/token', dict({'Type': 'client', 'Policies': policies}, **fields))


def without_the_block_nobody_asks_for_tokens():
    node = Node()
    node.start()
    assert refused(400, lambda: node.put('/v1/acl/bootstrap')) == 'ACL support disabled'
    assert refused(400, lambda: node.get('/v1/acl/tokens')) == 'ACL support disabled'
    node.token = 'any'
    node.run_job(service(sleeper()))
    wait_for('the task', node.running)
    node.finish()


def nobody_does_anything_and_the_first_token_all():
    node = Node(config=TOKENS)
    node.start()
    assert refused(403, lambda: node.run_job(service(sleeper()))) == 'Permission denied'
    assert 'Permission denied' in node.cli('job', 'status', check=False).stdout
    node.token = node.put('/v1/acl/bootstrap')['SecretID']
    assert 'already done' in refused(409, lambda: node.put('/v1/acl/bootstrap'))
    node.run_job(service(sleeper()))
    wait_for('the task', node.running)
    node.token = 'a' * 36
    assert refused(403, lambda: node.get('/v1/jobs')) == 'ACL token not found'
    node.token = None
    assert node.call('GET', '/v1/agent/health') is not None
    node.close()


def the_first_token_is_what_a_credential_says():
    """There is no moment in which another could be asked for; it is made once, and shown by nothing."""
    node = Node(config='acl {\n  enabled = true\n  bootstrap_secret_file = "credential:first"\n}\n')
    secret, path = str(uuid.uuid4()), os.path.join(node.dir, 'first')
    assert 'LoadCredential=first:PATH' in ended(node)
    node.environment['CREDENTIALS_DIRECTORY'] = node.dir
    for text in ('', secret[:-1], secret + '1'):
        with open(path, 'w') as out:
            out.write(text + '\n')
        said = ended(node)
        assert 'does not begin with a UUID' in said and secret[:8] not in said, said
    with open(path, 'w') as out:
        out.write(secret + '\n')
    node.start()
    assert 'already done' in refused(409, lambda: node.put('/v1/acl/bootstrap'))
    node.token = secret
    assert node.get('/v1/acl/token/self')['Type'] == 'management'
    node.run_job(service(sleeper()))
    wait_for('the task', node.running)
    pid = next(iter(node.payloads()))
    node.kill()
    os.unlink(path)  # it is not asked for a second time
    node.start()
    assert len(node.get('/v1/acl/tokens')) == 1
    with open('/proc/%d/environ' % pid, 'rb') as environ:
        assert b'CREDENTIALS_DIRECTORY' not in environ.read()
    assert secret not in node.log(100000)
    exported = node.cli('journal', 'export', '-dir', node.data).stdout
    assert 'acl/bootstrap' in exported and secret not in exported
    node.finish()


def two_people_have_what_their_policies_grant():
    node = started()
    first = node.token
    policy(node, 'readers', READ)
    policy(node, 'writers', READ.replace('read', 'write') + 'host_volume "*" { policy = "deny" }')
    reader, writer = token(node, 'readers')['SecretID'], token(node, 'writers')['SecretID']
    node.token = writer
    node.run_job(service(raw_exec('t', 'echo hidden; sleep 1000')))
    wait_for('the task', node.running)
    alloc = node.alloc('job', 'g')['ID']
    inside = ('alloc', 'exec', '-task', 't', alloc, '/bin/echo', 'inside')
    assert 'Permission denied' in node.cli(*inside, check=False).stdout  # a process of the host
    node.token = first
    assert 'inside' in node.cli(*inside).stdout
    node.token = reader
    assert node.get('/v1/jobs')[0]['ID'] == 'job' and node.alloc('job', 'g')['ID'] == alloc
    for method, path in (('GET', '/v1/client/fs/cat/%s?path=t/local' % alloc),
                         ('GET', '/v1/client/fs/logs/%s?task=t&type=stdout' % alloc),
                         ('PUT', '/v1/client/allocation/%s/restart' % alloc),
                         ('PUT', '/v1/allocation/%s/stop' % alloc),
                         ('DELETE', '/v1/job/job'), ('PUT', '/v1/system/gc'),
                         ('GET', '/v1/nodes'), ('GET', '/v1/acl/tokens'),
                         ('PUT', '/v1/acl/token')):
        assert refused(403, lambda: node.call(method, path, {} if method == 'PUT' else None)), path
    node.token = first
    node.call('DELETE', '/v1/acl/policy/readers')
    node.token = reader
    assert refused(403, lambda: node.get('/v1/jobs')) == 'Permission denied'
    node.token = first
    node.finish()


def tokens_outlive_the_daemon_and_their_secrets_are_nowhere():
    node = started()
    policy(node, 'readers', READ)
    secret = token(node, 'readers', Name='bob')['SecretID']
    first = node.token
    node.kill()
    for root, _, names in os.walk(node.data):
        for name in names:
            with open(os.path.join(root, name), 'rb') as file:
                text = file.read()
            assert secret.encode() not in text and first.encode() not in text, name
    node.start()
    assert node.get('/v1/acl/token/self')['Name'] == 'Bootstrap Token'
    node.token = secret
    assert node.get('/v1/jobs') == []
    node.kill()
    assert secret not in node.log(1 << 20)
    export = subprocess.run([os.path.join(BUILD, 'cairn'), 'journal', 'export', '-dir', node.data],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    assert 'acl/policy/readers' in export and 'secret/token' not in export, export[:2000]
    node.close()


def who_owns_the_data_directory_lets_in_another_first_token():
    node = started()
    lost, node.token = node.token, None
    with open(os.path.join(node.data, 'acl-bootstrap-reset'), 'w'):
        pass
    node.token = node.put('/v1/acl/bootstrap')['SecretID']
    assert node.token != lost and len(node.get('/v1/acl/tokens')) == 2
    assert not os.path.exists(os.path.join(node.data, 'acl-bootstrap-reset'))
    assert 'already done' in refused(409, lambda: node.put('/v1/acl/bootstrap'))
    node.close()


def nothing_listens_beyond_loopback_for_everybody():
    node = Node()
    done = subprocess.run([os.path.join(BUILD, 'cairn'), 'agent', '-data-dir', node.data, '-bind',
                           '0.0.0.0', '-http-port', str(node.port)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode != 0 and 'enable tokens' in done.stdout, done.stdout
    node.close()


def the_command_line_says_all_of_it():
    node = Node(config=TOKENS)
    node.start()
    shown = node.cli('acl', 'bootstrap').stdout
    node.token = [line.split()[-1] for line in shown.splitlines() if 'Secret ID' in line][0]
    rules = os.path.join(node.dir, 'readers.hcl')
    with open(rules, 'w') as out:
        out.write(READ)
    node.cli('acl', 'policy', 'apply', '-description', 'to look', 'readers', rules)
    assert 'to look' in node.cli('acl', 'policy', 'list').stdout
    assert 'policy = "read"' in node.cli('acl', 'policy', 'info', 'readers').stdout
    shown = node.cli('acl', 'token', 'create', '-name', 'bob', '-policy', 'readers', '-ttl',
                     '8h').stdout
    facts = dict(line.split('=', 1) for line in shown.splitlines() if '=' in line)
    facts = {name.strip(): value.strip() for name, value in facts.items()}
    assert facts['Policies'] == 'readers' and facts['Type'] == 'client', facts
    assert 'bob' in node.cli('acl', 'token', 'list').stdout
    assert facts['Secret ID'] not in node.cli('acl', 'token', 'info', facts['Accessor ID']).stdout
    assert 'robert' in node.cli('acl', 'token', 'update', '-name', 'robert',
                                facts['Accessor ID']).stdout
    own, node.token = node.token, facts['Secret ID']
    assert 'robert' in node.cli('acl', 'token', 'self').stdout
    assert 'Permission denied' in node.cli('acl', 'token', 'list', check=False).stdout
    assert 'No jobs' in node.cli('job', 'status').stdout
    node.token = own
    node.cli('acl', 'token', 'delete', facts['Accessor ID'])
    node.token = facts['Secret ID']
    assert 'ACL token not found' in node.cli('job', 'status', check=False).stdout
    node.token = own
    bad = os.path.join(node.dir, 'bad.hcl')
    with open(bad, 'w') as out:
        out.write('namespace "default" {\n  policy = "all"\n}\n')
    said = node.cli('acl', 'policy', 'apply', 'bad', bad, check=False).stdout
    assert "there is no policy 'all'" in said, said
    node.close()


sys.exit(tap([without_the_block_nobody_asks_for_tokens, nobody_does_anything_and_the_first_token_all,
              the_first_token_is_what_a_credential_says, two_people_have_what_their_policies_grant,
              tokens_outlive_the_daemon_and_their_secrets_are_nowhere,
              who_owns_the_data_directory_lets_in_another_first_token,
              nothing_listens_beyond_loopback_for_everybody, the_command_line_says_all_of_it]))
