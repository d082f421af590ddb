"""A node with a plugin for devices: test/plugins/device.py."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import start_ticks, wait_for  # noqa: E402,F401
from plugged import PluginNode, lacking  # noqa: E402,F401


class DeviceNode(PluginNode):
    """Its plugin is "files"; its devices are files of self.devices."""

    def __init__(self, names=('a', 'b'), config='', plugin='directory = "%s"'):
        super().__init__('files', 'device.py')
        self.devices = os.path.join(self.base, 'devices')
        os.makedirs(self.devices)
        for name in names:
            self.put_device(name)
        self.gives()
        self.write(config, plugin % self.devices if '%s' in plugin else plugin)

    def write(self, config='', plugin=None, blocks=None):
        super().write(config, 'directory = "%s"' % self.devices if plugin is None else plugin, blocks)

    def put_device(self, name):
        with open(os.path.join(self.devices, name), 'w') as file:
            file.write('device %s\n' % name)

    def gives(self, mounts=None, nodes=()):
        with open(os.path.join(self.base, 'gives'), 'w') as file:
            json.dump({'mounts': mounts, 'nodes': list(nodes)}, file)

    def instances(self):
        """{id: healthy} of the node's devices."""
        return {instance['ID']: instance['Healthy']
                for group in self.of_node()['NodeResources']['Devices']
                for instance in group['Instances']}

    def await_instances(self, wanted):
        wait_for('the devices %s' % wanted, lambda: self.instances() == wanted)
