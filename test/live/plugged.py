"""A node with a plugin that is a program: one of test/plugins, which stand on another implementation of
gRPC."""
import contextlib
import os
import re
import signal
import subprocess

from lib import Node, end_processes, start_ticks, wait_for

PLUGINS = os.path.abspath(os.path.join(os.path.dirname(__file__), '../plugins'))


def lacking():
    """Why nothing can be tried here, None: it can."""
    done = subprocess.run(['/usr/bin/python3', '-c', 'import grpc, msgpack, google.protobuf'],
                          check=False, stderr=subprocess.PIPE, text=True)
    return done.stderr.strip().split('\n')[-1] if done.returncode != 0 else None


class PluginNode(Node):
    """Its plugin NAME is PROGRAM of test/plugins, which has a directory of its own: self.base."""

    def __init__(self, name, program):
        super().__init__()
        self.name, self.program = name, os.path.join(PLUGINS, program)
        self.plugin_dir = os.path.join(self.dir, 'plugins')
        self.base = os.path.join(self.dir, name)
        os.makedirs(self.plugin_dir)
        os.makedirs(self.base)
        self.config = os.path.join(self.dir, 'agent.hcl')
        self.add_plugin(name)

    def add_plugin(self, name):
        program = os.path.join(self.plugin_dir, name)
        with open(program, 'w') as file:
            file.write('#!/bin/sh\nexec /usr/bin/python3 %s %s "$@"\n' % (self.program, self.base))
        os.chmod(program, 0o755)

    def write(self, config='', plugin='', blocks=None):
        with open(self.config, 'w') as file:
            file.write('plugin_dir = "%s"\n%s\n' % (self.plugin_dir, config))
            file.write(blocks if blocks is not None
                       else 'plugin "%s" {\n  config {\n    %s\n  }\n}\n' % (self.name, plugin))

    def misbehave(self, word):
        path = os.path.join(self.base, 'misbehave')
        if word:
            with open(path, 'w') as file:
                file.write(word)
        else:
            os.unlink(path)

    def lines(self, name):
        """Of a file that the plugin writes."""
        with contextlib.suppress(FileNotFoundError):
            with open(os.path.join(self.base, name)) as file:
                return file.read().splitlines()
        return []

    def of_node(self):
        return self.get('/v1/node/' + self.get('/v1/nodes')[0]['ID'])

    def plugin(self, name=None):
        """How it is: {'State': ..., 'Pid': ...}; None: there is none."""
        return (self.of_node().get('CairnPlugins') or {}).get(name or self.name)

    def state(self, name=None):
        return (self.plugin(name) or {}).get('State')

    def await_state(self, state, name=None):
        wait_for('plugin %s to be %s' % (name or self.name, state), lambda: self.state(name) == state, 30)
        return self.plugin(name)

    def await_ready(self):
        return self.await_state('READY')['Pid']

    def await_another(self, pid):
        """One is ready that is not PID, both of which it says in one answer."""
        def is_another():
            plugin = self.plugin() or {}
            return plugin.get('State') == 'READY' and plugin['Pid'] != pid
        wait_for('another one', is_another, 30)

    def processes(self):
        """Those of plugins of this node: whoever runs with its directory on the command line."""
        found = []
        for entry in os.listdir('/proc'):
            if not entry.isdigit():
                continue
            try:
                with open('/proc/%s/cmdline' % entry, 'rb') as file:
                    words = file.read().decode(errors='replace').split('\0')
            except (FileNotFoundError, ProcessLookupError):
                continue
            if self.base in words and self.program in words and start_ticks(int(entry)) is not None:
                found.append(int(entry))
        return found

    def kill_plugin(self):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self):
        marks = set(re.findall(r' started node=([0-9a-f]{8})-', self.log(1 << 20)))
        super().close()
        end_processes(self.processes())
        for root, _, _ in list(os.walk('/sys/fs/cgroup', topdown=False)):  # what it has started, too
            if any('/cairn/%s-plugins' % mark in root for mark in marks):
                wait_for('the cgroup to be empty', lambda path=root: self.remove(path), 5)

    @staticmethod
    def remove(cgroup):
        try:
            os.rmdir(cgroup)
        except FileNotFoundError:
            pass
        except OSError:  # its last process is not reaped yet
            return False
        return True
