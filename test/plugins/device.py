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
  other       it says that it is a plugin for something else
  future      it speaks another version of the interface
  refuse      it refuses its configuration
  unwell      it says that it does not serve
  silent      its stream of devices ends at once
  garbage     what it says of its devices is no message
  endless     its schema is a message within itself, a thousand times
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import wire  # noqa: E402
import grpc  # noqa: E402
import msgpack  # noqa: E402

M = wire.declare(dict(wire.MESSAGES, **{
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
}))
DEVICE = 'hashicorp.nomad.plugins.device.DevicePlugin'


class Plugin(wire.Base):
    def __init__(self, base):
        super().__init__(base, 3, 'files', M)
        self.directory = None
        self.told = None  # the set that was told last, by any stream: only what is new is told

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
        self.write('config', json.dumps(config, sort_keys=True))
        return M['Empty']()

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
        self.write('reserved', ' '.join(request.device_ids))
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

    def services(self):
        one, many = self.one, self.many
        return {
            wire.BASE: {'PluginInfo': one(self.info, M['Empty']),
                        'ConfigSchema': one(self.schema, M['Empty']),
                        'SetConfig': one(self.configure, M['SetConfig'])},
            DEVICE: {'Fingerprint': many(self.fingerprint, M['Empty']),
                     'Stats': many(self.stats, M['Empty']),
                     'Reserve': one(self.reserve, M['Reserve'])},
        }


plugin = Plugin(sys.argv[1])
sys.exit(plugin.main(plugin.services()))
