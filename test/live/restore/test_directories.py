#!/usr/bin/env python3
"""Directories, mounts and what hooks made: over restarts, over reboots, and when they are gone."""
import json
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (Node, events, exit_codes, raw_exec, restart_policy, service,  # noqa: E402
                 sleeper, start_ticks, tap, wait_for)

BOOTS = ['%d0000000-0000-4000-8000-000000000000' % i for i in range(1, 10)]


def alloc_dir(node):
    return os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'])


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return file.read().splitlines()


def an_ephemeral_disk_goes_on_with_the_next_alloc():
    """R-07: a sticky group's data, over updates, crashes and collections."""
    node = Node(config='client {\n  gc_max_allocs = 1\n}\n')
    node.start()
    script = 'trap "sleep 1; echo end-{0} >> $NOMAD_ALLOC_DIR/data/trail; exit 0" TERM; ' \
             'echo {0} >> $NOMAD_ALLOC_DIR/data/trail; echo {0} >> $NOMAD_TASK_DIR/own; ' \
             'while :; do sleep 0.05; done'

    def version(number, **disk):
        job = service(raw_exec('t', script.format(number), KillSignal='SIGTERM'))
        job['TaskGroups'][0]['EphemeralDisk'] = {'SizeMB': 300, **disk}
        node.run_job(job)

    def trail():
        running = [alloc['ID'] for alloc in node.allocs() if alloc['ClientStatus'] == 'running'
                   and alloc['DesiredStatus'] == 'run']
        return [lines(os.path.join(node.data, 'alloc', running[0], part)) for part in
                ('alloc/data/trail', 't/local/own')] if len(running) == 1 else None

    version(1, Sticky=True)
    wait_for('the first', lambda: trail() == [['1'], ['1']])
    version(2, Sticky=True)
    node.kill()  # while the first ends
    node.start()
    node.put('/v1/system/gc')
    wait_for('the second', lambda: trail() == [['1', 'end-1', '2'], ['1', '2']])
    version(3, Sticky=True)
    version(4, Migrate=True)  # before the third could begin
    node.put('/v1/system/gc')
    wait_for('the fourth', lambda: trail() == [['1', 'end-1', '2', 'end-2', '4'], ['1', '2', '4']])
    version(5)
    wait_for('one that begins with nothing', lambda: trail() == [['5'], ['5']])
    node.finish()


def a_disk_that_is_too_full_is_cleared_of_what_ended_first():
    small = tempfile.mkdtemp(prefix='cairn-full-')
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=40m', 'tmpfs', small], check=True)
    node = Node(config='client {\n  alloc_dir = "%s/alloc"\n  gc_interval = "100ms"\n'
                       '  gc_disk_usage_threshold = 60\n  gc_parallel_destroys = 1\n}\n' % small)
    try:
        node.start()
        for name, megabytes in (('first', 15), ('second', 15), ('third', 1)):
            job = service(raw_exec('t', 'head -c %dm /dev/zero > $NOMAD_ALLOC_DIR/data/much'
                                   % megabytes, LogConfig={'MaxFiles': 1, 'MaxFileSizeMB': 1}))
            job.update(ID=name, Name=name, Type='batch')
            job['TaskGroups'][0]['EphemeralDisk'] = {'SizeMB': 10}
            node.run_job(job)
            wait_for('the end of the %s' % name, lambda: name == 'second' or [
                a['ClientStatus'] for a in node.allocs(name)] == ['complete'])
        wait_for('the first to go', lambda: node.allocs('first') == [])
        wait_for('the end of the second', lambda: [
            a['ClientStatus'] for a in node.allocs('second')] == ['complete'])
        assert 'ended allocs are collected' in node.log()
        left = os.listdir(os.path.join(small, 'alloc'))
        assert len(left) == 2, left
        node.finish()
    finally:
        node.close()
        subprocess.run(['umount', small], check=True)
        os.rmdir(small)


def every_start_gets_what_the_first_one_got():
    """R-28: environment, directory and mounts of the payload, after restarts of the daemon."""
    node = Node()
    dump = os.path.join(node.dir, 'start')
    node.start()
    node.run_job(service(raw_exec(
        't', 'n=$(ls {0}* 2>/dev/null | wc -l); {{ env | sort; pwd; ls -ld "$NOMAD_SECRETS_DIR" '
        '"$NOMAD_TASK_DIR" "$NOMAD_ALLOC_DIR" | cut -c1-10; stat -f -c %T "$NOMAD_SECRETS_DIR"; '
        '}} > {0}$n.new; mv {0}$n.new {0}$n; exec sleep 1000'.format(dump),
        Env={'GREETING': 'hello ${NOMAD_ALLOC_INDEX}'})))
    for count in range(1, 4):
        wait_for('start %d' % count, lambda: os.path.exists(dump + str(count - 1))
                 and node.running() and node.pid_of('sleep 1000'))
        node.kill()
        node.start()
        wait_for('the task', node.running)
        os.kill(node.pid_of('sleep 1000'), signal.SIGKILL)  # the payload only
    wait_for('the last start', lambda: os.path.exists(dump + '3') and node.running()
             and node.pid_of('sleep 1000'))
    first = lines(dump + '0')
    assert 'GREETING=hello 0' in first and 'tmpfs' in first, first
    for count in range(1, 4):
        assert lines(dump + str(count)) == first, (first, lines(dump + str(count)))
    node.finish()


def two_reboots_then_the_end_leave_nothing():
    """R-29, R-65, R-16: mounts are made again, stale files are no obstacle, a mount that is not
    there is no failure of the cleanup."""
    node = Node()
    node.boot(BOOTS[0])
    node.start()
    node.run_job(service(raw_exec('t', 'stat -f -c %T "$NOMAD_SECRETS_DIR" >> said; '
                                       'echo "$NOMAD_ALLOC_ID" > "$NOMAD_SECRETS_DIR/mine" && '
                                       'exec sleep 1000'), restart=restart_policy(0)))
    wait_for('the task', node.running)
    home = alloc_dir(node)
    for count in (1, 2):
        wait_for('the payload', lambda: len(lines(home + '/t/said')) == count
                 and node.pid_of('sleep 1000'))
        node.reboot(BOOTS[count])
        assert os.listdir(os.path.join(node.data, 'client/shim')), 'no stale files to meet'
        node.start()
        wait_for('the task again', lambda: node.pid_of('sleep 1000') and node.running())
    assert len(lines(home + '/t/said')) == 3
    assert set(lines(home + '/t/said')) == {'tmpfs'}, lines(home + '/t/said')
    assert node.running()['Restarts'] == 0
    node.reboot(BOOTS[3])
    os.rmdir(home + '/t/secrets')
    node.start()
    wait_for('the task again', lambda: node.pid_of('sleep 1000') and node.running())
    subprocess.run(['nsenter', '-m', '-t', str(node.process.pid), 'umount', home + '/t/secrets'],
                   check=True)  # behind its back; a booted node has mounts of its own
    node.finish()
    assert not os.path.exists(home), os.listdir(home)


def hooks_that_could_not_run_again_do_not_touch_a_payload():
    """R-32: a directory that is read-only by now is no reason to stop what runs."""
    node = Node()
    node.start()
    node.run_job(service(sleeper(), restart=restart_policy(0)))
    wait_for('the task', node.running)
    pid, home = node.await_pid('sleep 1000'), alloc_dir(node)
    node.kill()
    subprocess.run(['mount', '--bind', home, home], check=True)
    subprocess.run(['mount', '-o', 'remount,bind,ro', home], check=True)
    try:
        for _ in range(2):
            node.start()
            wait_for('the restore to be over', lambda: 'restored tasks=1 lost=0'
                     in node.log().rpartition('restoring')[2])
            state = node.running()
            assert state and state['Restarts'] == 0 and events(state).count('Started') == 1
            assert node.pid_of('sleep 1000') == pid
            node.kill()
    finally:
        subprocess.run(['umount', home], check=True)
    node.start()
    node.finish()


def a_set_up_cut_off_that_then_fails_is_undone():
    """R-33: the daemon dies before the first hook, whose place is taken when it comes back."""
    for point in range(1, 100):
        node = Node()
        node.start(crash_at=point, wait=False)
        try:
            wait_for('the daemon', node.answers)
            node.run_job(service(sleeper(), restart=restart_policy(0)))
        except (AssertionError, OSError):
            pass  # it died before it could answer
        done = subprocess.run([os.path.join(node.build, 'cairn'), 'journal', 'list', '-json',
                               '-kind', 'alloc', '-dir', node.data], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        known = [json.loads(line) for line in done.stdout.splitlines()]
        if known:
            break
        node.close()
    assert known[0]['state'] == 'PREPARING', known
    home = os.path.join(node.data, 'alloc', known[0]['id'])
    assert not os.path.exists(home), 'the hook has run already'
    with open(home, 'w') as file:
        file.write('in its place')
    node.start()
    wait_for('the alloc to fail', lambda: node.get('/v1/allocation/' + known[0]['id'])
             ['ClientStatus'] == 'failed')
    assert not node.shims() and not node.running()
    node.finish()
    assert not os.path.exists(home)


def an_alloc_without_its_directory_fails_with_that_reason():
    """R-35: a reboot, and the file system of one alloc's directory is new; others start again."""
    node = Node()
    node.boot(BOOTS[0])
    node.start()
    node.run_job(service(sleeper()))
    other = service(raw_exec('t', 'exec sleep 2000'))
    other['ID'] = other['Name'] = 'other'
    node.run_job(other)
    wait_for('both', lambda: node.running() and node.running(job='other'))
    home, alloc = alloc_dir(node), node.alloc('job', 'g')['ID']
    node.reboot(BOOTS[1])
    subprocess.run(['rm', '-r', home], check=True)
    node.start()
    wait_for('the alloc to fail', lambda: node.get('/v1/allocation/' + alloc)['ClientStatus']
             == 'failed')
    state = node.get('/v1/allocation/' + alloc)['TaskStates']['t']
    said = ' '.join(event['DisplayMessage'] for event in state['Events'])
    assert state['Failed'] and 'alloc directory is gone' in said, said
    wait_for('the other task', lambda: node.running(job='other'))
    assert node.running(job='other')['Restarts'] == 0
    node.finish()


def the_directory_of_a_living_payload_may_vanish():
    """R-35: without a reboot the payload is alive, and stays so until it ends by itself."""
    node = Node()
    node.start()
    node.run_job(service(sleeper()))
    wait_for('the task', node.running)
    pid, home, alloc = node.await_pid('sleep 1000'), alloc_dir(node), node.alloc('job', 'g')['ID']
    node.kill()
    subprocess.run(['umount', home + '/t/secrets'], check=True)
    subprocess.run(['rm', '-r', home], check=True)
    node.start()
    wait_for('the task', node.running)
    assert node.pid_of('sleep 1000') == pid
    os.kill(pid, signal.SIGKILL)
    wait_for('the alloc to fail', lambda: node.get('/v1/allocation/' + alloc)['ClientStatus']
             == 'failed')
    state = node.get('/v1/allocation/' + alloc)['TaskStates']['t']
    assert exit_codes(state) == [137], exit_codes(state)
    node.finish()


def busy_secrets_are_told_and_owed_until_they_are_free():
    """R-34, R-08: tried again with a pause that restarts of the daemon neither cut nor count."""
    node = Node()
    node.start()
    node.run_job(service(sleeper()))
    wait_for('the task', node.running)
    alloc, secrets = node.alloc('job', 'g')['ID'], alloc_dir(node) + '/t/secrets'
    with open(secrets + '/token', 'w') as token:
        token.write('s3cret')
    hold = os.open(secrets, os.O_RDONLY | os.O_DIRECTORY)

    def shown():
        told = node.cli('journal', 'show', '-dir', node.data, '-json', alloc + '/t').stdout
        return json.loads(told.splitlines()[0])

    def passes(history):
        return [event for event in history if event['after'] == 'OWING'
                and event['before'] == 'CLEANUP']

    node.call('DELETE', '/v1/job/job')
    wait_for('the end', lambda: node.alloc('job', 'g')['ClientStatus'] == 'complete')
    failed = [event['DisplayMessage'] for event in node.dead()['Events']
              if event['Type'] == 'Task hook failed']
    assert len(failed) == 1 and 'tried again' in failed[0] and 'cannot unmount' in failed[0], failed
    assert os.path.ismount(secrets) and os.path.exists(secrets + '/token')
    assert failed[0] in node.cli('alloc', 'status', alloc).stdout

    for _ in range(5):
        node.kill()
        node.start()
    found = wait_for('two passes', lambda: shown() if len(passes(shown()['history'])) > 1 else None)
    record, history = found['machine']['record'], found['history']
    assert record['owed_passes'] == len(passes(history)), (record, history)
    restores = [event for event in history if event['event'] == 'RESTORE']
    assert len(restores) == 5 and all(event['after'] in ('OWING', 'CLEANUP') for event in restores)
    for earlier, later in zip(passes(history), passes(history)[1:]):
        assert later['now_ms'] - earlier['now_ms'] >= 500, history  # a pause, whatever came between
    assert len([event for event in node.dead()['Events']
                if event['Type'] == 'Task hook failed']) == 1

    os.close(hold)
    wait_for('the secrets to go', lambda: not os.path.ismount(secrets), limit_s=60)
    assert not os.path.exists(secrets + '/token')
    wait_for('nothing to be owed', lambda: shown()['machine']['state'] == 'DEAD')
    assert shown()['machine']['record']['owed'] == 0
    node.finish()


def nothing_is_deleted_through_a_mount():
    """R-46: whatever is mounted below the directory of an alloc, by whomever, and kept busy."""
    node = Node()
    precious = os.path.join(node.dir, 'precious')
    canary = os.path.join(precious, 'canary')
    os.mkdir(precious)
    with open(canary, 'w') as file:
        file.write('alive')
    node.start()
    node.run_job(service(sleeper()))
    wait_for('the task', node.running)
    home = alloc_dir(node)
    places = [home + '/alloc/data', home + '/t/local', home + '/t/local/deeper']
    for place in places:
        os.makedirs(place, exist_ok=True)
        subprocess.run(['mount', '--bind', precious, place], check=True)
        os.makedirs(os.path.join(precious, 'deeper'), exist_ok=True)
    busy = subprocess.Popen(['sleep', '5000'], cwd=places[0])
    try:
        node.call('DELETE', '/v1/job/job?purge=true')
        wait_for('the end', lambda: start_ticks(node.pid_of('sleep 1000') or 0) is None)
        wait_for('the removal to have been tried', lambda: 'hook failed' in node.log())
        node.kill()
        node.start()  # which tries again
        wait_for('another try', lambda: 'hook failed' in node.log().rpartition('restoring')[2])
        assert lines(canary) == ['alive']
        assert os.path.exists(os.path.join(home, 't')), 'deleted while something was mounted'
    finally:
        busy.kill()
        busy.wait()
    wait_for('the removal', lambda: not os.path.exists(home))
    assert lines(canary) == ['alive'] and os.path.isdir(os.path.join(precious, 'deeper'))
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it runs a node with real tasks, and mounts')
        sys.exit(77)
    sys.exit(tap([
        an_ephemeral_disk_goes_on_with_the_next_alloc,
        a_disk_that_is_too_full_is_cleared_of_what_ended_first,
        every_start_gets_what_the_first_one_got,
        two_reboots_then_the_end_leave_nothing,
        hooks_that_could_not_run_again_do_not_touch_a_payload,
        a_set_up_cut_off_that_then_fails_is_undone,
        an_alloc_without_its_directory_fails_with_that_reason,
        the_directory_of_a_living_payload_may_vanish,
        busy_secrets_are_told_and_owed_until_they_are_free,
        nothing_is_deleted_through_a_mount,
    ]))
