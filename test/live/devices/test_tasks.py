#!/usr/bin/env python3
"""Tasks that ask for devices: what they are given, what they get with it, and that nobody else has it
meanwhile, whoever dies.

The plugin is test/plugins/device.py.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), '../drivers'))
from engine import Engine  # noqa: E402
from devices import DeviceNode, lacking, wait_for  # noqa: E402
from lib import NO_RESCHEDULE, Refused, raw_exec, restart_policy, service, tap  # noqa: E402


def job(name, count=1, driver='raw_exec', script='echo "$TEST_DEVICES"; exec sleep 3600', groups=1,
        device='file', **more):
    task = raw_exec('t', script, Resources={'CPU': 20, 'MemoryMB': 16, 'Devices': [
        dict({'Name': device, 'Count': count}, **more)]})
    task['Driver'] = driver
    made = service(task, restart=restart_policy(0, 1))
    made['TaskGroups'][0]['ReschedulePolicy'] = NO_RESCHEDULE
    made['TaskGroups'][0]['Count'] = groups
    return dict(made, ID=name, Name=name)


def given(node, name, index=0):
    """The ids of the devices of an alloc."""
    alloc = node.get('/v1/allocation/' + node.alloc(name, 'g', index)['ID'])
    return [one for group in alloc['AllocatedResources']['Tasks']['t']['Devices'] or []
            for one in group['DeviceIDs']]


def await_running(node, name, index=0):
    wait_for('job %s to run' % name,
             lambda: (node.task(name, 'g', 't', index) or {}).get('State') == 'running')


def printed(node, name, index=0):
    alloc = node.alloc(name, 'g', index)
    return node.text('GET', '/v1/client/fs/logs/%s?task=t&type=stdout&plain=true' % alloc['ID'])


def waits(node, name, words):
    """For devices, and says so."""
    def said():
        for evaluation in node.get('/v1/job/%s/evaluations' % name):
            for failed in (evaluation.get('FailedTGAllocs') or {}).values():
                told = str(failed.get('DimensionExhausted')) + str(failed.get('ConstraintFiltered'))
                if words in told:
                    return True
        return False
    wait_for('job %s to wait for "%s"' % (name, words), said)


def started(**options):
    node = DeviceNode(**options)
    node.start()
    node.await_ready()
    wait_for('devices', node.instances)
    return node


def nobody_has_a_device_that_another_one_has():
    node = started(names=('a', 'b', 'c.bad'))
    node.run_job(job('one'))
    node.run_job(job('two'))
    await_running(node, 'one')
    await_running(node, 'two')
    held = given(node, 'one') + given(node, 'two')
    assert sorted(held) == ['a', 'b'], held
    wait_for('the variable', lambda: printed(node, 'one') == given(node, 'one')[0] + '\n')
    node.run_job(job('three'))
    waits(node, 'three', 'devices: "file": 1 asked for, 0 free')
    waits(node, 'three', 'not healthy')
    # So it stays over a crash, and it is the plugin's end that says nothing of who has which.
    node.kill()
    node.kill_plugin()
    node.start()
    node.await_ready()
    assert node.task('three', 'g', 't') is None
    assert sorted(given(node, 'one') + given(node, 'two')) == ['a', 'b']
    node.call('DELETE', '/v1/job/one')
    await_running(node, 'three')
    assert given(node, 'three')[0] not in given(node, 'two')
    # One that comes, or comes right, is given to who waits for it.
    node.run_job(job('four'))
    waits(node, 'four', 'devices: "file"')
    node.put_device('d')
    await_running(node, 'four')
    assert given(node, 'four') == ['d']
    node.finish()


def one_that_is_replaced_has_its_devices_until_it_has_ended():
    node = started(names=('a',))
    stubborn = 'trap "" TERM INT; echo $TEST_DEVICES; sleep 3 & wait; sleep 3600'
    first = job('same', script=stubborn)
    first['TaskGroups'][0]['Tasks'][0]['KillTimeout'] = 2000000000
    node.run_job(first)
    await_running(node, 'same')
    before = node.alloc('same', 'g')['ID']
    node.run_job(job('same'))
    wait_for('the next one', lambda: node.alloc('same', 'g')['ID'] != before
             and node.running(job='same'))
    ended = node.get('/v1/allocation/' + before)['TaskStates']['t']['FinishedAt']
    begun = node.task('same', 'g', 't')['StartedAt']
    assert ended < begun, (ended, begun)
    assert given(node, 'same') == ['a']
    node.finish()


def constraints_and_affinities_choose():
    node = started(names=('a', 'b'))
    node.run_job(job('large', Constraints=[
        {'LTarget': '${device.attr.size}', 'Operand': '>=', 'RTarget': '3000 MiB'}]))
    await_running(node, 'large')
    node.run_job(job('larger', Constraints=[
        {'LTarget': '${device.attr.size}', 'Operand': '>', 'RTarget': '4 GiB'}]))
    waits(node, 'larger', 'missing devices')
    node.run_job(job('this', Constraints=[
        {'LTarget': '${device.ids}', 'Operand': 'set_contains', 'RTarget': 'b,x'}],
        Affinities=[{'LTarget': '${device.attr.color}', 'Operand': '=', 'RTarget': 'red',
                     'Weight': 50}], device='test/file/plain'))
    await_running(node, 'this')
    assert given(node, 'this') == ['b'], given(node, 'this')
    for wrong, why in (({'Count': 0}, 'count must be 1 or more'),
                       ({'Constraints': [{'LTarget': '${attr.cpu.arch}', 'Operand': '=',
                                          'RTarget': 'x'}]}, 'a device has no'),
                       ({'Constraints': [{'LTarget': '${device.model}', 'Operand': 'distinct_hosts',
                                          'RTarget': ''}]}, 'distinct_hosts')):
        try:
            node.run_job(job('wrong', **wrong))
            raise AssertionError('it was taken: %r' % wrong)
        except Refused as refused:
            assert why in refused.text, refused.text
    node.finish()


def mounts_and_nodes_come_with_them_where_a_driver_mounts():
    node = started(names=('a',))
    node.gives(mounts='ro', nodes=[{'task_path': '/dev/fuse-of-test', 'host_path': '/dev/zero',
                                    'permissions': 'r'}])
    node.run_job(job('raw'))
    wait_for('a driver that mounts nothing to be refused',
             lambda: (node.task('raw', 'g', 't') or {}).get('Failed'))
    events = node.task('raw', 'g', 't')['Events']
    assert any('its driver mounts nothing' in event['DisplayMessage'] for event in events), events
    node.call('DELETE', '/v1/job/raw?purge=true')
    script = ('cat /devices/a; head -c 4 /dev/fuse-of-test | od -An -tx1; '
              'echo x > /devices/a; echo $? ; exec sleep 3600')
    node.run_job(job('own', driver='exec', script=script))
    await_running(node, 'own')
    wait_for('what it reads', lambda: printed(node, 'own').endswith('\n2\n')
             or printed(node, 'own').endswith('\n1\n'))
    assert printed(node, 'own').startswith('device a\n 00 00 00 00\n'), printed(node, 'own')
    node.finish()


def a_container_is_told_of_nodes_as_of_devices():
    engine = Engine()
    engine.open()
    node = DeviceNode(names=('a',), config=engine.config())
    node.gives(mounts='ro', nodes=[{'task_path': '/dev/of-test', 'host_path': '/dev/zero',
                                    'permissions': 'r'}])
    node.start()
    node.await_ready()
    node.await_instances({'a': True})
    wait_for('the driver to be well',
             lambda: node.get('/v1/nodes')[0]['Drivers']['docker']['Healthy'])
    made = job('box', driver='docker')
    made['TaskGroups'][0]['Tasks'][0]['Config'] = {'image': 'img:1'}
    node.run_job(made)
    host = wait_for('a container', engine.one).body['HostConfig']
    assert host['Devices'] == [{'PathOnHost': '/dev/zero', 'PathInContainer': '/dev/of-test',
                                'CgroupPermissions': 'r'}], host
    mounts = {mount['Target']: mount for mount in host['Mounts']}
    assert '/dev/of-test' not in mounts, mounts
    assert mounts['/devices/a']['ReadOnly'], mounts
    node.finish()
    engine.end()


def a_task_waits_for_its_plugin_and_hears_of_a_refusal():
    node = started(names=('a',))
    node.run_job(job('one'))
    await_running(node, 'one')
    node.misbehave('die')
    node.kill_plugin()
    wait_for('the plugin to be missed', lambda: not node.instances())
    node.put('/v1/client/allocation/%s/restart' % node.alloc('one', 'g')['ID'], {'TaskName': 't'})
    wait_for('its end', lambda: node.task('one', 'g', 't')['State'] != 'running')
    node.misbehave(None)
    wait_for('it to run again', lambda: node.running(job='one'), 60)
    assert node.lines('reserved') == ['a', 'a'], node.lines('reserved')
    node.finish()


def main():
    if lacking():
        print(lacking())
        return 77
    return tap([nobody_has_a_device_that_another_one_has,
                one_that_is_replaced_has_its_devices_until_it_has_ended,
                constraints_and_affinities_choose,
                mounts_and_nodes_come_with_them_where_a_driver_mounts,
                a_container_is_told_of_nodes_as_of_devices,
                a_task_waits_for_its_plugin_and_hears_of_a_refusal])


if __name__ == '__main__':
    sys.exit(main())
