#!/usr/bin/env python3
"""Volumes of a storage plugin on a real node: a plugin that runs as a task mounts them for real, and
is told what to do wrong; after whatever happens nothing is left mounted.

In a whole run it waits for 290 s.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Refused, events, exit_codes, restart_policy, tap, wait_for  # noqa: E402
from storage import (NODE_ONLY, Storage, await_sleepers, await_statuses, job, let_go, node_events,  # noqa: E402
                     sleeper_pids, statuses, stop, waits_because, with_a_disk)


def a_volume_is_mounted_used_and_taken_away():
    storage = Storage('disk')
    node = storage.node
    storage.run_plugin()
    storage.register('disk', Secrets={'key': 'hunter2'}, Context={'pool': 'fast'})
    node.run_job(job('echo it works > /srv/disk/words; exec sleep 1000', 'disk'))
    wait_for('its words', lambda: storage.read('disk', 'words') == 'it works\n')
    await_statuses(node, 'running')
    before = await_sleepers(node)
    assert node_events(node) == [('Mount volume', 'disk', 'true')]
    node.kill()
    node.start()
    await_statuses(node, 'running')
    assert sleeper_pids(node) == before
    stop(node)
    await_statuses(node, 'complete')
    wait_for('the end of it', lambda: not storage.directories())
    assert storage.calls() == ['NodeStageVolume disk OK', 'NodePublishVolume disk OK',
                               'NodeUnpublishVolume disk OK', 'NodeUnstageVolume disk OK'], \
        storage.calls()
    assert storage.read('disk', 'words') == 'it works\n'
    assert 'hunter2' not in node.log(1 << 20)
    wait_for('what was gathered to be written',
             lambda: 'Unmount volume' in node.cli('journal', 'export', '-dir', node.data).stdout)
    node.kill()
    node.start()
    told = node_events(node)
    assert told[-1:] == [('Unmount volume', 'disk', 'true')], told
    shown = node.cli('node', 'status', '-self').stdout
    assert re.search(r'Storage +Unmount volume disk$', shown, re.M), shown
    storage.finish()


def share(storage):
    """Two jobs have the disk, and have said so on it."""
    storage.run_plugin()
    storage.register('disk', 'multi-node-multi-writer')
    for name in ('one', 'two'):
        storage.node.run_job(job('echo $NOMAD_JOB_NAME >> /srv/disk/words; exec sleep 1000', 'disk',
                                 access='multi-node-multi-writer', name=name))
    wait_for('both', lambda: sorted(storage.read('disk', 'words').split()) == ['one', 'two'])


def two_allocs_share_what_is_staged_over_crashes_of_everybody():
    storage = Storage('disk')
    node = storage.node
    share(storage)
    await_statuses(node, 'running', name='one')
    await_statuses(node, 'running', name='two')
    before = await_sleepers(node, 2)
    assert storage.calls('NodeStage') == ['NodeStageVolume disk OK']
    node.kill()
    storage.kill_plugin()
    node.start()
    wait_for('the plugin again', storage.plugin_pid)
    stop(node, 'one')
    await_statuses(node, 'complete', name='one')
    wait_for('one to let go', lambda: node.get('/v1/volumes?type=csi')[0]['CurrentWriters'] == 1)
    assert len(storage.calls('NodeUnpublish')) == 1
    assert storage.calls('NodeUnstage') == []
    assert sleeper_pids(node).items() <= before.items()
    node.kill()
    node.start()
    stop(node, 'two')
    await_statuses(node, 'complete', name='two')
    wait_for('the last to unstage it', lambda: storage.calls('NodeUnstage'))
    assert len(storage.calls('NodeUnpublish')) == 2
    storage.finish()


def a_reboot_mounts_it_again_for_who_starts_again_and_for_nobody_else():
    """R-65, R-05: no journaled mount is believed, and what was being undone is over."""
    storage = Storage('disk')
    node = storage.node
    storage.run_plugin()
    storage.register('disk', 'multi-node-multi-writer')
    for name in ('one', 'two', 'leaves'):
        node.run_job(job('echo $NOMAD_JOB_NAME >> /srv/disk/words; exec sleep 1000', 'disk',
                         access='multi-node-multi-writer', name=name))
    wait_for('all', lambda: len(storage.read('disk', 'words').split()) == 3)
    await_sleepers(node, 3)
    storage.next('NodeUnpublishVolume', 'hang')
    stop(node, 'leaves')
    wait_for('it to be undone', lambda: '> NodeUnpublishVolume' in storage.read('calls'))
    before = await_sleepers(node, 2)
    node.reboot('11111111-2222-4333-8444-555555555555')
    assert not [path for path in node.mounts() if '/csi/' in path]
    node.start()
    wait_for('both again', lambda: sorted(storage.read('disk', 'words').split()) ==
             ['leaves', 'one', 'one', 'two', 'two'], limit_s=90)
    await_statuses(node, 'running', name='one')
    await_statuses(node, 'running', name='two')
    assert not set(await_sleepers(node, 2).items()) & set(before.items())
    # Once more if one's mounts were looked at, for its start, when it was the other's turn.
    assert set(storage.calls('NodeStage')) == {'NodeStageVolume disk OK'}, storage.calls()
    assert 2 <= len(storage.calls('NodeStage')) <= 3, storage.calls()
    wait_for('the claim of who left', lambda: node.get('/v1/volumes?type=csi')[0]['CurrentWriters'] == 2,
             limit_s=90)
    for name in ('one', 'two'):
        assert node.task(name, 'g', 't')['Restarts'] == 0, node.task(name, 'g', 't')
        stop(node, name)
    storage.finish()


def who_reads_cannot_write_and_each_alloc_has_its_own():
    storage = Storage('disk', 'own[0]', 'own[1]')
    node = storage.node
    storage.run_plugin()
    storage.register('disk', 'multi-node-reader-only')
    for disk in ('own[0]', 'own[1]'):
        storage.register(disk)
    node.run_job(job('touch /srv/disk/written || echo "cannot: $NOMAD_JOB_NAME" > $NOMAD_TASK_DIR/said; '
                     'exec sleep 1000', 'disk', access='multi-node-reader-only', read_only=True))
    each = job('echo $NOMAD_ALLOC_INDEX > /srv/own/index; exec sleep 1000', 'own', name='each', count=2)
    each['TaskGroups'][0]['Volumes']['own']['PerAlloc'] = True
    node.run_job(each)
    await_statuses(node, 'running')
    await_statuses(node, 'running', 'running', name='each')
    wait_for('what the reader said', lambda: os.path.exists(os.path.join(
        node.data, 'alloc', node.alloc('job', 'g')['ID'], 't', 'local', 'said')))
    assert storage.read('disk', 'written') == '' and not os.path.exists(storage.path('disk', 'written'))
    for index in '01':
        wait_for('its index', lambda: storage.read('own[%s]' % index, 'index') == index + '\n')
    stop(node)
    stop(node, 'each')
    storage.finish()


def task_that_is_slow_to_end_keeps_its_volume():
    storage, node = with_a_disk()
    node.run_job(job('trap "sleep 1; echo last > /srv/disk/words; exit 0" INT; echo first > /srv/disk/words; '
                     'while :; do sleep 0.1; done', 'disk'))
    wait_for('its words', lambda: storage.read('disk', 'words') == 'first\n')
    stop(node)
    await_statuses(node, 'complete')
    assert storage.read('disk', 'words') == 'last\n'
    assert exit_codes(node.task('job', 'g', 't')) == [0]
    storage.finish()


def exclusive_volume_moves_from_one_to_the_next():
    storage, node = with_a_disk()
    node.run_job(job('echo one >> /srv/disk/words; exec sleep 1000', 'disk', name='one'))
    await_statuses(node, 'running', name='one')
    wait_for('its word', lambda: storage.read('disk', 'words') == 'one\n')
    node.run_job(job('echo two >> /srv/disk/words; exec sleep 1000', 'disk', name='two'))
    assert statuses(node, 'two') == [] or 'running' not in statuses(node, 'two')
    stop(node, 'one')
    await_statuses(node, 'running', name='two')
    wait_for('both words', lambda: storage.read('disk', 'words') == 'one\ntwo\n')
    made = [call.split()[0] for call in storage.calls()]
    assert made.index('NodeUnpublishVolume') < len(made) - 1 - made[::-1].index(
        'NodePublishVolume'), made
    stop(node, 'two')
    storage.finish()


def ok_without_a_mount_starts_nothing():
    storage, node = with_a_disk()
    storage.next('NodePublishVolume', *['lie'] * 20)
    node.run_job(job('touch /srv/disk/started; exec sleep 1000', 'disk'))
    wait_for('two tries', lambda: len(storage.calls('NodePublish')) >= 2, limit_s=30)
    assert not sleeper_pids(node)
    storage.next('NodePublishVolume', 'answer')
    await_statuses(node, 'running')
    wait_for('its file', lambda: os.path.exists(storage.path('disk', 'started')))
    stop(node)
    storage.finish()


def answer_that_is_lost_is_asked_for_again():
    storage, node = with_a_disk()
    for method in ('NodeStageVolume', 'NodePublishVolume', 'NodeUnpublishVolume',
                   'NodeUnstageVolume'):
        storage.next(method, 'did say 14 lost')
    node.run_job(job('exec sleep 1000', 'disk'))
    await_statuses(node, 'running')
    stop(node)
    await_statuses(node, 'complete')
    storage.finish()


def plugin_that_dies_in_mid_call_and_one_that_never_answers():
    storage, node = with_a_disk()
    storage.next('NodeStageVolume', 'die')
    storage.next('NodePublishVolume', 'hang')
    node.run_job(job('exec sleep 1000', 'disk'))
    wait_for('the call that hangs', lambda: '> NodePublishVolume' in storage.read('calls'),
             limit_s=60)
    storage.kill_plugin()
    await_statuses(node, 'running')
    stop(node)
    await_statuses(node, 'complete')
    storage.finish()


def volume_whose_allocs_have_ended_is_forgotten_by_force():
    storage, node = with_a_disk()
    node.run_job(job('exec sleep 1000', 'disk'))
    await_statuses(node, 'running')

    def forget():
        node.call('DELETE', '/v1/volume/csi/disk?force=true')

    try:
        forget()
        raise AssertionError('it was forgotten under a task')
    except Refused as answer:
        assert answer.status == 409 and 'volume in use' in str(answer), answer
    storage.next('NodeUnpublishVolume', *['say 14 busy'] * 3)
    stop(node)
    await_statuses(node, 'complete')
    assert storage.directories()  # its plugin does not let go of it yet
    forget()
    assert node.get('/v1/volumes?type=csi') == []
    wait_for('it to be let go all the same', lambda: not storage.directories(), limit_s=90)
    storage.finish()


def stats(node, name='disk'):
    return node.get('/v1/volume/csi/%s?stats=true' % name)['CairnStats']


def volume_tells_how_full_it_is():
    storage = Storage('disk')
    node = storage.node
    with open(storage.path('answers.json'), 'w') as out:
        json.dump(dict(NODE_ONLY, NodeGetCapabilities={
            'capabilities': [{'rpc': {'type': kind}} for kind in (1, 2, 4)]}), out)
    storage.run_plugin()
    storage.register('disk')
    assert stats(node) is None  # nobody has mounted it
    node.run_job(job('exec sleep 1000', 'disk'))
    await_statuses(node, 'running')
    assert stats(node) == {'Bytes': {'Total': 100, 'Used': 40, 'Available': 60},
                           'Inodes': {'Total': 10, 'Used': 4, 'Available': 6},
                           'IsAbnormal': False, 'Status': 'good'}, stats(node)
    shown = node.cli('volume', 'status', 'disk').stdout
    assert re.search(r'^Used +=.*40 B of 100 B, 60 B available$', shown, re.M), shown
    assert re.search(r'^Condition +=.*OK \(good\)$', shown, re.M), shown
    assert 'Used' not in node.cli('volume', 'status', '-short', 'disk').stdout

    # Whatever the plugin does, the volume is shown, with what it did.
    for command, words in (('raw ffffff', 'no message of CSI'), ('say 13 broken', 'broken'),
                           ('hang', 'NodeGetVolumeStats'), ('die', 'NodeGetVolumeStats')):
        storage.next('NodeGetVolumeStats', command)
        shown = node.cli('volume', 'status', 'disk').stdout
        assert 'not known: ' in shown and words in shown, shown
        await_statuses(node, 'running')
    assert [event for event in node_events(node) if event[0] == 'Volume condition'] == []

    def told_again():  # it has come back meanwhile
        storage.next('NodeGetVolumeStats', 'raw 12080801120477' + '6f726e')
        return stats(node) == {'IsAbnormal': True, 'Status': 'worn'}

    wait_for('the plugin to tell again', told_again, limit_s=60)
    assert stats(node)['IsAbnormal'] is False
    assert [event for event in node_events(node) if event[0] == 'Volume condition'] == [
        ('Volume condition', 'disk', 'false'), ('Volume condition', 'disk', 'true')]
    stop(node)
    await_statuses(node, 'complete')
    storage.finish()


def plugin_that_cannot_tell_how_full_a_volume_is():
    storage, node = with_a_disk()
    node.run_job(job('exec sleep 1000', 'disk'))
    await_statuses(node, 'running')
    assert stats(node) == {'Error': 'plugin test does not tell how full a volume is'}, stats(node)
    assert 'NodeGetVolumeStats' not in storage.read('calls')
    stop(node)
    await_statuses(node, 'complete')
    storage.finish()


def failing_start_unwinds_all_of_it():
    storage = Storage('good', 'bad')
    node = storage.node
    storage.run_plugin()
    storage.register('good')
    storage.register('bad')
    storage.next('NodeStageVolume', 'answer')
    os.rmdir(storage.path('bad'))  # NOT_FOUND
    node.run_job(job('exec sleep 1000', 'good', 'bad'))
    await_statuses(node, 'failed')
    assert ('Mount volume', 'bad', 'false') in node_events(node)
    why = json.dumps(node.task('job', 'g', 't'))
    assert 'NOT_FOUND' in why and 'there is no volume bad' in why, why
    wait_for('the unwinding', lambda: not storage.directories(), limit_s=90)
    assert not sleeper_pids(node)
    storage.finish()


def stop_while_the_daemon_is_down_and_the_plugin_late():
    storage, node = with_a_disk()
    node.run_job(job('exec sleep 1000', 'disk'))
    await_statuses(node, 'running')
    node.kill()
    for pid in sleeper_pids(node):
        os.kill(pid, 9)
    plugin = storage.kill_plugin()
    wait_for('their end', lambda: not sleeper_pids(node))
    node.start()
    await_statuses(node, 'failed')
    assert wait_for('the plugin again', storage.plugin_pid) != plugin
    wait_for('the unwinding', lambda: not storage.directories(), limit_s=90)
    assert storage.calls('NodeUn') == ['NodeUnpublishVolume disk OK', 'NodeUnstageVolume disk OK']
    storage.finish()


def volume_that_somebody_unmounts_comes_back():
    storage, node = with_a_disk()
    node.run_job(job('exec sleep 1000', 'disk'))
    await_statuses(node, 'running')
    before = await_sleepers(node)
    node.kill()
    for mount in sorted(node.mounts(), reverse=True):
        if '/csi/node/test/' in mount:
            assert os.system('umount ' + mount) == 0
    node.start()
    wait_for('it to be published again', lambda: len(storage.calls('NodePublish')) == 2)
    assert sleeper_pids(node) == before
    stop(node)
    await_statuses(node, 'complete')
    storage.finish()


def plugin_that_counts_is_told_of_each_publish_whose_mount_went_away():
    """hostpath is one: it keeps its counts on disk, and unstages nothing that it counts as published."""
    storage = Storage('disk')
    node = storage.node
    open(storage.path('counted'), 'w').close()
    share(storage)
    await_sleepers(node, 2)
    node.reboot('11111111-2222-4333-8444-555555555555')
    node.start()
    wait_for('both again', lambda: sorted(storage.read('disk', 'words').split()) ==
             ['one', 'one', 'two', 'two'], limit_s=90)
    await_statuses(node, 'running', name='one')
    await_statuses(node, 'running', name='two')
    target = next(mount for mount in node.mounts()
                  if '/per-alloc/%s/' % node.alloc('one', 'g')['ID'] in mount)
    subprocess.run(['nsenter', '-m', '-t', str(node.process.pid), 'umount', '-l', target], check=True)
    node.cli('alloc', 'restart', node.alloc('one', 'g')['ID'])
    wait_for('the first once more', lambda: storage.read('disk', 'words').split().count('one') == 3)
    await_statuses(node, 'running', name='one')
    assert len(storage.read('counted').split()) == 5, storage.read('counted')
    stop(node, 'one')
    wait_for('its counts', lambda: len(storage.read('counted').split()) == 2)
    stop(node, 'two')
    storage.finish()


def volume_that_is_unmounted_between_two_attempts_is_there_at_the_next():
    storage, node = with_a_disk()
    again = job('echo $$ >> /srv/disk/words; while ! test -e /srv/disk/end; do sleep 0.05; done; '
                'rm /srv/disk/end; exit 1', 'disk')
    again['TaskGroups'][0]['RestartPolicy'] = restart_policy(10, 5000)
    node.run_job(again)

    def attempts(count):
        return lambda: len(storage.read('disk', 'words').split()) == count

    def unmount():
        target = next(mount for mount in node.mounts() if '/per-alloc/' in mount)
        subprocess.run(['umount', target], check=True)
        return target

    wait_for('the first attempt', attempts(1))
    target = unmount()  # under it: it has a copy
    open(storage.path('disk', 'end'), 'w').close()
    wait_for('the second attempt', attempts(2))
    await_statuses(node, 'running')
    restarts = events(node.task('job', 'g', 't')).count('Restarting')
    open(storage.path('disk', 'end'), 'w').close()
    wait_for('the pause', lambda: events(node.task('job', 'g', 't')).count('Restarting') > restarts)
    unmount()  # in the pause between them
    wait_for('the third attempt', attempts(3))
    await_statuses(node, 'running')
    unmount()
    node.cli('alloc', 'restart', '-all-tasks', node.alloc('job', 'g')['ID'])
    wait_for('the lifecycle again', attempts(4))
    await_statuses(node, 'running')
    unmount()
    node.kill()  # and it ends while nobody watches
    open(storage.path('disk', 'end'), 'w').close()
    wait_for('its end', lambda: not os.path.exists(storage.path('disk', 'end')))
    node.start()
    wait_for('the attempt after the crash', attempts(5))
    assert len(storage.calls('NodePublish')) == 5, storage.calls()
    stop(node)
    await_statuses(node, 'complete')
    wait_for('the unmounting', lambda: not [m for m in node.mounts() if '/per-alloc/' in m])
    assert not os.path.exists(os.path.join(target, 'words'))
    storage.finish()


def volume_that_cannot_be_mounted_again_ends_its_alloc_with_the_reason():
    storage, node = with_a_disk()
    again = job('while ! test -e /srv/disk/end; do sleep 0.05; done; exit 1', 'disk')
    again['TaskGroups'][0]['RestartPolicy'] = restart_policy(10, 200)
    node.run_job(again)
    await_statuses(node, 'running')
    target = next(mount for mount in node.mounts() if '/per-alloc/' in mount)
    subprocess.run(['umount', target], check=True)
    storage.next('NodeStageVolume', *['say 5 the disk has died'] * 20)
    storage.next('NodePublishVolume', *['say 5 the disk has died'] * 20)
    open(storage.path('disk', 'end'), 'w').close()
    await_statuses(node, 'failed')
    why = json.dumps(node.task('job', 'g', 't'))
    assert 'the disk has died' in why, why
    storage.finish()


def plugin_that_is_stopped_under_a_volume_is_waited_for():
    storage, node = with_a_disk()
    node.run_job(job('exec sleep 1000', 'disk'))
    await_statuses(node, 'running')
    before = await_sleepers(node)
    stop(node, 'plugin')
    await_statuses(node, 'complete', name='plugin')
    assert sleeper_pids(node) == before  # it needs no plugin
    assert ('Plugin is gone', 'disk', 'false') in node_events(node)
    assert 'ends while volumes are mounted' in node.log(1 << 20)
    stop(node)
    await_statuses(node, 'complete')
    assert node.get('/v1/volumes?type=csi')[0]['CurrentWriters'] == 1  # still mounted
    assert storage.calls('NodeUn') == []
    node.kill()
    node.start()
    storage.run_plugin()
    wait_for('the end of it', lambda: not storage.directories(), limit_s=60)
    assert storage.calls('NodeUn') == ['NodeUnpublishVolume disk OK', 'NodeUnstageVolume disk OK']
    # One that another instance goes on with is nothing to tell of.
    told = node.log(1 << 20).count('ends while volumes are mounted')
    stop(node, 'plugin')
    await_statuses(node, 'complete', 'complete', name='plugin')
    assert node.log(1 << 20).count('ends while volumes are mounted') == told
    storage.finish()


def mount_over_a_volume_is_found_out():
    storage = Storage('disk', 'other')
    node = storage.node
    storage.run_plugin()
    storage.register('disk')
    node.run_job(job('exec sleep 1000', 'disk'))
    await_statuses(node, 'running')
    before = await_sleepers(node)
    target = next(mount for mount in node.mounts() if '/per-alloc/' in mount)
    node.kill()
    subprocess.run(['mount', '--bind', storage.path('other'), target], check=True)
    node.start()
    wait_for('its word', lambda: 'takes for it what somebody else has mounted: unmount' in node.log(1 << 20))
    assert sleeper_pids(node) == before
    subprocess.run(['umount', target], check=True)
    marks = os.path.join(node.data, 'client', 'csi', 'mounted')
    assert len(os.listdir(marks)) == 1
    await_statuses(node, 'running')
    stop(node)
    await_statuses(node, 'complete')
    storage.finish()
    assert not os.path.isdir(marks) or not os.listdir(marks)


def image(path, kind):
    """A file system of this KIND in the new file PATH; False where it cannot be mounted."""
    with open(path, 'wb') as file:
        file.truncate(320 << 20)  # a sparse file, as large as XFS wants it
    if shutil.which('mkfs.' + kind) is None:
        return False
    subprocess.run(['mkfs.' + kind, '-q', path], check=True)
    with tempfile.TemporaryDirectory() as place:
        if subprocess.run(['mount', '-o', 'loop', '-t', kind, path, place], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            return False
        os.chmod(place, 0o777)
        subprocess.run(['umount', place], check=True)
    return True


def file_systems_on_loop_devices_are_volumes():
    storage = Storage()
    node = storage.node
    kinds = [kind for kind in ('ext4', 'xfs') if image(storage.path(kind), kind)]
    storage.run_plugin()
    for kind in kinds:
        storage.register(kind, MountOptions={'FSType': kind})
        node.run_job(job('grep " /srv/%s %s " /proc/mounts && echo there > /srv/%s/words; '
                         'exec sleep 1000' % (kind, kind, kind), kind, name=kind))
    for kind in kinds:
        await_statuses(node, 'running', name=kind)
    await_sleepers(node, len(kinds))
    node.kill()
    storage.kill_plugin()
    node.start()
    wait_for('the plugin again', storage.plugin_pid)
    for kind in kinds:
        stop(node, kind)
        await_statuses(node, 'complete', name=kind)
    wait_for('the end of it', lambda: not storage.directories())
    for kind in kinds:
        with tempfile.TemporaryDirectory() as place:
            subprocess.run(['mount', '-o', 'loop', '-t', kind, storage.path(kind), place], check=True)
            with open(os.path.join(place, 'words')) as words:
                assert words.read() == 'there\n', kind
            subprocess.run(['umount', place], check=True)
    loops = subprocess.run(['losetup', '--list'], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert storage.dir not in loops, loops
    storage.finish()
    return None if len(kinds) == 2 else 'no loop device with ' + ' or '.join({'ext4', 'xfs'} - set(kinds))


def trouble_of(node, name):
    return [event['DisplayMessage'] for event in node.task(name, 'g', 't')['Events']
            if event['Type'] == 'Task hook failed']


def is_told_of(node, name, words):
    """What a user reads of it ever after, if it was stopped meanwhile or not."""
    (told,) = trouble_of(node, name)
    assert told.startswith('volume "disk" is not mounted yet: ') and words in told, told
    assert told in node.cli('alloc', 'status', node.alloc(name, 'g')['ID']).stdout


def failed_because(node, name, words):
    await_statuses(node, 'failed', name=name)
    told = [event['DisplayMessage'] for event in node.task(name, 'g', 't')['Events']
            if event['Type'] == 'Setup Failure']
    assert len(told) == 1 and told[0].startswith('failed to setup alloc: volume "disk": ') \
        and words in told[0], told


def what_cannot_be_a_volume_is_refused():
    storage, node = with_a_disk()
    for wrong, words in ((dict(ID='d' * 4096), "the volume's id"), (dict(ID='../disk'), "the volume's id"),
                         (dict(PluginID='none'), 'no CSI plugin')):
        try:
            node.put('/v1/volume/csi/disk', {'Volumes': [dict({
                'ID': 'disk', 'Name': 'disk', 'PluginID': 'test', 'RequestedCapabilities': [
                    {'AccessMode': 'single-node-writer', 'AttachmentMode': 'file-system'}]}, **wrong)]})
        except Refused as answer:
            assert words in str(answer), answer
        else:
            raise AssertionError('taken: %r' % wrong)
    node.run_job(job('exec sleep 1000', 'disk', access='multi-node-multi-writer'))
    words = 'was not registered with this access mode and attachment mode'
    wait_for(words, lambda: words in node.cli('job', 'status', 'job').stdout)  # its plugin is well
    assert not statuses(node)
    stop(node)
    storage.finish()


def plugin_that_is_wrong_is_told_and_unwound():
    storage = Storage('disk')
    node = storage.node
    storage.run_plugin()
    storage.register('disk', MountOptions={'MountFlags': ['password=sesame']})
    for name, method, command, words in (
            ('garbage', 'NodeStageVolume', 'raw ffffff', 'NodeStageVolume: its answer is no message of CSI'),
            ('lie', 'NodePublishVolume', 'lie', 'says that it is published, which is not so (see its logs)'),
            ('full', 'NodeStageVolume', 'say 8 no room', 'RESOURCE_EXHAUSTED: no room'),
            ('hang', 'NodeStageVolume', 'hang', 'plugin "test" is asked to stage it')):
        storage.next(method, *[command] * 20)
        node.run_job(job('exec sleep 1000', 'disk', name=name))
        waits_because(node, name, 'Waiting for volume "disk": ')
        waits_because(node, name, words)
        storage.next(method, 'answer')
        if name == 'hang':
            storage.kill_plugin()
            words = 'NodeStageVolume: it closed the connection in the middle of the call'
            wait_for('it to be told', lambda: trouble_of(node, name))  # noqa: B023
        let_go(storage, name)
        is_told_of(node, name, words)
    storage.next('NodeStageVolume', 'say 3 no mount -o ro,password=sesame: sesame is wrong')
    node.run_job(job('exec sleep 1000', 'disk', name='no'))
    failed_because(node, 'no', 'INVALID_ARGUMENT: no mount -o ro,***: *** is wrong')
    let_go(storage, 'no')
    out = os.path.join(node.dir, 'export')
    node.cli('journal', 'export', '-dir', node.data, '-out', out)
    with open(out) as file:
        assert 'sesame' not in file.read() + node.log(1 << 20) + json.dumps(node_events(node))
    node.run_job(job('exec sleep 1000', 'disk'))
    await_statuses(node, 'running')
    stop(node)
    storage.finish()


def place_that_is_taken_is_told_and_unwound():
    storage, node = with_a_disk()
    root = os.path.join(node.data, 'client', 'csi', 'node', 'test')
    staging = os.path.join(root, 'staging', 'default')
    os.makedirs(staging)

    def target_of(name):
        """While it is being staged."""
        before = storage.read('calls').count('> NodeStageVolume')
        storage.next('NodeStageVolume', 'wait 6000')
        node.run_job(job('exec sleep 1000', 'disk', name=name))
        wait_for('the call', lambda: storage.read('calls').count('> NodeStageVolume') > before)
        path = os.path.join(root, 'per-alloc', node.alloc(name, 'g')['ID'], 'disk',
                            'rw-file-system-single-node-writer')
        os.makedirs(path)
        return path

    subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', target_of('mounted')], check=True)
    failed_because(node, 'mounted', 'its target is a mount already, of somebody else: unmount per-alloc/')
    let_go(storage, 'mounted')
    precious = os.path.join(target_of('full'), 'precious')
    with open(precious, 'w') as out:
        out.write('somebody\n')
    failed_because(node, 'full', 'its target is not empty: move away what is in per-alloc/')
    wait_for('the way back', lambda: 'UNPUBLISH failed' in node.log(1 << 20))
    shown = node.cli('volume', 'status', 'disk').stdout.partition('\nNot Let Go Yet\n')[2]
    assert node.alloc('full', 'g')['ID'][:8] in shown and 'not empty' in shown, shown
    with open(precious) as words:
        assert words.read() == 'somebody\n'
    os.unlink(precious)
    let_go(storage, 'full')
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'ro', 'tmpfs', staging], check=True)
    node.run_job(job('exec sleep 1000', 'disk', name='staging'))
    failed_because(node, 'staging', 'cannot make the directory staging/default/disk: Read-only file system')
    subprocess.run(['umount', staging], check=True)
    let_go(storage, 'staging')
    with open(os.path.join(staging, 'disk'), 'w') as out:
        out.write('somebody\n')
    node.run_job(job('exec sleep 1000', 'disk', name='file'))
    failed_because(node, 'file', 'staging/default/disk')
    os.unlink(os.path.join(staging, 'disk'))
    let_go(storage, 'file')
    storage.finish()


def loop_device(path):
    """A loop device over the new file PATH, and its number; None where there is none to be had."""
    with open(path, 'wb') as image:
        image.truncate(1 << 20)
    made = subprocess.run(['losetup', '--find', '--show', path], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return made.stdout.strip() if made.returncode == 0 else None


def block_device_is_a_device_to_its_task():
    storage = Storage()
    node = storage.node
    loop = loop_device(storage.path('image'))
    if loop is None:
        node.finish()
        shutil.rmtree(storage.dir)
        return 'no loop device can be had'
    try:
        os.mknod(storage.path('raw'), 0o60666, os.stat(loop).st_rdev)
        os.chmod(storage.path('raw'), 0o666)
        storage.run_plugin()
        storage.register('raw', attachment='block-device')
        node.run_job(job('set -e; test -b /srv/raw; printf blocks > /srv/raw; exec sleep 1000',
                         'raw', attachment='block-device'))
        await_statuses(node, 'running')
        wait_for('its words', lambda: storage.read_bytes('image', 6) == b'blocks')
        node.kill()
        node.start()
        stop(node)
        await_statuses(node, 'complete')
        storage.finish()
    finally:
        subprocess.run(['losetup', '--detach', loop], check=True)
    return None


def daemon_ends_at_once_while_a_plugin_hangs():
    storage, node = with_a_disk()
    node.run_job(job('exec sleep 1000', 'disk'))
    await_statuses(node, 'running')
    storage.next('NodeUnpublishVolume', 'hang')
    stop(node)
    wait_for('the call', lambda: '> NodeUnpublishVolume' in storage.read('calls'), limit_s=30)
    assert node.terminate() == 0
    storage.kill_plugin()
    node.start()
    storage.finish()


def plugin_that_somebody_else_runs_serves_volumes_too():
    storage = Storage('disk', config='client {\n  csi_plugin "test" {\n    type = "node"\n'
                                     '    socket = "DIRECTORY/csi.sock"\n  }\n}\n')
    node = storage.node
    shared = 'multi-node-multi-writer'
    with storage.plugin_of_somebody_else():
        storage.register('disk', access=shared)
        for name in ('one', 'two'):
            node.run_job(job('echo %s >/srv/disk/%s; exec sleep 1000' % (name, name), 'disk',
                             access=shared, name=name))
        before = await_sleepers(node, 2)
        assert storage.read('disk', 'one') == 'one\n' and storage.read('disk', 'two') == 'two\n'
        node.kill()
    node.start()  # beside nobody who could be asked
    await_statuses(node, 'running', name='one')
    assert sleeper_pids(node) == before
    stop(node, 'one')
    await_statuses(node, 'complete', name='one')
    assert not [call for call in storage.calls() if call.startswith('NodeUnpublish')]
    with storage.plugin_of_somebody_else():
        wait_for('the first to be let go', lambda: 'NodeUnpublishVolume disk OK' in storage.calls(),
                 limit_s=60)
        assert len(sleeper_pids(node)) == 1 and 'NodeUnstageVolume disk OK' not in storage.calls()
        stop(node, 'two')
        wait_for('nothing below its root', lambda: not storage.directories(), limit_s=60)
        assert storage.calls() == ['NodeStageVolume disk OK', 'NodePublishVolume disk OK',
                                   'NodePublishVolume disk OK', 'NodeUnpublishVolume disk OK',
                                   'NodeUnpublishVolume disk OK', 'NodeUnstageVolume disk OK'], \
            storage.calls()
        storage.finish()


def driver_without_mounts_refuses_by_name():
    storage, node = with_a_disk()
    made = job('exec sleep 1000', 'disk')
    task = made['TaskGroups'][0]['Tasks'][0]
    task['Driver'] = 'raw_exec'
    for mounts in (task['VolumeMounts'], []):  # and what nobody mounts is not claimed either
        task['VolumeMounts'] = mounts
        try:
            node.run_job(made)
            raise AssertionError('raw_exec mounts a volume')
        except Refused as answer:
            assert 'does not support CSI' in str(answer), answer
    storage.finish()


def group_waits_for_a_volume_that_nobody_has_registered():
    storage = Storage('disk')
    node = storage.node
    node.run_job(job('exec sleep 1000', 'disk'))
    assert 'missing CSI' in node.cli('job', 'status', 'job').stdout
    storage.run_plugin()
    storage.register('disk')
    await_statuses(node, 'running')
    stop(node)
    storage.finish()


sys.exit(tap([
    a_volume_is_mounted_used_and_taken_away,
    two_allocs_share_what_is_staged_over_crashes_of_everybody,
    a_reboot_mounts_it_again_for_who_starts_again_and_for_nobody_else,
    who_reads_cannot_write_and_each_alloc_has_its_own,
    task_that_is_slow_to_end_keeps_its_volume,
    exclusive_volume_moves_from_one_to_the_next,
    ok_without_a_mount_starts_nothing,
    answer_that_is_lost_is_asked_for_again,
    plugin_that_dies_in_mid_call_and_one_that_never_answers,
    volume_whose_allocs_have_ended_is_forgotten_by_force,
    volume_tells_how_full_it_is,
    plugin_that_cannot_tell_how_full_a_volume_is,
    failing_start_unwinds_all_of_it,
    stop_while_the_daemon_is_down_and_the_plugin_late,
    volume_that_somebody_unmounts_comes_back,
    plugin_that_counts_is_told_of_each_publish_whose_mount_went_away,
    volume_that_is_unmounted_between_two_attempts_is_there_at_the_next,
    volume_that_cannot_be_mounted_again_ends_its_alloc_with_the_reason,
    plugin_that_is_stopped_under_a_volume_is_waited_for,
    mount_over_a_volume_is_found_out,
    file_systems_on_loop_devices_are_volumes,
    what_cannot_be_a_volume_is_refused,
    plugin_that_is_wrong_is_told_and_unwound,
    place_that_is_taken_is_told_and_unwound,
    block_device_is_a_device_to_its_task,
    daemon_ends_at_once_while_a_plugin_hangs,
    plugin_that_somebody_else_runs_serves_volumes_too,
    driver_without_mounts_refuses_by_name,
    group_waits_for_a_volume_that_nobody_has_registered,
]))
