#!/usr/bin/env python3
"""The journal is gone, cut off, or somebody else's; and readers of it die."""
import os
import random
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (Node, events, flip, free_port, raw_exec, service, start_ticks, tap,  # noqa: E402
                 wait_for)

# Ignores what it can, and has a child that left its session.
STUBBORN = 'trap "" TERM INT HUP; setsid sleep 3000 & echo x >> {}; while :; do sleep 0.1; done'


def journal_of(node):
    return os.path.join(node.data, 'client/journal')


def data_of(node):
    return os.path.join(journal_of(node), 'data.mdb')


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def write(path, content):
    with open(path, 'wb') as file:
        file.write(content)


def replaced(path, pattern, behind):
    """Makes '#' of the byte BEHIND the beginning of each PATTERN: of what is stored, and was."""
    content = bytearray(read(path))
    at = content.find(pattern)
    assert at >= 0, pattern
    while at >= 0:
        content[at + behind] = ord('#')
        at = content.find(pattern, at + 1)
    write(path, content)


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
        wait_for('its word', lambda: read(os.path.join(node.dir, 'starts')) == b'x\n' * 2)
        node.call('DELETE', '/v1/job/job?purge=true')
        wait_for('the allocs to be gone', lambda: not node.allocs())
        node.audit(mark)
        node.terminate()
        node.close()


def an_older_copy_beside_a_later_generation_doubles_nothing():
    """R-67: the journal knows of one start, and there were three; the third one's shim hangs."""
    node = Node()
    copy, log = os.path.join(node.dir, 'older'), os.path.join(node.dir, 'log')

    def words():
        return [line.split() for line in read(log).decode().splitlines()]

    def starts():
        return [pid for word, pid in words() if word == 'start'] if os.path.exists(log) else []

    node.start()
    node.run_job(service(raw_exec('t', 'echo start $$ >> {0}; trap "" TERM INT; while :; do '
                                  'sleep 0.05; echo alive $$ >> {0}; done'.format(log))))
    wait_for('the task', lambda: node.running() and starts())
    node.kill()
    shutil.copytree(journal_of(node), copy)
    node.start()
    for number in (1, 2):
        wait_for('the task', node.running)
        os.kill(int(starts()[-1]), signal.SIGKILL)
        wait_for('a restart', lambda: (node.running() or {}).get('Restarts') == number
                 and len(starts()) == number + 1)
    for shim in node.shims():
        os.kill(shim, signal.SIGSTOP)
    node.kill()
    shutil.rmtree(journal_of(node))
    shutil.copytree(copy, journal_of(node))
    node.start()
    wait_for('a start after it', lambda: len(starts()) == 4, 60)
    fourth = words().index(['start', starts()[-1]])
    wait_for('its life', lambda: len(words()) > fourth + 30)
    assert {pid for _, pid in words()[fourth:]} == {starts()[-1]}, 'two at a time'
    wait_for('the task', node.running)
    node.finish()


def a_journal_that_is_refused_is_salvaged():
    """R-23: what can be read of it is brought over, and what was refused is kept."""
    node = running_node()
    pid, data = node.await_pid('sleep 1000'), data_of(node)
    batch = raw_exec('t', 'echo x >> %s' % os.path.join(node.dir, 'batch'))
    node.run_job(dict(service(batch), ID='batch', Name='batch', Type='batch'))
    wait_for('the batch', lambda: node.dead(job='batch'))
    for number, head in enumerate((b'\0' * 8192, b'\0' * 4096, b'x' * 8192), 1):
        node.kill()
        refused = head + read(data)[len(head):]
        write(data, refused)
        copy = os.path.join(node.dir, 'salvaged-%d' % number)
        said = node.cli('journal', 'salvage', '-dir', node.data, copy)
        assert said.returncode == 0 and ' 0 machines lost' in said.stdout, said
        node.start()
        state = wait_for('the task', node.running)
        assert node.pid_of('sleep 1000') == pid and events(state).count('Started') == 1, state
        assert 'salvaged machines=' in node.log(), node.log()
        kept = os.path.join(journal_of(node), 'refused-%d.mdb' % number)
        assert read(kept) == refused, 'what was refused is not kept as it was'
        done = node.cli('journal', 'verify', '-dir', node.data)
        assert done.returncode == 0, done
    assert read(os.path.join(node.dir, 'batch')) == b'x\n', 'finished work ran again'
    node.finish()


def a_journal_cut_off_costs_what_is_gone():
    """R-23: a payload is found again or ended, and no other one beside it."""
    for part in (2, 3, 4):
        node = running_node(STUBBORN)
        wait_for('the payload', lambda: node.pid_of('sleep 3000') and shells(node))
        mark = node.node_mark()
        node.kill()
        whole = read(data_of(node))
        write(data_of(node), whole[:len(whole) * part // 5])
        node.start()

        def settled():
            live = [alloc for alloc in node.allocs() if alloc['ClientStatus'] == 'running']
            return len(shells(node)) == len(live) <= 1
        wait_for('as many payloads as are said to run', settled)
        for known in node.get('/v1/jobs'):
            node.call('DELETE', '/v1/job/%s?purge=true' % known['ID'])
        # One whose job is gone, too, is left to a collection.
        def collected():
            node.put('/v1/system/gc')
            return not node.allocs()
        wait_for('the allocs to be gone', collected)
        node.audit(mark)
        node.terminate()
        node.close()


def a_journal_of_which_nothing_can_be_read_is_refused_and_payloads_live():
    """R-23: the node says what is wrong and touches nothing; with a copy put back all is found."""
    node = running_node()
    pid, data = node.await_pid('sleep 1000'), data_of(node)
    node.kill()
    whole = read(data)
    for spoilt in (whole[:8192], b'x' * len(whole)):
        write(data, spoilt)
        node.start(wait=False)
        assert node.process.wait(timeout=60) == 1
        assert 'cannot start' in node.log() and journal_of(node) in node.log(), node.log()
        assert read(data) == spoilt, 'it wrote into what it refused'
        assert start_ticks(pid) is not None, 'the payload was ended'
    write(data, whole)
    node.start()
    state = wait_for('the task', node.running)
    assert node.pid_of('sleep 1000') == pid and events(state).count('Started') == 1
    node.finish()


def an_empty_data_file_is_as_good_as_none():
    """R-23, R-67: as a full disk or a loss of power may leave it at the first start."""
    node = running_node()
    pid = node.await_pid('sleep 1000')
    node.kill()
    write(data_of(node), b'')
    node.start()
    wait_for('the payload to be ended', lambda: start_ticks(pid) is None)
    assert node.allocs() == []
    node.finish()


def a_bit_flipped_anywhere_costs_one_alloc():
    """R-21, R-23: the daemon never dies of it, and what it does not cost does not notice."""
    node, pids = Node(), {}
    data = data_of(node)

    def run_missing():
        """Both jobs run, each with its payload: also one that the last restart is still ending."""
        for number, name in enumerate(('job', 'other')):
            if start_ticks(pids.get(name, 0)) is None:
                job = service(raw_exec('t', 'exec sleep %d' % (1000 + number)))
                job['ID'] = job['Name'] = name
                if name in pids:
                    node.call('DELETE', '/v1/job/%s?purge=true' % name)
                    wait_for('the old one to be gone', lambda: not node.allocs(name))
                node.run_job(job)
                pids[name] = node.await_pid('sleep %d' % (1000 + number))
        return all(node.running(job=name) for name in pids)

    def settled():
        """As many payloads as allocs that are said to run."""
        live = [name for name, pid in pids.items() if start_ticks(pid) is not None]
        said = [alloc['JobID'] for alloc in node.allocs() if alloc['ClientStatus'] == 'running']
        return sorted(live) == sorted(said) and live

    node.start()
    chance = random.Random(21)
    for _ in range(50):
        wait_for('both jobs', run_missing)
        node.kill()
        whole = read(data)
        used = [at for at, byte in enumerate(whole) if byte != 0]
        at = chance.choice(used) if chance.random() < 0.9 else chance.randrange(len(whole))
        spoilt = bytearray(whole)
        spoilt[at] ^= 1 << chance.randrange(8)
        write(data, spoilt)
        node.start(wait=False)
        wait_for('the daemon to answer', node.answers)
        assert start_ticks(pids['job']) or start_ticks(pids['other']), (at, node.log())
        wait_for('things to be as they are said to be', settled)
    node.finish()


def allocs_of_a_lost_job_can_be_seen_and_ended():
    """R-21: nothing runs that nobody can stop."""
    node = running_node()
    pid, alloc = node.await_pid('sleep 1000'), node.alloc('job', 'g')['ID']
    node.kill()
    assert flip(data_of(node), b'job/default/job', 24) > 0
    node.start()
    wait_for('the task', node.running)
    assert node.pid_of('sleep 1000') == pid and 'a job is lost' in node.log(), node.log()
    assert [job['ID'] for job in node.get('/v1/jobs')] == ['job']
    for path in ('', '/allocations', '/summary', '/versions', '/evaluations', '/deployments'):
        node.get('/v1/job/job' + path)
    assert alloc[:8] in node.cli('job', 'status', 'job').stdout
    node.put('/v1/allocation/%s/stop' % alloc)
    wait_for('the end', node.dead)
    assert len(node.allocs()) == 1, 'another was placed for a job that is not known'
    node.finish()


def a_second_daemon_on_the_directory_is_refused_at_once():
    """R-24: the first does not notice; after its death the next one starts."""
    node = running_node()
    pid, second = node.await_pid('sleep 1000'), node.command()
    second[second.index('-http-port') + 1] = str(free_port())
    done = subprocess.run(second, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 1 and str(node.process.pid) in done.stdout, done
    assert node.running() and node.pid_of('sleep 1000') == pid
    node.process.send_signal(signal.SIGSTOP)  # as one that is stopping, slowly
    done = subprocess.run(second, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
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
    replaced(data_of(node), b'"boot_id"', 0)
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
    data = data_of(node)
    sizes = []
    for _ in range(80):
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
    # Before the first are taken back each round adds as much.  What is freed is used again when it
    # is no longer pinned, so that the file reaches its size after a few times of that.
    pinned_by_half = (sizes[8] - sizes[3]) // 5 * 40
    assert sizes[-1] - sizes[39] < pinned_by_half // 4, sizes
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
        a_journal_that_is_refused_is_salvaged,
        an_older_copy_beside_a_later_generation_doubles_nothing,
        a_journal_cut_off_costs_what_is_gone,
        a_journal_of_which_nothing_can_be_read_is_refused_and_payloads_live,
        an_empty_data_file_is_as_good_as_none,
        a_bit_flipped_anywhere_costs_one_alloc,
        allocs_of_a_lost_job_can_be_seen_and_ended,
        a_second_daemon_on_the_directory_is_refused_at_once,
        the_nodes_identity_survives_a_crash_at_any_point_of_its_first_start,
        a_damaged_identity_is_made_anew_and_payloads_are_found,
        readers_killed_while_they_read_do_not_make_the_file_grow,
    ]))
