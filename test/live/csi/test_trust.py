#!/usr/bin/env python3
"""What a storage plugin is not trusted with, nor the disk below it, nor our own journal: calls that
outlast who made them, mounts that are not given up or go away right before a start, devices that do
not come back, claims whose records are lost.

In a whole run it waits for 500 s.
"""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import events, flip, raw_exec, restart_policy, tap, wait_for  # noqa: E402
from storage import (Storage, await_sleepers, await_statuses, job, let_go,  # noqa: E402
                     sleeper_pids, stop, waits_because, with_a_disk)

SHARED = 'multi-node-multi-writer'


def mounts_of_volumes(node):
    """The deepest first."""
    return sorted((path for path in node.mounts() if '/csi/node/test/' in path), reverse=True)


def unmount(node, part='/per-alloc/'):
    for path in mounts_of_volumes(node):
        if part in path:
            subprocess.run(['umount', path], check=True)


def volume_that_is_gone_right_before_the_first_start_is_there_at_it():
    storage, node = with_a_disk()
    again = job('echo it works > /srv/disk/words; exec sleep 1000', 'disk')
    first = raw_exec('first', 'touch /srv/disk/first; while ! test -e /srv/disk/go; do sleep 0.05; done',
                     Driver='exec', Lifecycle={'Hook': 'prestart', 'Sidecar': False},
                     VolumeMounts=again['TaskGroups'][0]['Tasks'][0]['VolumeMounts'])
    again['TaskGroups'][0]['Tasks'].append(first)
    node.run_job(again)
    wait_for('the first task', lambda: os.path.exists(storage.path('disk', 'first')))
    (target,) = [path for path in mounts_of_volumes(node) if '/per-alloc/' in path]
    unmount(node)
    open(storage.path('disk', 'go'), 'w').close()
    wait_for('the words of the second', lambda: storage.read('disk', 'words') == 'it works\n')
    await_sleepers(node)
    assert len(storage.calls('NodePublish')) == 2, storage.calls()
    stop(node)
    await_statuses(node, 'complete')
    wait_for('the unmounting', lambda: not mounts_of_volumes(node))
    assert not os.path.exists(os.path.join(target, 'words'))
    storage.finish()


def call_of_another_that_hangs_is_no_want_of_a_plugin():
    storage = Storage('disk')
    node = storage.node
    storage.run_plugin()
    storage.register('disk', SHARED)
    storage.next('NodeStageVolume', 'wait 75000')  # longer than a plugin is waited for
    node.run_job(job('exec sleep 1000', 'disk', access=SHARED, name='one'))
    wait_for('the call', lambda: '> NodeStageVolume' in storage.read('calls'))
    node.run_job(job('exec sleep 1000', 'disk', access=SHARED, name='two'))
    waits_because(node, 'two', 'others who have it are seen to first')
    wait_for('both', lambda: len(sleeper_pids(node)) == 2, limit_s=120)
    for name in ('one', 'two'):
        assert len(node.allocs(name)) == 1
        assert 'Setup Failure' not in events(node.task(name, 'g', 't'))
        stop(node, name)
    storage.finish()


def call_that_a_daemon_died_in_is_over_before_it_is_undone():
    storage, node = with_a_disk()
    storage.next('NodeStageVolume', 'wait 20000')
    node.run_job(job('exec sleep 1000', 'disk'))
    wait_for('the call', lambda: '> NodeStageVolume' in storage.read('calls'))
    node.kill()
    node.start()
    await_statuses(node, 'running')  # by another call, while the first goes on
    stop(node)
    await_statuses(node, 'complete')
    wait_for('the end of it', lambda: not storage.directories(), limit_s=90)
    told = [line.split()[:2] for line in storage.read('calls').splitlines() if 'NodeGet' not in line]
    made = [place for place, line in enumerate(told) if line == ['<', 'NodeStageVolume']]
    undone = told.index(['>', 'NodeUnpublishVolume'])
    assert len(made) == 2 and max(made) < undone, told
    storage.finish()


def mount_that_its_plugin_does_not_give_up_is_taken_away():
    storage, node = with_a_disk()
    # It knows of nothing, and there is nothing.
    node.run_job(job('exec sleep 1000', 'disk', name='gone'))
    await_sleepers(node)
    unmount(node)
    unmount(node, '/staging/')
    for method in ('NodeUnpublishVolume', 'NodeUnstageVolume'):
        storage.next(method, 'say 5 I know no such volume')
    let_go(storage, 'gone')
    undone = [line.split()[1] for line in storage.read('calls').splitlines() if '> NodeUn' in line]
    assert undone == ['NodeUnpublishVolume', 'NodeUnstageVolume'], undone
    assert 'without its plugin' not in node.log(1 << 20)
    # It says that it has, for ever.
    node.run_job(job('exec sleep 1000', 'disk', name='lied'))
    await_sleepers(node)
    for method in ('NodeUnpublishVolume', 'NodeUnstageVolume'):
        storage.next(method, *['lie'] * 90)
    stop(node, 'lied')
    for place in ('per-alloc/', 'staging/'):
        wait_for('its word', lambda: [  # noqa: B023
            line for line in node.log(1 << 20).splitlines()
            if place in line and 'was unmounted without its plugin' in line], limit_s=90)
    assert 'says that it is unpublished, which is not so' in node.log(1 << 20)
    wait_for('nothing to be mounted', lambda: not mounts_of_volumes(node))
    storage.finish()


def device_that_does_not_come_back_ends_its_alloc_with_the_reason():
    storage, node = with_a_disk()
    again = job('exec sleep 1000', 'disk')
    again['TaskGroups'][0]['RestartPolicy'] = restart_policy(10, 200)
    node.run_job(again)
    await_sleepers(node)
    node.kill()
    for pid in sleeper_pids(node):
        os.kill(pid, 9)
    unmount(node, '')
    os.rmdir(storage.path('disk'))
    node.start()
    await_statuses(node, 'failed')
    why = json.dumps(node.task('job', 'g', 't'))
    assert 'NOT_FOUND' in why and 'there is no volume disk' in why, why
    assert not sleeper_pids(node)
    storage.finish()


def claim_whose_record_is_lost_is_let_go_of():
    storage = Storage('t', 'other')  # of which one has the name of its task
    node = storage.node
    storage.run_plugin()
    for disk in ('t', 'other'):
        storage.register(disk)
        node.run_job(job('exec sleep 1000', disk, name=disk))
    await_sleepers(node, 2)
    lost, kept = (node.alloc(disk, 'g')['ID'] for disk in ('t', 'other'))
    node.kill()
    assert flip(os.path.join(node.data, 'client/journal/data.mdb'),
                b'\x01' + (lost + '/t').encode(), 24) > 0
    node.start()
    found = wait_for('its failure', lambda: (
        lambda a: a['ClientStatus'] == 'failed' and a)(node.get('/v1/allocation/' + lost)))
    assert 'volume "t": its record in the journal was damaged' in found['ClientDescription'], found
    assert 'Setup Failure' in events(found['TaskStates']['t']), found
    wait_for('it to be let go', lambda: not [path for path in mounts_of_volumes(node) if lost in path],
             limit_s=90)
    assert [path for path in mounts_of_volumes(node) if kept in path]
    await_statuses(node, 'running', name='other')
    for disk in ('t', 'other'):
        stop(node, disk)
    storage.finish()


def claim_that_nothing_names_any_more_is_found_by_its_place():
    storage = Storage('disk', 'other', 'orphan')  # the last one's alloc is lost, but not its task
    node = storage.node
    storage.run_plugin()
    for disk in ('disk', 'other', 'orphan'):
        storage.register(disk)
    node.run_job(job('exec sleep 1000', 'other', name='other'))
    node.run_job(job('exec sleep 1000', 'orphan', name='orphan'))
    node.run_job(job('exec sleep 1000', 'disk'))
    await_sleepers(node, 3)
    alloc, orphan = (node.alloc(name, 'g')['ID'] for name in ('job', 'orphan'))
    node.kill()
    journal = os.path.join(node.data, 'client/journal/data.mdb')
    for key in (b'\x01' + (alloc + '/disk').encode(), b'alloc/' + alloc.encode(),
                b'\x01' + (orphan + '/orphan').encode(), b'alloc/' + orphan.encode(),
                b'\x03' + orphan.encode()):
        assert flip(journal, key, 24) > 0, key
    node.start()
    found = wait_for('its failure', lambda: (
        lambda a: a['ClientStatus'] == 'failed' and a)(node.get('/v1/allocation/' + alloc)))
    words = 'volume "disk": its record in the journal was damaged'
    assert found['ClientDescription'].endswith(words), found
    stop(node, 'orphan')  # what has been placed in its stead, and may have the volume by now
    wait_for('it to be unmounted', lambda: not [
        path for path in mounts_of_volumes(node)
        if alloc in path or orphan in path or path.endswith(('/disk', '/orphan'))], limit_s=90)
    wait_for('the word of it', lambda: 'was unmounted without its plugin' in node.log(1 << 20))
    assert 'NodeUnpublishVolume disk' not in storage.read('calls')  # what the plugin calls it nobody knows
    assert len(sleeper_pids(node)) == 1 and len(mounts_of_volumes(node)) == 2  # of the other one
    for name in ('job', 'other'):
        stop(node, name)
    storage.finish()


def mounts_of_what_a_journal_has_never_heard_of_are_taken_away():
    storage = Storage('disk', 'busy')
    node = storage.node
    storage.run_plugin()
    for disk in ('disk', 'busy'):
        storage.register(disk)
    node.run_job(job('exec sleep 1000', 'disk', 'busy'))
    await_sleepers(node)
    (busy,) = [path for path in mounts_of_volumes(node) if '/per-alloc/' in path and '/busy/' in path]
    node.kill()
    shutil.rmtree(os.path.join(node.data, 'client/journal'))
    holder = os.open(busy, os.O_RDONLY)
    node.start()
    wait_for('the end of its payload', lambda: not sleeper_pids(node))
    assert len(mounts_of_volumes(node)) == 4  # for as long as its plugin may be at work on them
    wait_for('what is free', lambda: len(mounts_of_volumes(node)) == 2, limit_s=90)
    assert [path for path in mounts_of_volumes(node) if path == busy]
    wait_for('what is not', lambda: 'cannot unmount what belongs to nobody' in node.log(1 << 20))
    os.close(holder)
    wait_for('nothing', lambda: not mounts_of_volumes(node), limit_s=90)
    wait_for('the word of each', lambda: node.log(1 << 20).count('it belonged to nobody') == 4)
    storage.finish()


def mounts_that_something_in_quarantine_may_be_about_stay():
    storage, node = with_a_disk()
    node.run_job(job('exec sleep 1000', 'disk'))
    await_sleepers(node)
    alloc = node.alloc('job', 'g')['ID']
    node.kill()
    for key, behind in ((b'\x03' + alloc.encode(), 24), (b'\x02' + (alloc + '/t').encode(), 24),
                        (b'\x01' + (alloc + '/disk').encode(), 24), (b'alloc/' + alloc.encode(), 24)):
        assert flip(os.path.join(node.data, 'client/journal/data.mdb'), key, behind) > 0, key
    node.start()
    wait_for('the word', lambda: 'something in quarantine may be about what is mounted' in node.log(1 << 20),
             limit_s=90)
    assert alloc not in {found['ID'] for found in node.allocs()}
    assert [path for path in mounts_of_volumes(node) if alloc in path]
    stop(node)  # what has been placed in its stead, and has the volume by now
    await_statuses(node, 'complete')
    assert [path for path in mounts_of_volumes(node) if alloc in path]
    node.kill()
    for number in range(1, 5):
        node.cli('journal', 'quarantine', 'drop', str(number), '-dir', node.data)
    node.start()
    wait_for('nothing', lambda: not mounts_of_volumes(node), limit_s=90)
    storage.finish()


sys.exit(tap([
    volume_that_is_gone_right_before_the_first_start_is_there_at_it,
    call_of_another_that_hangs_is_no_want_of_a_plugin,
    call_that_a_daemon_died_in_is_over_before_it_is_undone,
    mount_that_its_plugin_does_not_give_up_is_taken_away,
    device_that_does_not_come_back_ends_its_alloc_with_the_reason,
    claim_whose_record_is_lost_is_let_go_of,
    claim_that_nothing_names_any_more_is_found_by_its_place,
    mounts_of_what_a_journal_has_never_heard_of_are_taken_away,
    mounts_that_something_in_quarantine_may_be_about_stay,
]))
