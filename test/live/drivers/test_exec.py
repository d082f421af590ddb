#!/usr/bin/env python3
"""Tasks of the driver exec on a real node: isolated from inside, kept over crashes, nothing left."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, Node, events, milliseconds, raw_exec, restart_policy,  # noqa: E402
                 service, start_ticks, tap, wait_for)


def isolated(name, script, **fields):
    """A task that runs SCRIPT with sh in a root of its own."""
    return raw_exec(name, script, Driver='exec', **fields)


def open_node(config=''):
    node = Node(config=config)
    os.chmod(node.dir, 0o711)  # tasks of nobody have to reach what is theirs
    node.start()
    return node


def in_task(node, *below):
    return os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'], 't', *below)


def said(node, name):
    path = in_task(node, 'local', name)
    wait_for(name, lambda: os.path.exists(path) and os.path.getsize(path) > 0)
    with open(path) as file:
        return file.read().split()


def mounts_below(path):
    with open('/proc/self/mountinfo') as table:
        return [line for line in table if path in line]


def a_task_that_names_no_user_is_nobodys_and_sees_its_own_directories():
    node = open_node()
    node.run_job(service(isolated('t', 'cd $NOMAD_TASK_DIR; echo $NOMAD_TASK_DIR $NOMAD_ALLOC_DIR '
                                       '$NOMAD_SECRETS_DIR $(id -un) $$ > said; '
                                       'touch $NOMAD_SECRETS_DIR/mine $NOMAD_ALLOC_DIR/data/mine; '
                                       'ls -d /root %s > /local/host 2>/dev/null; echo end >> host; '
                                       'exec sleep 1000' % node.dir)))
    assert said(node, 'said') == ['/local', '/alloc', '/secrets', 'nobody', '1']
    assert said(node, 'host') == ['end']
    assert os.listdir(in_task(node, 'secrets')) == ['mine']
    assert len(mounts_below(node.data)) == 1, mounts_below(node.data)  # secrets, and no root
    facts = node.get('/v1/node/%s' % node.get('/v1/nodes')[0]['ID'])
    assert facts['Attributes']['driver.exec'] == '1'
    assert facts['Drivers']['exec']['Healthy']
    node.finish()


def a_crash_is_not_noticed_and_the_end_is_complete():
    node = open_node()
    node.run_job(service(isolated('t', 'trap "exit 3" TERM; setsid sleep 2000 & echo up > '
                                       '/local/up; while :; do wait; done',
                                  KillSignal='SIGTERM', KillTimeout=milliseconds(5000)),
                         restart=restart_policy(0)))
    said(node, 'up')
    def ours():
        return {pid: start_ticks(pid) for pid, line in node.payloads().items()
                if line.startswith(('/bin/sh', 'sleep 2000'))}

    wait_for('the program', lambda: 'sleep 2000' in node.payloads().values())
    before = ours()
    assert len(before) == 2, node.payloads()
    for _ in range(3):
        node.kill()
        node.start()
    assert ours() == before
    node.call('DELETE', '/v1/job/job')
    wait_for('its end', lambda: node.alloc('job', 'g')['ClientStatus'] == 'complete')
    assert node.payloads() == {}
    state = node.alloc('job', 'g')['TaskStates']['t']
    assert 'Killed' in events(state), state
    assert mounts_below(node.data) == []
    node.finish()


def memory_beyond_the_limit_ends_the_task_and_is_told():
    node = open_node()
    task = isolated('t', 'head -c 400m /dev/zero | tail -c 300m',
                    Resources={'CPU': 50, 'MemoryMB': 32})
    node.run_job(service(task, restart=restart_policy(0), ReschedulePolicy=NO_RESCHEDULE))
    wait_for('its end', lambda: node.alloc('job', 'g')['ClientStatus'] == 'failed')
    told = json.dumps(node.alloc('job', 'g')['TaskStates']['t']['Events'])
    assert 'OOM Killed' in told, told
    node.finish()


def what_a_node_allows_bounds_what_tasks_ask_for():
    node = open_node('''plugin "exec" {
  config {
    allow_caps       = ["chown", "net_raw"]
    default_pid_mode = "host"
  }
}
client {
  chroot_env {
    "/usr"   = "/usr"
    "/lib"   = "/lib"
    "/lib64" = "/lib64"
    "/bin"   = "/bin"
    "/etc/hostname" = "/opt/of/the/host"
  }
}
''')
    script = ('grep CapBnd /proc/self/status > /local/caps; test ! -e /etc && '
              'cat /opt/of/the/host > /local/host; kill -0 %d && echo seen > /local/pids; '
              'exec sleep 1000' % node.process.pid)
    node.run_job(service(isolated('t', script, User='daemon')))
    assert said(node, 'caps')[1] == '%016x' % 1
    with open('/etc/hostname') as file:
        assert said(node, 'host') == [file.read().strip()]
    assert not os.path.exists(in_task(node, 'local', 'pids'))  # a user of its own cannot signal
    task = isolated('t', 'exec sleep 1000')
    task['Config']['cap_add'] = ['sys_admin']
    other = dict(service(task, restart=restart_policy(0)), ID='other', Name='other')
    node.run_job(other)
    wait_for('the refusal', lambda: 'does not allow the capability cap_sys_admin'
             in json.dumps(node.alloc('other', 'g')['TaskStates']))
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it makes namespaces')
        sys.exit(77)
    sys.exit(tap([
        a_task_that_names_no_user_is_nobodys_and_sees_its_own_directories,
        a_crash_is_not_noticed_and_the_end_is_complete,
        memory_beyond_the_limit_ends_the_task_and_is_told,
        what_a_node_allows_bounds_what_tasks_ask_for,
    ]))
