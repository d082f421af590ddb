#!/usr/bin/python3
"""A plugin for devices, on an implementation of gRPC and protobuf that is not ours.

It is launched as one, and takes its configuration by a schema:

  directory   its devices are the files in it: one whose name ends with ".bad" is not healthy
  flags       list(map(string)), which it only keeps
  limit       a number, default 7

What it was configured with is written to DIRECTORY/../config as JSON, and each call of Reserve is a
line of DIRECTORY/../reserved.  A file DIRECTORY/../misbehave says how it is to be wrong, by one word:

  mute        it says nothing when it is launched, and stays
  foreign     it says another protocol
  babble      it prints something else first
  die         it ends, with a word on its standard error
  driver      it says that it is a plugin for a driver
  future      it speaks another version of the interface
  refuse      it refuses its configuration
  unwell      it says that it does not serve
  silent      its stream of devices ends at once
  garbage     what it says of its devices is no message
  endless     its schema is a message within itself, a thousand times

The messages are declared here once more, from the protocol and not from cairn's own file.
"""
import json
import os
import sys
import threading
import time
from concurrent import futures

try:
    import grpc
    import msgpack
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError as lacking:
    print('%s: install python3-grpcio, python3-msgpack and python3-protobuf' % lacking)
    sys.exit(77)

COOKIE = 'e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255'

# message: "field:number[=type][*]", strings unless said otherwise, * is repeated, map:TYPE a map.
MESSAGES = {
    'Empty': '',
    'Health': 'status:1=int32',
    'Info': 'type:1=int32 plugin_api_versions:2* plugin_version:3 name:4',
    'Schema': 'spec:1=Spec',
    'Spec': 'object:1=Object attr:3=Attr default:9=Default literal:10=Literal',
    'Object': 'attributes:1=map:Spec',
    'Attr': 'name:1 type:2 required:3=bool',
    'Default': 'primary:1=Spec default:2=Spec',
    'Literal': 'value:1',
    'SetConfig': 'msgpack_config:1=bytes nomad_config:2=bytes plugin_api_version:3',
    'Attribute': 'float_val:1=double int_val:2=int64 string_val:3 bool_val:4=bool unit:5',
    'Locality': 'pci_bus_id:1',
    'Device': 'ID:1 healthy:2=bool health_description:3 hw_locality:4=Locality',
    'Group': 'vendor:1 device_type:2 device_name:3 devices:4=Device* attributes:5=map:Attribute',
    'Fingerprint': 'device_group:1=Group*',
    'Reserve': 'device_ids:1*',
    'Mount': 'task_path:1 host_path:2 read_only:3=bool',
    'Node': 'task_path:1 host_path:2 permissions:3',
    'Reservation': 'envs:1=map:string mounts:2=Mount* devices:3=Node*',
    'Reserved': 'container_res:1=Reservation',
    'Int': 'value:1=int64',
    'Value': 'int_numerator_val:3=Int int_denominator_val:4=Int unit:7 desc:8',
    'StatObject': 'nested:1=map:StatObject attributes:2=map:Value',
    'Time': 'seconds:1=int64 nanos:2=int32',
    'InstanceStats': 'summary:1=Value stats:2=StatObject timestamp:3=Time',
    'GroupStats': 'vendor:1 type:2 name:3 instance_stats:4=map:InstanceStats',
    'Stats': 'groups:1=GroupStats*',
}


def declare():
    """{name: class} of MESSAGES."""
    kinds = descriptor_pb2.FieldDescriptorProto
    simple = {'string': kinds.TYPE_STRING, 'bool': kinds.TYPE_BOOL, 'int32': kinds.TYPE_INT32,
              'int64': kinds.TYPE_INT64, 'bytes': kinds.TYPE_BYTES, 'double': kinds.TYPE_DOUBLE}
    file = descriptor_pb2.FileDescriptorProto(name='device.proto', package='p', syntax='proto3')

    def set_type(field, kind):
        if kind in simple:
            field.type = simple[kind]
        else:
            field.type, field.type_name = kinds.TYPE_MESSAGE, '.p.' + kind

    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields.split():
            title, _, rest = field.rstrip('*').partition(':')
            number, _, kind = rest.partition('=')
            many = field.endswith('*') or kind.startswith('map:')
            one = message.field.add(name=title, number=int(number),
                                    label=kinds.LABEL_REPEATED if many else kinds.LABEL_OPTIONAL)
            if not kind.startswith('map:'):
                set_type(one, kind or 'string')
                continue
            pair = title.title().replace('_', '') + 'Entry'
            entry = message.nested_type.add(name=pair)
            entry.options.map_entry = True
            set_type(entry.field.add(name='key', number=1, label=kinds.LABEL_OPTIONAL), 'string')
            set_type(entry.field.add(name='value', number=2, label=kinds.LABEL_OPTIONAL), kind[4:])
            set_type(one, '%s.%s' % (name, pair))
    pool = descriptor_pool.Default()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {name: factory.GetPrototype(pool.FindMessageTypeByName('p.' + name))
            for name in MESSAGES}


M = declare()
BASE = 'hashicorp.nomad.plugins.base.proto.BasePlugin'
DEVICE = 'hashicorp.nomad.plugins.device.DevicePlugin'


class Plugin:
    def __init__(self, base):
        self.base = base  # of what it writes; known from the first argument
        self.directory = None
        self.told = None  # the set that was told last, by any stream: only what is new is told
        self.over = threading.Event()

    def word(self):
        try:
            with open(os.path.join(self.base, 'misbehave')) as file:
                return file.read().strip()
        except FileNotFoundError:
            return ''

    # --- base ---

    def health(self, request, context):
        return M['Health'](status=2 if self.word() == 'unwell' else 1)

    def info(self, request, context):
        word = self.word()
        return M['Info'](type=2 if word == 'driver' else 3, name='files', plugin_version='v0.3.0',
                         plugin_api_versions=['v9.0.0'] if word == 'future' else ['v0.0.9', 'v0.1.0'])

    def schema(self, request, context):
        if self.word() == 'endless':
            spec = M['Spec'](literal=M['Literal'](value='1'))
            for _ in range(60):
                spec = M['Spec'](default=M['Default'](primary=spec, default=spec.__class__()))
            return M['Schema'](spec=spec)
        spec = M['Spec']()
        fields = spec.object.attributes
        fields['directory'].attr.CopyFrom(M['Attr'](name='directory', type='string', required=True))
        fields['flags'].attr.CopyFrom(M['Attr'](name='flags', type='list(map(string))'))
        limit = fields['limit'].default
        limit.primary.attr.CopyFrom(M['Attr'](name='limit', type='number'))
        limit.default.literal.value = '7'
        return M['Schema'](spec=spec)

    def configure(self, request, context):
        config = msgpack.unpackb(request.msgpack_config)
        if self.word() == 'refuse':
            context.abort(grpc.StatusCode.UNKNOWN, 'SetConfig failed: not on this day')
        self.directory = config['directory']
        with open(os.path.join(self.base, 'config'), 'a') as file:
            file.write(json.dumps(config, sort_keys=True) + '\n')
        return M['Empty']()

    def shutdown(self, request, context):
        self.over.set()
        return M['Empty']()

    def prints(self, request, context):
        while context.is_active() and not self.over.wait(0.2):
            pass
        return
        yield  # a stream

    # --- devices ---

    def devices(self):
        group = M['Group'](vendor='test', device_type='file', device_name='plain')
        group.attributes['size'].int_val, group.attributes['size'].unit = 4, 'GiB'
        group.attributes['color'].string_val = 'red'
        for name in sorted(os.listdir(self.directory)):
            bad = name.endswith('.bad')
            group.devices.add(ID=name, healthy=not bad,
                              health_description='it has gone bad' if bad else '')
        return M['Fingerprint'](device_group=[group] if group.devices else [])

    def fingerprint(self, request, context):
        word = self.word()
        if self.directory is None:
            context.abort(grpc.StatusCode.INTERNAL, 'it has no configuration')
        while context.is_active() and word != 'silent':
            found = self.devices()
            if word == 'garbage':
                yield M['SetConfig'](msgpack_config=b'\xff\xff')
            elif found != self.told:
                self.told = found
                yield found
            time.sleep(0.05)

    def reserve(self, request, context):
        with open(os.path.join(self.base, 'reserved'), 'a') as file:
            file.write(' '.join(request.device_ids) + '\n')
        for name in request.device_ids:
            if not os.path.exists(os.path.join(self.directory, name)):
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, 'unknown device "%s"' % name)
        answer = M['Reserved']()
        answer.container_res.envs['TEST_DEVICES'] = ','.join(request.device_ids)
        with open(os.path.join(self.base, 'gives')) as file:
            gives = json.load(file)
        for name in request.device_ids if gives.get('mounts') else []:
            answer.container_res.mounts.add(task_path='/devices/' + name, read_only=gives['mounts'] == 'ro',
                                            host_path=os.path.join(self.directory, name))
        for node in gives.get('nodes', []):
            answer.container_res.devices.add(**node)
        return answer

    def stats(self, request, context):
        while context.is_active():
            group = M['GroupStats'](vendor='test', type='file', name='plain')
            for name in sorted(os.listdir(self.directory)):
                stats = group.instance_stats[name]
                stats.summary.int_numerator_val.value = 0
                stats.summary.int_denominator_val.value = 9
                stats.summary.unit, stats.summary.desc = 'bytes', 'of it'
                stats.stats.nested['inner'].attributes['deep'].int_numerator_val.value = 5
                stats.timestamp.seconds = 1600000000
            yield M['Stats'](groups=[group])
            time.sleep(0.2)

    def serve(self, path):
        def one(function, request):
            return grpc.unary_unary_rpc_method_handler(
                function, request_deserializer=request.FromString,
                response_serializer=lambda message: message.SerializeToString())

        def many(function):
            return grpc.unary_stream_rpc_method_handler(
                function, request_deserializer=M['Empty'].FromString,
                response_serializer=lambda message: message.SerializeToString())

        services = {
            'grpc.health.v1.Health': {'Check': one(self.health, M['Empty'])},
            'plugin.GRPCController': {'Shutdown': one(self.shutdown, M['Empty'])},
            'plugin.GRPCStdio': {'StreamStdio': many(self.prints)},
            BASE: {'PluginInfo': one(self.info, M['Empty']),
                   'ConfigSchema': one(self.schema, M['Empty']),
                   'SetConfig': one(self.configure, M['SetConfig'])},
            DEVICE: {'Fingerprint': many(self.fingerprint), 'Stats': many(self.stats),
                     'Reserve': one(self.reserve, M['Reserve'])},
        }
        server = grpc.server(futures.ThreadPoolExecutor(16))
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(name, handlers)
                                         for name, handlers in services.items()])
        server.add_insecure_port('unix:' + path)
        server.start()
        return server


def main():
    if os.environ.get('NOMAD_PLUGIN_MAGIC_COOKIE') != COOKIE:
        print('this is a plugin', file=sys.stderr)
        return 1
    plugin = Plugin(sys.argv[1])
    word = plugin.word()
    if word == 'mute':
        time.sleep(600)
    if word == 'die':
        print('no such hardware', file=sys.stderr)
        return 3
    if word == 'babble':
        print('hello')
    path = os.path.join(os.environ['PLUGIN_UNIX_SOCKET_DIR'], 'plugin%d' % os.getpid())
    server = plugin.serve(path)
    print('1|2|unix|%s|%s|' % (path, 'netrpc' if word == 'foreign' else 'grpc'), flush=True)
    print(json.dumps({'@level': 'info', '@message': 'it listens'}), file=sys.stderr, flush=True)
    plugin.over.wait()
    server.stop(0)
    return 0


sys.exit(main())
