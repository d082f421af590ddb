#!/usr/bin/env python3
"""The journal is gone, cut off, or somebody else's; and readers of it die."""
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import (Node, events, exit_codes, free_port, raw_exec, restart_policy, service,  # noqa: E402
                 sleeper, start_ticks, tap, wait_for)

# Ignores what it can, and has a child that left its session.
STUBBORN = 'trap "" TERM INT HUP; setsid sleep 3000 & echo x >> {}; while :; do sleep 0.1; done'


def journal_of(node):
    return os.path.join(node.data, 'client/journal')


def shells(node):
    return [pid for pid, line in node.payloads().items() if 'trap' in line]


def running_node(script='exec sleep 1000'):
    node = Node()
    node.start()
    node.run_job(service(raw_exec('t', script.format(os.path.join(node.dir, 'starts')))))
    wait_for('the task', node.running)
    return node


def a_journal_that_is_gone_beside_living_payloads_doubles_nothing():
    """R-67: everything of ours is ended, also what has lost its shim; then it may begin anew."""
    for shim_too in (False, True):
        node = running_node(STUBBORN)
        wait_for('the payload', lambda: node.pid_of('sleep 3000') and shells(node))
        old, mark = shells(node) + [node.pid_of('sleep 3000')], node.node_mark()
        node.kill()
        if shim_too:
            for pid in node.shims():
                os.kill(pid, signal.SIGKILL)
            os.kill(shells(node)[0], signal.SIGKILL)  # only what left its session is alive
        shutil.rmtree(journal_of(node))
        node.start()
        node.audit(mark)
        assert all(start_ticks(pid) is None for pid in old), node.payloads()
        assert node.allocs() == []
        node.run_job(service(raw_exec('t', STUBBORN.format(os.path.join(node.dir, 'starts')))))
        wait_for('the task', node.running)
        assert wait_for('one payload', lambda: len(shells(node)) == 1)
        assert [path for path in node.cgroups(mark) if not path.endswith('/shims')], 'another mark'
        node.call('DELETE', '/v1/job/job?purge=true')
        wait_for('the allocs to be gone', lambda: not node.allocs())
        node.audit(mark)
        node.terminate()
        node.close()


def a_journal_cut_off_is_refused_and_payloads_live():
    """R-23: the node says what is wrong and touches nothing; with the file whole all is found."""
    node = running_node()
    pid, data = node.await_pid('sleep 1000'), os.path.join(journal_of(node), 'data.mdb')
    node.kill()
    shutil.copy(data, node.dir)
    size = os.path.getsize(data)
    for spoil in ('cut', 'zeroed', 'empty'):
        with open(data, 'r+b') as file:
            if spoil == 'zeroed':
                file.write(b'\0' * 8192)
            else:
                file.truncate(size // 2 if spoil == 'cut' else 0)
        spoilt = open(data, 'rb').read()
        node.start(wait=False)
        if spoil != 'empty':  # which is what a new journal is
            assert node.process.wait(timeout=20) == 1
            assert 'cannot start' in node.log() and journal_of(node) in node.log(), node.log()
            assert open(data, 'rb').read() == spoilt, 'it wrote into what it refused'
            assert start_ticks(pid) is not None, 'the payload was ended'
            shutil.copy(os.path.join(node.dir, 'data.mdb'), data)
    wait_for('the daemon to answer', node.answers)
    wait_for('the payload to be ended', lambda: start_ticks(pid) is None)
    node.finish()


def a_damaged_journal_whole_again_finds_everything():
    """R-23: after the operator has put back a copy."""
    node = running_node()
    pid, data = node.await_pid('sleep 1000'), os.path.join(journal_of(node), 'data.mdb')
    node.kill()
    shutil.copy(data, node.dir)
    os.truncate(data, os.path.getsize(data) // 2)
    node.start(wait=False)
    assert node.process.wait(timeout=20) == 1
    shutil.copy(os.path.join(node.dir, 'data.mdb'), data)
    node.start()
    state = wait_for('the task', node.running)
    assert node.pid_of('sleep 1000') == pid and events(state).count('Started') == 1
    node.finish()


def a_second_daemon_on_the_directory_is_refused_at_once():
    """R-24: the first does not notice; after its death the next one starts."""
    node = running_node()
    pid, second = node.await_pid('sleep 1000'), node.command()
    second[second.index('-http-port') + 1] = str(free_port())
    done = subprocess.run(second, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=20)
    assert done.returncode == 1 and str(node.process.pid) in done.stdout, done
    assert node.running() and node.pid_of('sleep 1000') == pid
    node.process.send_signal(signal.SIGSTOP)  # as one that is stopping, slowly
    done = subprocess.run(second, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=20)
    assert done.returncode == 1, done
    node.kill()
    node.start()
    wait_for('the task', node.running)
    assert node.pid_of('sleep 1000') == pid
    node.finish()


def the_nodes_identity_survives_a_crash_at_any_point_of_its_first_start():
    """R-63: id and secret are one record, there before anybody is told the id."""
    for point in range(1, 100):
        node = Node()
        node.start(crash_at=point, wait=False)
        said = set()

        def died():
            if node.process.poll() is not None:
                return True
            try:
                said.add(node.get('/v1/agent/self')['stats']['client']['node_id'])
            except OSError:
                return False
            return said
        wait_for('an answer, or the end', died)
        crashed = not node.alive()
        if crashed:
            node.start()
            said.add(node.get('/v1/agent/self')['stats']['client']['node_id'])
        for _ in range(2):
            node.kill()
            node.start()
            said.add(node.get('/v1/agent/self')['stats']['client']['node_id'])
        assert len(said) == 1, said
        node.finish()
        if not crashed:
            return
    raise AssertionError('the first start never came to an end')


def a_damaged_identity_is_made_anew_and_payloads_are_found():
    """R-63, R-21: the id is another one, what runs is the same, and stays so."""
    node = running_node()
    pid, mark, shims = node.await_pid('sleep 1000'), node.node_mark(), node.shims()
    node.kill()
    with open(os.path.join(journal_of(node), 'data.mdb'), 'r+b') as file:
        data = file.read()
        at = data.find(b'"boot_id"')
        while at >= 0:  # wherever a page of it is or was
            file.seek(at)
            file.write(b'#')
            at = data.find(b'"boot_id"', at + 1)
    node.start()
    state = wait_for('the task', node.running)
    another = node.node_mark()
    assert another != mark and 'identity is damaged' in node.log(), node.log()
    for _ in range(2):
        assert node.pid_of('sleep 1000') == pid and node.shims() == shims
        assert events(state).count('Started') == 1 and state['Restarts'] == 0, state
        node.kill()
        node.start()
        state = wait_for('the task', node.running)
        assert node.node_mark() == another
    node.call('DELETE', '/v1/job/job?purge=true')
    wait_for('the allocs to be gone', lambda: not node.allocs())
    node.audit(mark)
    node.terminate()
    node.close()


def readers_killed_while_they_read_do_not_make_the_file_grow():
    """R-27: their slots are taken back while the daemon writes on."""
    node = running_node('while :; do sleep 0.01; done')
    alloc = node.alloc('job', 'g')['ID']
    data = os.path.join(journal_of(node), 'data.mdb')
    sizes = []
    for _ in range(40):
        readers = [subprocess.Popen([os.path.join(node.build, 'cairn'), 'journal', verb, *flags,
                                     '-dir', node.data], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                   for verb, *flags in (['log', '-f'], ['export'])]
        for reader in readers:
            reader.stdout.read(1)  # it is in the middle of it
            reader.kill()
            reader.wait()
            reader.stdout.close()
        for _ in range(5):
            node.put('/v1/client/allocation/%s/signal' % alloc, {'Signal': 'SIGCONT', 'Task': 't'})
        sizes.append(os.path.getsize(data))
    assert sizes[-1] - sizes[19] < sizes[19] // 2, sizes
    done = subprocess.run([os.path.join(node.build, 'cairn'), 'journal', 'verify', '-dir',
                           node.data], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0 and 'ok: ' in done.stdout, done
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it runs a node with real tasks')
        sys.exit(77)
    sys.exit(tap([
        a_journal_that_is_gone_beside_living_payloads_doubles_nothing,
        a_journal_cut_off_is_refused_and_payloads_live,
        a_damaged_journal_whole_again_finds_everything,
        a_second_daemon_on_the_directory_is_refused_at_once,
        the_nodes_identity_survives_a_crash_at_any_point_of_its_first_start,
        a_damaged_identity_is_made_anew_and_payloads_are_found,
        readers_killed_while_they_read_do_not_make_the_file_grow,
    ]))
