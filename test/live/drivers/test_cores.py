#!/usr/bin/env python3
"""Cores on a real node: a task has those that it was given and no others, over crashes, too."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, raw_exec, restart_policy, service, tap, wait_for  # noqa: E402

HERE = sorted(os.sched_getaffinity(0))


def job(name, cores, driver='exec'):
    task = raw_exec('t', 'echo $NOMAD_CPU_CORES > $NOMAD_ALLOC_DIR/said; exec sleep 1000',
                    Driver=driver, Resources={'Cores': cores, 'CPU': 0, 'MemoryMB': 32})
    made = service(task, restart=restart_policy(0))
    return dict(made, ID=name, Name=name)


def open_node(reserved):
    node = Node(config='client {\n  cpu_total_compute = 100000\n  reserved {\n    cores = "%s"\n'
                       '  }\n}\n' % reserved)
    os.chmod(node.dir, 0o711)
    node.start()
    return node


def payload_of(node, name):
    """(processors of its payload, what it was told) of the task of NAME."""
    alloc = wait_for(name, lambda: [alloc for alloc in node.allocs(name)
                                    if alloc['ClientStatus'] == 'running'])[0]['ID']
    said = os.path.join(node.data, 'alloc', alloc, 'alloc', 'said')
    wait_for('its words', lambda: os.path.exists(said) and os.path.getsize(said) > 0)
    pids = [pid for pid, _ in node.payloads().items() if alloc in open('/proc/%d/cgroup' % pid).read()]
    given = node.get('/v1/allocation/' + alloc)['AllocatedResources']['Tasks']['t']['Cpu']
    with open(said) as file:
        return os.sched_getaffinity(pids[0]), file.read().strip(), given['ReservedCores']


def each_task_runs_on_its_own_cores_and_keeps_them():
    node = open_node('')
    node.run_job(job('one', 1))
    node.run_job(job('two', 1, driver='raw_exec'))
    for name, core in (('one', HERE[0]), ('two', HERE[1])):
        assert payload_of(node, name) == ({core}, str(core), [core]), payload_of(node, name)
    shares = 100000 // os.cpu_count()
    given = node.get('/v1/allocation/' + node.allocs('two')[0]['ID'])['AllocatedResources']
    assert given['Tasks']['t']['Cpu']['CpuShares'] == shares, given
    node.run_job(job('more', len(HERE)))
    assert '"cores"' in json.dumps(node.get('/v1/job/more/evaluations')), 'no word of cores'
    assert node.allocs('more') == []
    node.kill()
    node.start()
    assert payload_of(node, 'two') == ({HERE[1]}, str(HERE[1]), [HERE[1]])
    node.call('DELETE', '/v1/job/one?purge=true')
    node.run_job(job('third', 1))
    assert payload_of(node, 'third')[0] == {HERE[0]}
    node.finish()


def affinity(node, alloc):
    """Where each process of ALLOC may run."""
    found = set()
    for pid in node.payloads():
        try:
            with open('/proc/%d/cgroup' % pid) as file:
                own = alloc in file.read()
            if own:
                found.add(frozenset(os.sched_getaffinity(pid)))
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended
    return found


def start_plain(node, name, **fields):
    """The alloc of a job that asks for no cores, and has two processes."""
    task = raw_exec('t', 'sleep 1000 & exec sleep 1000', **fields)
    node.run_job(dict(service(task), ID=name, Name=name))
    return running(node, name)


def running(node, name):
    return wait_for(name, lambda: [alloc for alloc in node.allocs(name)
                                   if alloc['ClientStatus'] == 'running'])[0]['ID']


def run_on(node, alloc, cores):
    wait_for('%s on %s' % (alloc, sorted(cores)),
             lambda: affinity(node, alloc) == {frozenset(cores)})


def others_are_kept_off_them_and_come_back():
    node = open_node('')
    early, bare = start_plain(node, 'early', Driver='exec'), start_plain(node, 'bare')
    for alloc in early, bare:
        run_on(node, alloc, HERE)
    node.run_job(job('one', 1))
    one, late = running(node, 'one'), start_plain(node, 'late')
    for alloc in early, bare, late:
        run_on(node, alloc, HERE[1:])
    run_on(node, one, HERE[:1])
    mark = node.node_mark()
    node.kill()
    # A daemon that comes back trusts nothing that it finds.
    place = next(place for place in ('/sys/fs/cgroup/cpuset/cairn/%s/share', '/sys/fs/cgroup/cairn/%s')
                 if os.path.exists(place % mark))
    with open(place % mark + '/cpuset.cpus', 'w') as file:
        file.write('%d-%d' % (HERE[0], HERE[-1]))
    run_on(node, late, HERE)
    node.start()
    for alloc in early, bare, late:
        run_on(node, alloc, HERE[1:])
    run_on(node, one, HERE[:1])
    node.call('DELETE', '/v1/job/one?purge=true')
    for alloc in early, bare, late:
        run_on(node, alloc, HERE)
    node.finish()


def what_is_reserved_is_given_to_nobody():
    node = open_node('%d' % HERE[0])
    facts = node.get('/v1/node/%s' % node.get('/v1/nodes')[0]['ID'])
    assert facts['NodeResources']['Cpu']['ReservableCpuCores'] == HERE[1:]
    assert facts['ReservedResources']['Cpu']['ReservedCpuCores'] == HERE[:1]
    assert facts['Attributes']['cpu.reservablecores'] == str(len(HERE) - 1)
    node.run_job(job('one', 1))
    assert payload_of(node, 'one')[0] == {HERE[1]}
    node.call('DELETE', '/v1/job/one?purge=true')
    run_on(node, start_plain(node, 'plain'), HERE[1:])
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it makes cgroups')
        sys.exit(77)
    if len(HERE) < 2 or not any(os.path.exists('/sys/fs/cgroup/' + name) for name in
                                ('cpuset/cpuset.cpus', 'cpuset.cpus.effective')):
        print('needs two processors and a cpuset controller')
        sys.exit(77)
    sys.exit(tap([
        each_task_runs_on_its_own_cores_and_keeps_them,
        others_are_kept_off_them_and_come_back,
        what_is_reserved_is_given_to_nobody,
    ]))
