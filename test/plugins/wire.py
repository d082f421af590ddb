"""What plugins of tests share: messages, declared from the protocol and not from cairn's own file, and
being launched as a plugin."""
import json
import os
import sys
import threading
import time
from concurrent import futures

try:
    import grpc
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError as lacking:
    print('%s: install python3-grpcio, python3-msgpack and python3-protobuf' % lacking)
    sys.exit(77)

COOKIE = 'e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255'
BASE = 'hashicorp.nomad.plugins.base.proto.BasePlugin'

# What any plugin says.
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
}


def declare(messages):
    """{name: class} of MESSAGES: each "field:number[=type][*] ...", strings unless said otherwise; *
    is repeated, map:TYPE a map, oneof is nobody's concern on the wire."""
    kinds = descriptor_pb2.FieldDescriptorProto
    simple = {'string': kinds.TYPE_STRING, 'bool': kinds.TYPE_BOOL, 'int32': kinds.TYPE_INT32,
              'uint64': kinds.TYPE_UINT64,
              'int64': kinds.TYPE_INT64, 'bytes': kinds.TYPE_BYTES, 'double': kinds.TYPE_DOUBLE}
    file = descriptor_pb2.FileDescriptorProto(name='device.proto', package='p', syntax='proto3')

    def set_type(field, kind):
        if kind in simple:
            field.type = simple[kind]
        else:
            field.type, field.type_name = kinds.TYPE_MESSAGE, '.p.' + kind

    for name, fields in messages.items():
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
            for name in messages}


class Base:
    """The part of a plugin that all have: KIND is its type, NAME its own."""

    def __init__(self, directory, kind, name, messages):
        self.base = directory  # of what it writes, and of the word that it is to be wrong by
        self.kind, self.name, self.M = kind, name, messages
        self.over = threading.Event()

    def word(self):
        try:
            with open(os.path.join(self.base, 'misbehave')) as file:
                return file.read().strip()
        except FileNotFoundError:
            return ''

    def write(self, name, line):
        with open(os.path.join(self.base, name), 'a') as file:
            file.write(line + '\n')

    def health(self, request, context):
        return self.M['Health'](status=2 if self.word() == 'unwell' else 1)

    def info(self, request, context):
        return self.M['Info'](type=1 if self.word() == 'other' else self.kind, name=self.name, plugin_version='v0.3.0',
                              plugin_api_versions=['v9.0.0'] if self.word() == 'future'
                              else ['v0.0.9', 'v0.1.0'])

    def shutdown(self, request, context):
        self.over.set()
        return self.M['Empty']()

    def prints(self, request, context):
        while context.is_active() and not self.over.wait(0.2):
            pass
        return
        yield  # a stream

    @staticmethod
    def one(function, request):
        return grpc.unary_unary_rpc_method_handler(
            function, request_deserializer=request.FromString,
            response_serializer=lambda message: message.SerializeToString())

    @staticmethod
    def many(function, request):
        return grpc.unary_stream_rpc_method_handler(
            function, request_deserializer=request.FromString,
            response_serializer=lambda message: message.SerializeToString())

    @staticmethod
    def both(function, request):
        return grpc.stream_stream_rpc_method_handler(
            function, request_deserializer=request.FromString,
            response_serializer=lambda message: message.SerializeToString())

    def serve(self, path, services):
        M, one, many = self.M, self.one, self.many
        services.update({
            'grpc.health.v1.Health': {'Check': one(self.health, M['Empty'])},
            'plugin.GRPCController': {'Shutdown': one(self.shutdown, M['Empty'])},
            'plugin.GRPCStdio': {'StreamStdio': many(self.prints, M['Empty'])},
        })
        server = grpc.server(futures.ThreadPoolExecutor(32))
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(name, handlers)
                                         for name, handlers in services.items()])
        server.add_insecure_port('unix:' + path)
        server.start()
        return server

    def main(self, services):
        """What it does when it is launched; an exit code."""
        if os.environ.get('NOMAD_PLUGIN_MAGIC_COOKIE') != COOKIE:
            print('this is a plugin', file=sys.stderr)
            return 1
        word = self.word()
        if word == 'mute':
            time.sleep(600)
        if word == 'die':
            print('no such hardware', file=sys.stderr)
            return 3
        if word == 'babble':
            print('hello')
        path = os.path.join(os.environ['PLUGIN_UNIX_SOCKET_DIR'], 'plugin%d' % os.getpid())
        server = self.serve(path, services)
        print('1|2|unix|%s|%s|' % (path, 'netrpc' if word == 'foreign' else 'grpc'), flush=True)
        print(json.dumps({'@level': 'info', '@message': 'it listens'}), file=sys.stderr, flush=True)
        self.over.wait()
        server.stop(0)
        return 0
