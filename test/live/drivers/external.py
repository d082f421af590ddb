"""A node whose driver "scripts" is a plugin: test/plugins/driver.py."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import milliseconds, restart_policy, service, wait_for  # noqa: E402
from plugged import PluginNode, lacking  # noqa: E402,F401

COUNTS = 'i=0; while [ ! -e %s/go ]; do i=$((i+1)); echo line $i; sleep 0.02; done; exit 7'


def task(command, **fields):
    made = {'Name': 't', 'Driver': 'scripts', 'Config': {'command': command},
            'KillTimeout': milliseconds(2000), 'Resources': {'CPU': 50, 'MemoryMB': 32}}
    made.update(fields)
    return made


class DriverNode(PluginNode):
    def __init__(self, config=''):
        super().__init__('scripts', 'driver.py')
        self.write(config)

    def of_driver(self, name='scripts'):
        return self.of_node()['Drivers'].get(name)

    def await_driver(self):
        wait_for('the driver to be healthy', lambda: (self.of_driver() or {}).get('Healthy'), 30)

    def begin(self):
        self.start()
        self.await_driver()

    def run(self, command='exec sleep 1000', restart=None, **fields):
        self.run_job(service(task(command, **fields), restart=restart or restart_policy(0)))

    def go(self):
        """The word that tasks of these tests wait for."""
        open(os.path.join(self.base, 'go'), 'w').close()

    def await_running(self):
        return wait_for('the task to run', self.running)

    def await_calls(self, word, count=1):
        wait_for('%d times %s' % (count, word),
                 lambda: len([call for call in self.lines('calls') if call.startswith(word + ' ')]) >= count,
                 40)  # a plugin is launched again after a pause

    def printed(self, stream='stdout'):
        return self.text('GET', '/v1/client/fs/logs/%s?task=t&type=%s&plain=true' % (
            self.alloc('job', 'g')['ID'], stream))

    def readers(self):
        return [pid for pid in self.shims()
                if open('/proc/%d/cmdline' % pid).read().startswith('cairn-logs')]
