#!/usr/bin/python3
"""A plugin for a driver, on an implementation of gRPC and protobuf that is not ours.

Its driver is "scripts": a task is a command of the shell, which goes on when the plugin ends, and is
found again by its process and by the file that it leaves when it ends.  A task's config:

  command     text, required
  codes       list(number), which it only keeps
  quiet       a bool, default false

Its first argument is a directory.  There it writes `config`, what it was configured with, `started`,
a line of JSON for each start with what it was told, and `calls`, a word and the task's id for each
call.  A file `misbehave` there says how it is to be wrong, by words as wire.py has, and these:

  undetected, ill     how it says that its driver is
  taken               it says that its driver is "exec"
  fails, may-come     starts fail, and for good or not
  dies                it ends in mid-start, before the task runs
  dies-late           it ends in mid-start, and the task runs
  deaf                it stops nothing that it is told to stop
  forgets             it finds no task again
  shrugs              of an end, and of a command, it only says that something went wrong
  garbage             what it says of a start is no message
"""
import contextlib
import fcntl
import json
import os
import queue
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import wire  # noqa: E402
import grpc  # noqa: E402
import msgpack  # noqa: E402

M = wire.declare(dict(wire.MESSAGES, **{
    'Capabilities': 'send_signals:1=bool exec:2=bool fs_isolation:3=int32 network_modes:4=int32*',
    'CapabilitiesAnswer': 'capabilities:1=Capabilities',
    'State': 'attributes:1=map:Attribute health:2=int32 description:3',
    'Event': 'task_id:1 alloc_id:2 task_name:3 message:5',
    'Duration': 'seconds:1=int64 nanos:2=int32',
    'Memory': 'memory_mb:2=int64 memory_max_mb:3=int64',
    'Cpu': 'cpu_shares:1=int64',
    'Allocated': 'cpu:1=Cpu memory:2=Memory',
    'Linux': 'cpu_shares:3=int64 memory_limit_bytes:4=int64 cpuset_cpus:6 percent_ticks:8=double '
             'cpuset_cgroup:9',
    'Port': 'label:1 value:2=int32 to:3=int32 host_ip:4',
    'Resources': 'allocated_resources:1=Allocated linux_resources:2=Linux ports:3=Port*',
    'Mount': 'task_path:1 host_path:2 readonly:3=bool propagation_mode:4',
    'Task': 'id:1 name:2 msgpack_driver_config:3=bytes env:4=map:string resources:6=Resources '
            'mounts:7=Mount* user:9 alloc_dir:10 stdout_path:11 stderr_path:12 task_group_name:13 '
            'job_name:14 alloc_id:15 job_id:18 namespace:19 node_name:20 node_id:21',
    'Handle': 'version:1=int32 config:2=Task state:3=int32 driver_state:4=bytes',
    'Start': 'task:1=Task',
    'Started': 'result:1=int32 driver_error_msg:2 handle:3=Handle',
    'Recover': 'task_id:1 handle:2=Handle',
    'OfTask': 'task_id:1',
    'Exit': 'exit_code:1=int32 signal:2=int32 oom_killed:3=bool',
    'Waited': 'result:1=Exit err:2',
    'Stop': 'task_id:1 timeout:2=Duration signal:3',
    'Destroy': 'task_id:1 force:2=bool',
    'Signal': 'task_id:1 signal:2',
    'Status': 'id:1 name:2 state:3=int32 started_at:4=Duration completed_at:5=Duration result:6=Exit',
    'Inspected': 'task:1=Status',
    'ExecSetup': 'task_id:1 command:2* tty:3=bool',
    'ExecBytes': 'data:1=bytes close:2=bool',
    'ExecSize': 'height:1=int32 width:2=int32',
    'ExecRequest': 'setup:1=ExecSetup tty_size:2=ExecSize stdin:3=ExecBytes',
    'ExecAnswer': 'stdout:1=ExecBytes stderr:2=ExecBytes exited:3=bool result:4=Exit',
    'UsageRequest': 'task_id:1 collection_interval:2=Duration',
    'CpuUsage': 'system_mode:1=double user_mode:2=double throttled_periods:4=uint64 throttled_time:5=uint64 '
                'percent:6=double',
    'MemoryUsage': 'rss:1=uint64 cache:2=uint64 max_usage:3=uint64 swap:8=uint64 usage:7=uint64',
    'Used': 'cpu:1=CpuUsage memory:2=MemoryUsage',
    'Usage': 'id:1 timestamp:2=Duration agg_resource_usage:3=Used',
    'UsageAnswer': 'stats:1=Usage',
    'Any': 'type_url:1 value:2=bytes',
    'ErrorStatus': 'code:1=int32 message:2 details:3=Any*',
    'Recoverable': 'recoverable:1=bool',
}))
DRIVER = 'hashicorp.nomad.plugins.drivers.proto.Driver'
NOT_FOUND = 'task not found for given id'
RECOVERABLE = 'type.googleapis.com/hashicorp.nomad.plugins.shared.structs.RecoverableError'


def ticks_of(pid):
    try:
        with open('/proc/%d/stat' % pid) as file:
            fields = file.read().rpartition(')')[2].split()
        return None if fields[0] == 'Z' else int(fields[19])
    except (FileNotFoundError, ProcessLookupError):
        return None


class Task:
    """Its process is known by number and start, its end by the file that it leaves."""

    def __init__(self, config, pid, ticks, left):
        self.config, self.pid, self.ticks, self.left = config, pid, ticks, left
        self.over = threading.Event()
        self.result = None
        threading.Thread(target=self.watch, daemon=True).start()

    def lives(self):
        return ticks_of(self.pid) == self.ticks

    def watch(self):
        while self.lives():
            try:
                os.waitpid(self.pid, os.WNOHANG)  # if it is ours
            except ChildProcessError:
                pass
            time.sleep(0.02)
        self.result = M['Exit'](exit_code=137, signal=9)  # its shell was killed, too
        if os.path.exists(self.left):
            with open(self.left) as file:
                code = int(file.read())
            self.result = M['Exit'](exit_code=code, signal=code - 128 if code > 128 else 0)
        self.over.set()

    def kill(self, number):
        if self.lives():
            os.killpg(self.pid, number)


class Command:
    """One that is run beside a task, with pipes or on a terminal of its own."""

    def __init__(self, words, tty, env):
        self.said, self.tty = queue.Queue(), tty
        if tty:
            self.input, end = os.openpty()
            words, ends, self.open = ['setsid', '-c', *words], (end, end, end), {'stdout': self.input}
        else:
            ends = (subprocess.PIPE,) * 3
        self.process = subprocess.Popen(words, stdin=ends[0], stdout=ends[1], stderr=ends[2], env=env)
        if tty:
            os.close(end)
        else:
            self.input = os.dup(self.process.stdin.fileno())
            self.process.stdin.close()
            self.open = {'stdout': self.process.stdout.fileno(), 'stderr': self.process.stderr.fileno()}

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()

    def feed(self, requests):
        with contextlib.suppress(grpc.RpcError, OSError):
            for request in requests:
                if request.HasField('tty_size'):
                    size = request.tty_size
                    fcntl.ioctl(self.input, termios.TIOCSWINSZ,
                                struct.pack('HHHH', size.height, size.width, 0, 0))
                text = request.stdin.data
                while text:
                    text = text[os.write(self.input, text):]
                if request.stdin.close and not self.tty:
                    os.close(self.input)

    def read(self, name):
        text = b'-'
        while text:
            try:
                text = os.read(self.open[name], 1000)
            except OSError:  # a terminal ends so
                text = b''
            self.said.put((name, text))

    def outputs(self):
        """(name, bytes), without any at its end."""
        left = len(self.open)
        for name in self.open:
            threading.Thread(target=self.read, args=(name,), daemon=True).start()
        while left:
            name, text = self.said.get()
            left -= not text
            yield name, text


class Plugin(wire.Base):
    def __init__(self, base):
        super().__init__(base, 2, 'scripts', M)
        self.tasks, self.events = {}, []
        self.news = threading.Condition()

    def called(self, word, task_id):
        self.write('calls', '%s %s' % (word, task_id))

    def info(self, request, context):
        self.name = 'exec' if self.word() == 'taken' else 'scripts'
        return super().info(request, context)

    # --- base ---

    def schema(self, request, context):
        spec = M['Spec']()
        spec.object.attributes['shell'].default.primary.attr.CopyFrom(
            M['Attr'](name='shell', type='string'))
        spec.object.attributes['shell'].default.default.literal.value = '"/bin/sh"'
        return M['Schema'](spec=spec)

    def configure(self, request, context):
        self.write('config', json.dumps(msgpack.unpackb(request.msgpack_config)))
        return M['Empty']()

    # --- the driver ---

    def task_schema(self, request, context):
        spec = M['Spec']()
        fields = spec.object.attributes
        fields['command'].attr.CopyFrom(M['Attr'](name='command', type='string', required=True))
        fields['codes'].attr.CopyFrom(M['Attr'](name='codes', type='list(number)'))
        fields['quiet'].default.primary.attr.CopyFrom(M['Attr'](name='quiet', type='bool'))
        fields['quiet'].default.default.literal.value = 'false'
        return M['Schema'](spec=spec)

    def capabilities(self, request, context):
        return M['CapabilitiesAnswer'](capabilities=M['Capabilities'](
            send_signals=True, exec=True, network_modes=[0, 1]))

    def fingerprint(self, request, context):
        told = None
        while context.is_active() and not self.over.is_set():
            word = self.word()
            if word != told:
                told = word
                state = M['State'](health={'undetected': 0, 'ill': 1}.get(word, 2),
                                   description='it feels ' + word if word == 'ill' else '')
                state.attributes['driver.scripts.version'].string_val = '7'
                state.attributes['driver.scripts.size'].int_val = 4
                state.attributes['driver.scripts.size'].unit = 'GiB'
                state.attributes['cpu.arch'].string_val = 'abacus'
                yield state
            time.sleep(0.05)

    def task_events(self, request, context):
        at = 0
        while context.is_active() and not self.over.is_set():
            with self.news:
                self.news.wait(0.2)
                fresh, at = self.events[at:], len(self.events)
            yield from fresh

    def start(self, request, context):
        task, word = request.task, self.word()
        config = msgpack.unpackb(task.msgpack_driver_config)
        self.write('started', json.dumps({
            'id': task.id, 'name': task.name, 'config': config, 'env': dict(task.env),
            'user': task.user, 'alloc_dir': task.alloc_dir, 'group': task.task_group_name,
            'job': [task.job_name, task.job_id, task.namespace], 'node': [task.node_name, task.node_id],
            'alloc': task.alloc_id, 'cpu': task.resources.allocated_resources.cpu.cpu_shares,
            'memory': task.resources.linux_resources.memory_limit_bytes,
            'ports': [[port.label, port.value] for port in task.resources.ports],
            'mounts': [[mount.task_path, mount.host_path, mount.readonly] for mount in task.mounts],
            'output': [task.stdout_path, task.stderr_path]}))
        if word in ('fails', 'may-come'):
            said = M['ErrorStatus'](code=9, message='no such luck')
            said.details.add(type_url=RECOVERABLE,
                             value=M['Recoverable'](recoverable=word == 'may-come').SerializeToString())
            context.set_trailing_metadata((('grpc-status-details-bin', said.SerializeToString()),))
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, 'no such luck')
        if task.id in self.tasks:
            context.abort(grpc.StatusCode.UNKNOWN, 'task with ID %s already started' % task.id)
        if word == 'dies':
            os._exit(9)
        with self.news:
            self.events.append(M['Event'](task_id=task.id, alloc_id=task.alloc_id,
                                          task_name=task.name, message='a shell is looked for'))
            self.news.notify_all()
        left = os.path.join(self.base, 'left-' + task.id.replace('/', '-'))
        # Who opens a pipe that nobody reads waits, as any driver would.
        with open(task.stdout_path, 'w') as out, open(task.stderr_path, 'w') as err:
            process = subprocess.Popen(
                ['/bin/sh', '-c', 'trap : USR1 TERM INT; (%s\n)\necho $? > %s.new; mv %s.new %s' % (
                    config['command'], left, left, left)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                env=dict(task.env, CAIRN_TEST_MARK=os.path.basename(os.path.dirname(self.base))),
                cwd=os.path.join(task.alloc_dir, task.name), start_new_session=True)
        ticks = ticks_of(process.pid)
        if word == 'dies-late':
            os._exit(9)
        self.tasks[task.id] = Task(task, process.pid, ticks, left)
        if word == 'garbage':
            return M['Started']()
        return M['Started'](handle=M['Handle'](
            version=1, config=task, state=1,
            driver_state=json.dumps([process.pid, ticks, left]).encode()))

    def recover(self, request, context):
        self.called('recover', request.handle.config.id)
        pid, ticks, left = json.loads(request.handle.driver_state)
        if request.handle.config.id in self.tasks:
            return M['Empty']()
        if self.word() == 'forgets' or not (ticks_of(pid) == ticks or os.path.exists(left)):
            context.abort(grpc.StatusCode.UNKNOWN, 'nothing of it is left')
        self.tasks[request.handle.config.id] = Task(request.handle.config, pid, ticks, left)
        return M['Empty']()

    def find(self, task_id, context):
        if task_id not in self.tasks:
            context.abort(grpc.StatusCode.UNKNOWN, NOT_FOUND)
        return self.tasks[task_id]

    def wait(self, request, context):
        task = self.find(request.task_id, context)
        while context.is_active() and not task.over.wait(0.1):
            pass
        if self.word() == 'shrugs':
            return M['Waited'](err='it got lost in the mail')
        return M['Waited'](result=task.result)

    def stop(self, request, context):
        self.called('stop:%s' % request.signal, request.task_id)
        task = self.find(request.task_id, context)
        if self.word() != 'deaf':
            task.kill(getattr(signal, request.signal or 'SIGTERM'))
            if not task.over.wait(request.timeout.seconds + request.timeout.nanos / 1e9):
                task.kill(signal.SIGKILL)
            task.over.wait()
        return M['Empty']()

    def destroy(self, request, context):
        self.called('destroy', request.task_id)
        task = self.find(request.task_id, context)
        if task.lives() and not request.force:
            context.abort(grpc.StatusCode.UNKNOWN, 'it runs')
        task.kill(signal.SIGKILL)
        task.over.wait()
        del self.tasks[request.task_id]
        return M['Empty']()

    def inspect(self, request, context):
        task = self.find(request.task_id, context)
        state = M['Status'](id=request.task_id, state=1)
        if task.over.is_set():
            state.state = 0 if self.word() == 'shrugs' else 2
            state.result.CopyFrom(task.result)
        return M['Inspected'](task=state)

    def signal(self, request, context):
        self.called('signal:%s' % request.signal, request.task_id)
        self.find(request.task_id, context).kill(getattr(signal, request.signal))
        return M['Empty']()

    def exec(self, requests, context):
        setup = next(requests).setup
        self.called('exec', setup.task_id)
        task = self.find(setup.task_id, context)
        command = Command(list(setup.command), setup.tty, dict(task.config.env))
        context.add_callback(command.kill)
        threading.Thread(target=command.feed, args=(requests,), daemon=True).start()
        for name, text in command.outputs():
            said = M['ExecBytes'](data=text) if text else M['ExecBytes'](close=True)
            yield M['ExecAnswer'](**{name: said})
        if self.word() == 'shrugs':
            context.abort(grpc.StatusCode.UNKNOWN, 'it got lost in the mail')
        yield M['ExecAnswer'](exited=True, result=M['Exit'](exit_code=command.process.wait()))

    def usage(self, request, context):
        """Of each that is told it says one part more."""
        self.called('usage', request.task_id)
        task, part = self.find(request.task_id, context), 0
        if self.word() == 'shrugs':
            context.abort(grpc.StatusCode.UNIMPLEMENTED, 'who knows')
        while context.is_active() and not self.over.is_set() and not task.over.wait(0.1):
            part += 1
            all_of_it = M['Used'](
                cpu=M['CpuUsage'](percent=37.5, user_mode=30, system_mode=7.5, throttled_periods=part,
                                  throttled_time=2000),
                memory=M['MemoryUsage'](rss=part << 20, cache=2 << 20, max_usage=9 << 20, swap=3 << 20,
                                        usage=4 << 20))
            yield M['UsageAnswer'](stats=M['Usage'](
                id=request.task_id, timestamp=M['Duration'](seconds=1700000000 + part, nanos=5),
                agg_resource_usage=all_of_it))

    def services(self):
        one, many = self.one, self.many
        return {
            wire.BASE: {'PluginInfo': one(self.info, M['Empty']),
                        'ConfigSchema': one(self.schema, M['Empty']),
                        'SetConfig': one(self.configure, M['SetConfig'])},
            DRIVER: {'TaskConfigSchema': one(self.task_schema, M['Empty']),
                     'Capabilities': one(self.capabilities, M['Empty']),
                     'Fingerprint': many(self.fingerprint, M['Empty']),
                     'TaskEvents': many(self.task_events, M['Empty']),
                     'StartTask': one(self.start, M['Start']),
                     'RecoverTask': one(self.recover, M['Recover']),
                     'WaitTask': one(self.wait, M['OfTask']),
                     'StopTask': one(self.stop, M['Stop']),
                     'DestroyTask': one(self.destroy, M['Destroy']),
                     'InspectTask': one(self.inspect, M['OfTask']),
                     'SignalTask': one(self.signal, M['Signal']),
                     'TaskStats': many(self.usage, M['UsageRequest']),
                     'ExecTaskStreaming': self.both(self.exec, M['ExecRequest'])},
        }


plugin = Plugin(sys.argv[1])
sys.exit(plugin.main(plugin.services()))
