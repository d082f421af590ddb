#!/usr/bin/python3
"""A plugin of CSI, on an implementation of gRPC and protobuf that is not ours.

usage: test/csi/plugin.py SOCKET [DIRECTORY]

SOCKET may be "-": that of CSI_ENDPOINT.  Prints "ready" when it listens.  What each call has asked
is written to SOCKET.last and, for the last of each method, to SOCKET.METHOD.last as JSON, which names
every field by the specification.  SOCKET.next, if it is there, says what becomes of the next call and is
gone with it; so does each line of DIRECTORY/next.METHOD, the first of them for the next call of that
method:

  answer             what it would be without all that
  say CODE TEXT      the error CODE of gRPC with these words
  raw HEX [N]        OK with these bytes, N times, as its message
  hang               no answer for a minute
  die                the process ends in mid-call
  leave              the server goes (GOAWAY), with the call unanswered
  lie                OK, and nothing is done
  late MS            OK, and it is done that much later
  wait MS            it is done and answered that much later
  did ...            it is done, and then one of the above: the answer is lost

With DIRECTORY storage is real: its controller makes and deletes directories there, marks with
DIRECTORY/<volume>.attached what is attached, and keeps copies as <name>.snapshot.  Volumes are, too:
DIRECTORY/<volume> is mounted where a call of the node says it, the image of a file system by a loop
device, or, for a block device, bound there as a file.  DIRECTORY/answers.json says otherwise what methods answer, and DIRECTORY/pause how many
milliseconds every call that names a volume takes; both are read when it begins.  Where there is a
file DIRECTORY/counted, each publish that mounts is a line of it, each unpublish takes one away, and
nothing is unstaged while one is left, whatever is mounted.  What is asked is a
line of DIRECTORY/calls each, begin
and end: "> NodeStageVolume vol-1 /staging/path", "< NodeStageVolume vol-1 /staging/path OK".

The messages are declared here once more, from the specification and not from cairn's own file, so
that a wrong number or type in either is seen.
"""
import contextlib
import ctypes
import json
import os
import shutil
import struct
import subprocess
import sys
import threading
import time
from concurrent import futures

try:
    import grpc
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
except ImportError as lacking:
    print('%s: install python3-grpcio and python3-protobuf' % lacking)
    sys.exit(77)

# message: "field:number[=type][*]", strings unless said otherwise, * is repeated, map is of strings.
MESSAGES = {
    'Empty': '',
    'BoolValue': 'value:1=bool',
    'MountVolume': 'fs_type:1 mount_flags:2* volume_mount_group:3',
    'AccessMode': 'mode:1=int32',
    'VolumeCapability': 'block:1=Empty mount:2=MountVolume access_mode:3=AccessMode',
    'CapacityRange': 'required_bytes:1=int64 limit_bytes:2=int64',
    'SnapshotSource': 'snapshot_id:1',
    'VolumeSource': 'volume_id:1',
    'VolumeContentSource': 'snapshot:1=SnapshotSource volume:2=VolumeSource',
    'Topology': 'segments:1=map',
    'TopologyRequirement': 'requisite:1=Topology* preferred:2=Topology*',
    'Volume': 'capacity_bytes:1=int64 volume_id:2 volume_context:3=map '
              'content_source:4=VolumeContentSource accessible_topology:5=Topology*',
    'VolumeCondition': 'abnormal:1=bool message:2',
    'Snapshot': 'size_bytes:1=int64 snapshot_id:2 source_volume_id:3 creation_time:4=Timestamp '
                'ready_to_use:5=bool group_snapshot_id:6',
    'Type': 'type:1=int32',
    'PluginCapability': 'service:1=Type volume_expansion:2=Type',
    'RpcCapability': 'rpc:1=Type',
    'GetPluginInfoResponse': 'name:1 vendor_version:2 manifest:3=map',
    'GetPluginCapabilitiesResponse': 'capabilities:1=PluginCapability*',
    'ProbeResponse': 'ready:1=BoolValue',
    'CreateVolumeRequest': 'name:1 capacity_range:2=CapacityRange '
                           'volume_capabilities:3=VolumeCapability* parameters:4=map secrets:5=map '
                           'volume_content_source:6=VolumeContentSource '
                           'accessibility_requirements:7=TopologyRequirement',
    'CreateVolumeResponse': 'volume:1=Volume',
    'DeleteVolumeRequest': 'volume_id:1 secrets:2=map',
    'ControllerPublishVolumeRequest': 'volume_id:1 node_id:2 volume_capability:3=VolumeCapability '
                                      'readonly:4=bool secrets:5=map volume_context:6=map',
    'ControllerPublishVolumeResponse': 'publish_context:1=map',
    'ControllerUnpublishVolumeRequest': 'volume_id:1 node_id:2 secrets:3=map',
    'ValidateVolumeCapabilitiesRequest': 'volume_id:1 volume_context:2=map '
                                         'volume_capabilities:3=VolumeCapability* '
                                         'parameters:4=map secrets:5=map',
    'Confirmed': 'volume_context:1=map volume_capabilities:2=VolumeCapability* parameters:3=map',
    'ValidateVolumeCapabilitiesResponse': 'confirmed:1=Confirmed message:2',
    'ListVolumesRequest': 'max_entries:1=int32 starting_token:2',
    'VolumeStatus': 'published_node_ids:1* volume_condition:2=VolumeCondition',
    'VolumeEntry': 'volume:1=Volume status:2=VolumeStatus',
    'ListVolumesResponse': 'entries:1=VolumeEntry* next_token:2',
    'GetCapacityRequest': 'volume_capabilities:1=VolumeCapability* parameters:2=map',
    'GetCapacityResponse': 'available_capacity:1=int64',
    'ControllerGetCapabilitiesResponse': 'capabilities:1=RpcCapability*',
    'CreateSnapshotRequest': 'source_volume_id:1 name:2 secrets:3=map parameters:4=map',
    'CreateSnapshotResponse': 'snapshot:1=Snapshot',
    'DeleteSnapshotRequest': 'snapshot_id:1 secrets:2=map',
    'ListSnapshotsRequest': 'max_entries:1=int32 starting_token:2 source_volume_id:3 snapshot_id:4 '
                            'secrets:5=map',
    'SnapshotEntry': 'snapshot:1=Snapshot',
    'ListSnapshotsResponse': 'entries:1=SnapshotEntry* next_token:2',
    'ControllerExpandVolumeRequest': 'volume_id:1 capacity_range:2=CapacityRange secrets:3=map '
                                     'volume_capability:4=VolumeCapability',
    'ControllerExpandVolumeResponse': 'capacity_bytes:1=int64 node_expansion_required:2=bool',
    'NodeStageVolumeRequest': 'volume_id:1 publish_context:2=map staging_target_path:3 '
                              'volume_capability:4=VolumeCapability secrets:5=map '
                              'volume_context:6=map',
    'NodeUnstageVolumeRequest': 'volume_id:1 staging_target_path:2',
    'NodePublishVolumeRequest': 'volume_id:1 publish_context:2=map staging_target_path:3 '
                                'target_path:4 volume_capability:5=VolumeCapability '
                                'readonly:6=bool secrets:7=map volume_context:8=map',
    'NodeUnpublishVolumeRequest': 'volume_id:1 target_path:2',
    'NodeGetVolumeStatsRequest': 'volume_id:1 volume_path:2 staging_target_path:3',
    'VolumeUsage': 'available:1=int64 total:2=int64 used:3=int64 unit:4=int32',
    'NodeGetVolumeStatsResponse': 'usage:1=VolumeUsage* volume_condition:2=VolumeCondition',
    'NodeExpandVolumeRequest': 'volume_id:1 volume_path:2 capacity_range:3=CapacityRange '
                               'staging_target_path:4 volume_capability:5=VolumeCapability '
                               'secrets:6=map',
    'NodeExpandVolumeResponse': 'capacity_bytes:1=int64',
    'NodeGetCapabilitiesResponse': 'capabilities:1=RpcCapability*',
    'NodeGetInfoResponse': 'node_id:1 max_volumes_per_node:2=int64 accessible_topology:3=Topology',
}
SERVICES = {
    'Identity': 'GetPluginInfo GetPluginCapabilities Probe',
    'Controller': 'CreateVolume DeleteVolume ControllerPublishVolume ControllerUnpublishVolume '
                  'ValidateVolumeCapabilities ListVolumes GetCapacity ControllerGetCapabilities '
                  'CreateSnapshot DeleteSnapshot ListSnapshots ControllerExpandVolume',
    'Node': 'NodeStageVolume NodeUnstageVolume NodePublishVolume NodeUnpublishVolume '
            'NodeGetVolumeStats NodeExpandVolume NodeGetCapabilities NodeGetInfo',
}
VOLUME = {'volume_id': 'vol-1', 'capacity_bytes': 1 << 30, 'volume_context': {'pool': 'fast'},
          'content_source': {'snapshot': {'snapshot_id': 'snap-0'}},
          'accessible_topology': [{'segments': {'zone': 'a'}}, {'segments': {'zone': 'b'}}]}
SNAPSHOT = {'snapshot_id': 'snap-1', 'source_volume_id': 'vol-1', 'size_bytes': 4096,
            'creation_time': '2026-01-02T03:04:05Z', 'ready_to_use': True}
USAGE = [{'available': 60, 'total': 100, 'used': 40, 'unit': 1},
         {'available': 6, 'total': 10, 'used': 4, 'unit': 2},
         {'available': 1, 'total': 1, 'used': 1, 'unit': 7}]  # of a later version
ANSWERS = {
    'GetPluginInfo': {'name': 'test.cairn.example', 'vendor_version': '1.2.3',
                      'manifest': {'url': 'none'}},
    'GetPluginCapabilities': {'capabilities': [{'service': {'type': 1}}, {'service': {'type': 2}},
                                               {'service': {'type': 99}},
                                               {'volume_expansion': {'type': 1}}]},
    'CreateVolume': {'volume': VOLUME},
    'ControllerPublishVolume': {'publish_context': {'device': '/dev/xvdf'}},
    'ValidateVolumeCapabilities': {'confirmed': {'volume_capabilities': [
        {'mount': {'fs_type': 'ext4', 'mount_flags': ['noatime']}, 'access_mode': {'mode': 5}},
        {'block': {}, 'access_mode': {'mode': 1}}]}, 'message': 'fine'},
    'ListVolumes': {'entries': [
        {'volume': VOLUME, 'status': {'published_node_ids': ['n1', 'n2'],
                                      'volume_condition': {'abnormal': True, 'message': 'worn'}}},
        {'volume': {'volume_id': 'vol-2'}}], 'next_token': 'more'},
    'GetCapacity': {'available_capacity': 1 << 40},
    'ControllerGetCapabilities': {'capabilities': [{'rpc': {'type': kind}}
                                                   for kind in (1, 2, 9, 77)]},
    'CreateSnapshot': {'snapshot': SNAPSHOT},
    'ListSnapshots': {'entries': [{'snapshot': SNAPSHOT}], 'next_token': ''},
    'ControllerExpandVolume': {'capacity_bytes': 1 << 31, 'node_expansion_required': True},
    'NodeGetVolumeStats': {'usage': USAGE,
                           'volume_condition': {'abnormal': False, 'message': 'good'}},
    'NodeExpandVolume': {'capacity_bytes': 1 << 31},
    'NodeGetCapabilities': {'capabilities': [{'rpc': {'type': 1}}, {'rpc': {'type': 3}}]},
    'NodeGetInfo': {'node_id': 'node-7', 'max_volumes_per_node': 12,
                    'accessible_topology': {'segments': {'zone': 'a', 'rack': 'r3'}}},
}


def declare():
    """{name: class} of MESSAGES."""
    kinds = descriptor_pb2.FieldDescriptorProto
    simple = {'string': kinds.TYPE_STRING, 'bool': kinds.TYPE_BOOL, 'int32': kinds.TYPE_INT32,
              'int64': kinds.TYPE_INT64}
    file = descriptor_pb2.FileDescriptorProto(name='plugin.proto', package='csi.v1',
                                              syntax='proto3',
                                              dependency=['google/protobuf/timestamp.proto'])
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields.split():
            repeated = field.endswith('*')
            title, _, rest = field.rstrip('*').partition(':')
            number, _, kind = rest.partition('=')
            kind = kind or 'string'
            one = message.field.add(name=title, number=int(number),
                                    label=kinds.LABEL_REPEATED if repeated or kind == 'map'
                                    else kinds.LABEL_OPTIONAL)
            if kind in simple:
                one.type = simple[kind]
                continue
            one.type = kinds.TYPE_MESSAGE
            one.type_name = '.csi.v1.' + kind
            if kind == 'Timestamp':
                one.type_name = '.google.protobuf.Timestamp'
            if kind == 'map':
                pair = title.title().replace('_', '') + 'Entry'
                entry = message.nested_type.add(name=pair)
                entry.options.map_entry = True
                for key, at in (('key', 1), ('value', 2)):
                    entry.field.add(name=key, number=at, label=kinds.LABEL_OPTIONAL,
                                    type=kinds.TYPE_STRING)
                one.type_name = '.csi.v1.%s.%s' % (name, pair)
    from google.protobuf import timestamp_pb2  # registers what the file depends on
    assert timestamp_pb2
    pool = descriptor_pool.Default()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {name: factory.GetPrototype(pool.FindMessageTypeByName('csi.v1.' + name))
            for name in MESSAGES}


class Refusal(Exception):
    """An error of gRPC: its code and its words."""


class Mounts:
    """Volumes below a directory, mounted where they are asked for."""
    BIND, REMOUNT, READ_ONLY = 4096, 32, 1
    MOUNT_ROOT = 0x2000

    def __init__(self, directory):
        self.directory = directory
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.lock = threading.Lock()

    def call(self, result, what):
        if result != 0:
            error = ctypes.get_errno()
            raise Refusal(13, '%s: %s' % (what, os.strerror(error)))

    def is_mounted(self, path):
        status = ctypes.create_string_buffer(256)  # struct statx
        if self.libc.statx(-100, path.encode(), 0x100, 0, status) != 0:  # without links
            return False
        attributes, known = (struct.unpack_from('<Q', status, at)[0] for at in (8, 56))
        assert known & self.MOUNT_ROOT, 'Linux 5.8 tells what a mount is'
        return attributes & self.MOUNT_ROOT != 0

    def bind(self, source, target, read_only):
        if self.is_mounted(target):
            return
        self.call(self.libc.mount(source.encode(), target.encode(), None, self.BIND, None),
                  'mount ' + target)
        if read_only:
            self.call(self.libc.mount(None, target.encode(), None,
                                      self.BIND | self.REMOUNT | self.READ_ONLY, None),
                      'remount ' + target)

    def unbind(self, target):
        while self.is_mounted(target):
            self.call(self.libc.umount2(target.encode(), 0), 'umount ' + target)

    def source(self, request, field='volume_id'):
        volume = getattr(request, field)
        path = os.path.join(self.directory, volume)
        if not os.path.exists(path):
            raise Refusal(5, 'there is no volume %s' % volume)
        return path

    def path(self, name):
        return os.path.join(self.directory, os.path.basename(name))

    def ControllerGetCapabilities(self, request):
        return {'capabilities': [{'rpc': {'type': kind}} for kind in (1, 2, 3, 4, 5, 6, 9)]}

    def CreateVolume(self, request):
        os.makedirs(self.path(request.name), exist_ok=True)
        os.chmod(self.path(request.name), 0o777)
        return {'volume': {'volume_id': request.name, 'volume_context': {'made': 'yes'},
                           'accessible_topology': VOLUME['accessible_topology'],
                           'capacity_bytes': request.capacity_range.required_bytes or 1 << 20}}

    def DeleteVolume(self, request):
        if os.path.exists(self.path(request.volume_id + '.attached')):
            raise Refusal(9, '%s is attached' % request.volume_id)
        shutil.rmtree(self.path(request.volume_id), ignore_errors=True)

    def ControllerPublishVolume(self, request):
        self.source(request)
        with open(self.path(request.volume_id + '.attached'), 'w') as mark:
            mark.write(request.node_id)
        return {'publish_context': {'device': '/dev/' + request.volume_id}}

    def ControllerUnpublishVolume(self, request):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(request.volume_id + '.attached'))

    def ValidateVolumeCapabilities(self, request):
        self.source(request)
        return {'confirmed': {'volume_capabilities': [
            json_format.MessageToDict(one, preserving_proto_field_name=True)
            for one in request.volume_capabilities]}}

    def ControllerExpandVolume(self, request):
        self.source(request)
        return {'capacity_bytes': request.capacity_range.required_bytes,
                'node_expansion_required': True}

    def NodeExpandVolume(self, request):
        if not self.is_mounted(request.volume_path):
            raise Refusal(5, '%s is not mounted' % request.volume_path)
        return {'capacity_bytes': request.capacity_range.required_bytes}

    def ListVolumes(self, request):
        names = sorted(entry.name for entry in os.scandir(self.directory) if entry.is_dir())
        return {'entries': [{'volume': {'volume_id': name}} for name in names]}

    def CreateSnapshot(self, request):
        self.source(request, 'source_volume_id')
        with open(self.path(request.name + '.snapshot'), 'w') as snapshot:
            snapshot.write(request.source_volume_id)
        return {'snapshot': self.snapshot(request.name)}

    def snapshot(self, name):
        with open(self.path(name + '.snapshot')) as snapshot:
            return {'snapshot_id': name, 'source_volume_id': snapshot.read(), 'size_bytes': 4096,
                    'creation_time': '2026-01-02T03:04:05Z', 'ready_to_use': True}

    def DeleteSnapshot(self, request):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(request.snapshot_id + '.snapshot'))

    def ListSnapshots(self, request):
        names = sorted(name[:-9] for name in os.listdir(self.directory)
                       if name.endswith('.snapshot'))
        return {'entries': [{'snapshot': self.snapshot(name)} for name in names]}

    def NodeStageVolume(self, request):
        source, target = self.source(request), request.staging_target_path
        if os.path.isfile(source) and not self.is_mounted(target):  # the image of a file system
            done = subprocess.run(['mount', '-o', 'loop', '-t', request.volume_capability.mount.fs_type,
                                   source, target], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode != 0:
                raise Refusal(13, done.stdout)
        elif not request.volume_capability.HasField('block'):
            self.bind(source, target, False)

    def NodePublishVolume(self, request):
        block = request.volume_capability.HasField('block')
        source, target = self.source(request), request.target_path
        if request.staging_target_path and not block:
            if not self.is_mounted(request.staging_target_path):
                raise Refusal(9, '%s is not staged' % request.volume_id)
            source = request.staging_target_path
        if block:
            open(target, 'a').close()
        else:
            os.makedirs(target, exist_ok=True)
        mounted = self.is_mounted(target)
        self.bind(source, target, request.readonly)
        if not mounted:
            self.count(lambda lines: lines.append(target))

    def NodeUnpublishVolume(self, request):
        self.unbind(request.target_path)
        self.count(lambda lines: request.target_path in lines and lines.remove(request.target_path))
        if os.path.isdir(request.target_path):
            os.rmdir(request.target_path)
        elif os.path.exists(request.target_path):
            os.unlink(request.target_path)

    def NodeUnstageVolume(self, request):
        if self.count(lambda lines: None):
            raise Refusal(13, '%s is still published' % request.volume_id)
        self.unbind(request.staging_target_path)

    def count(self, change):
        """The publishes that are left, after CHANGE; none are counted without the file for it."""
        path = os.path.join(self.directory, 'counted')
        with self.lock:
            if not os.path.exists(path):
                return []
            with open(path, 'r+') as file:
                lines = file.read().splitlines()
                change(lines)
                file.seek(0)
                file.truncate()
                file.write(''.join(line + '\n' for line in lines))
        return lines

    def note(self, begins, method, request, end=''):
        places = [getattr(request, name, '') for name in ('volume_id', 'staging_target_path',
                                                          'target_path', 'volume_path')]
        line = ' '.join(filter(None, ['<>'[begins], method] + places + [end]))
        with open(os.path.join(self.directory, 'calls'), 'a') as calls:
            calls.write(line + '\n')

    def command(self, method):
        path = os.path.join(self.directory, 'next.' + method)
        with self.lock:
            try:
                with open(path) as file:
                    first, *rest = file.read().splitlines()
            except (FileNotFoundError, ValueError):
                return None
            if rest:
                with open(path + '.new', 'w') as file:
                    file.write('\n'.join(rest) + '\n')
                os.rename(path + '.new', path)
            else:
                os.unlink(path)
        return first.split(' ', 2)


class Plugin:
    def __init__(self, socket, directory):
        self.socket = socket
        self.mounts = Mounts(directory) if directory else None
        self.told = {}
        if directory and os.path.exists(os.path.join(directory, 'answers.json')):
            with open(os.path.join(directory, 'answers.json')) as answers:
                self.told = json.load(answers)
        self.pause_s = 0
        if directory and os.path.exists(os.path.join(directory, 'pause')):
            with open(os.path.join(directory, 'pause')) as pause:
                self.pause_s = int(pause.read()) / 1000
        self.kinds = declare()
        self.lock = threading.Lock()
        self.server = grpc.server(futures.ThreadPoolExecutor(128))
        for service, methods in SERVICES.items():
            self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
                'csi.v1.' + service,
                {method: grpc.unary_unary_rpc_method_handler(self.handler(method))
                 for method in methods.split()})])
        os.chdir(os.path.dirname(socket))  # a path has 107 bytes at most
        self.server.add_insecure_port('unix:' + os.path.basename(socket))

    def kind(self, name):
        return self.kinds[name if name in self.kinds else 'Empty']

    def handler(self, method):
        def handle(raw, context):
            request = self.kind(method + 'Request').FromString(raw)
            shown = json_format.MessageToDict(request, preserving_proto_field_name=True)
            with self.lock:
                for path in (self.socket + '.last', '%s.%s.last' % (self.socket, method)):
                    with open(path, 'w') as last:
                        json.dump({method: shown}, last, sort_keys=True, ensure_ascii=False)
                try:
                    with open(self.socket + '.next') as file:
                        command = file.read().split(' ', 2)
                    os.unlink(self.socket + '.next')
                except FileNotFoundError:
                    command = ['answer']
            if self.mounts is None:
                return self.obey(command, method, context)
            self.mounts.note(True, method, request)
            if getattr(request, 'volume_id', ''):
                time.sleep(self.pause_s)
            command = self.mounts.command(method) or command
            try:
                command, own = self.work(command, method, request)
                answer = self.obey(command, method, context, own)
            except Refusal as refusal:
                self.mounts.note(False, method, request, str(refusal.args[0]))
                return self.obey(['say'] + list(refusal.args), method, context)
            self.mounts.note(False, method, request, 'OK')
            return answer
        return handle

    def work(self, command, method, request):
        """Does what is asked, when it is to be done; what becomes of the answer, and what it is."""
        do, own = getattr(self.mounts, method, lambda request: None), None
        if command[0] == 'late':
            threading.Timer(int(command[1]) / 1000, do, [request]).start()
        elif command[0] == 'wait':
            time.sleep(int(command[1]) / 1000)
            own = do(request)
        elif command[0] == 'did':
            do(request)
            return ' '.join(command[1:]).split(' ', 2), None
        elif command[0] == 'answer':
            own = do(request)
        return command, own

    def obey(self, command, method, context, own=None):
        if command[0] == 'say':
            code = next(code for code in grpc.StatusCode if code.value[0] == int(command[1]))
            context.abort(code, command[2])
        if command[0] == 'raw':
            return bytes.fromhex(command[1]) * int(command[2] if len(command) > 2 else 1)
        if command[0] == 'die':
            os._exit(0)
        if command[0] == 'leave':
            self.server.stop(None)
        if command[0] in ('hang', 'leave'):
            threading.Event().wait(60)
        answer = self.kind(method + 'Response')()
        json_format.ParseDict(self.told.get(method, own or ANSWERS.get(method, {})), answer)
        return answer.SerializeToString()


def main():
    socket = sys.argv[1]
    if socket == '-':
        socket = os.environ['CSI_ENDPOINT'].split('://', 1)[1]
    plugin = Plugin(os.path.abspath(socket),
                    os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None)
    plugin.server.start()
    print('ready', flush=True)
    plugin.server.wait_for_termination()


main()
