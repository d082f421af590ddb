#!/usr/bin/env python3
"""Tasks of several users on one node: each runs, and reaches what is its own and nothing else."""
import json
import os
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, raw_exec, restart_policy, service, sleeper, tap, wait_for  # noqa: E402

# Tries what can be tried with every alloc's directory that the mount table names, and reports.
SPY = r'''
own=$(dirname "$NOMAD_ALLOC_DIR")
{
    for secrets in $(grep -o '@DATA@/alloc/[^ ]*/secrets' /proc/self/mountinfo); do
        task=$(dirname "$secrets"); root=$(dirname "$task")
        case $root in "$own") continue;; esac
        echo "looked at $root"
        for file in "$secrets/token" "$task/local/file" "$root/alloc/data/file" "$root"; do
            ls "$file" >/dev/null 2>&1 && echo "saw $file"
        done
        cat "$secrets/token" 2>/dev/null && echo "read $secrets"
        for directory in "$secrets" "$task" "$task/local" "$root" "$root/alloc" "$root/alloc/logs"; do
            touch "$directory/made" 2>/dev/null && echo "wrote $directory"
        done
        mv "$task/local" "$task/moved" 2>/dev/null && echo "moved $task/local"
    done
    ls @DATA@ @DATA@/alloc >/dev/null 2>&1 && echo "listed"
    echo end
} > "$NOMAD_TASK_DIR/report.new"
mv "$NOMAD_TASK_DIR/report.new" "$NOMAD_TASK_DIR/report"
exec sleep 1000
'''

KEEPER = ('echo token > "$NOMAD_SECRETS_DIR/token"; echo x > "$NOMAD_TASK_DIR/file"; '
          'echo x > "$NOMAD_ALLOC_DIR/data/file"; touch cwd; exec sleep 1000')

# Exchanges the log directory for a link to where only root may write, all the time.
SWAPPER = r'''
cd "$NOMAD_ALLOC_DIR"
i=0
while [ $i -lt 400 ]; do
    mv -T logs away$i && ln -s @VICTIM@ logs; rm -f logs; mv -T away$i logs
    i=$((i + 1))
done 2>/dev/null
until [ -L logs ]; do  # where there is none the daemon makes one, at any moment
    mv -T logs away$i
    ln -sT @VICTIM@ logs
    i=$((i + 1))
done 2>/dev/null
touch data/done
exec sleep 1000
'''

def open_node():
    node = Node()
    os.chmod(node.dir, 0o711)
    return node


def job_of(name, task):
    return dict(service(task), ID=name, Name=name)


def directory(node, job, *below):
    return os.path.join(node.data, 'alloc', node.alloc(job, 'g')['ID'], *below)


def mode_and_owner(path):
    found = os.stat(path)
    return stat.S_IMODE(found.st_mode), found.st_uid


def users_of_one_machine_are_separated():
    node = open_node()
    node.start()
    for job, user in (('kept', 'daemon'), ('root', '')):
        node.run_job(job_of(job, raw_exec('t', KEEPER, User=user)))
        wait_for(job, lambda: node.running(job=job)
                 and os.path.exists(directory(node, job, 't', 'cwd')))
    node.run_job(job_of('spy', raw_exec('t', SPY.replace('@DATA@', node.data), User='nobody')))
    report = wait_for('the report', lambda: node.running(job='spy')
                      and directory(node, 'spy', 't', 'local', 'report'))
    wait_for('its end', lambda: os.path.exists(report))
    with open(report) as file:
        lines = file.read().splitlines()
    looked = [line for line in lines if line.startswith('looked')]
    assert len(looked) == 2, lines
    assert [line for line in lines if line not in looked] == ['end'], lines

    nobody, daemon = 65534, os.stat(directory(node, 'kept', 't')).st_uid
    assert daemon not in (0, nobody)
    assert mode_and_owner(node.data) == (0o711, 0)
    assert mode_and_owner(os.path.join(node.data, 'alloc')) == (0o711, 0)
    assert mode_and_owner(directory(node, 'kept', 't', 'secrets')) == (0o700, daemon)
    assert mode_and_owner(directory(node, 'root', 't', 'secrets')) == (0o700, 0)
    assert mode_and_owner(directory(node, 'spy', 't', 'local')) == (0o755, nobody)
    assert mode_and_owner(directory(node, 'spy', 'alloc')) == (0o777, 0)
    node.finish()


def a_closed_data_directory_is_told_at_the_start():
    node = Node()  # in a directory that is closed to others
    node.start()
    assert 'cannot reach their directories' in node.log() and node.dir in node.log(), node.log()
    node.run_job(service(sleeper(Config={'command': 'sleep', 'args': ['1000']}, User='nobody')))
    wait_for('the task, which needs no more than its working directory', node.running)
    node.finish()


def a_user_that_does_not_exist_is_said():
    node = open_node()
    node.start()
    node.run_job(service(sleeper(User='no-such-user')))
    wait_for('the reason', lambda: 'there is no user \\"no-such-user\\"' in
             json.dumps(node.task('job', 'g', 't')))
    node.finish()


def links_swapped_in_by_a_payload_lead_root_nowhere():
    node = open_node()
    victim = os.path.join(node.dir, 'victim')
    os.mkdir(victim, 0o700)
    node.start()
    node.run_job(service(
        raw_exec('t', 'for i in 1 2 3 4 5 6 7 8 9; do echo said; done; exit 1', User='nobody'),
        raw_exec('swapper', SWAPPER.replace('@VICTIM@', victim), User='nobody'),
        restart=restart_policy(10000, 50, 'delay')))
    wait_for('the swapper', lambda: node.running('swapper')
             and os.path.exists(directory(node, 'job', 'alloc', 'data', 'done')), limit_s=60)
    count = node.task('job', 'g', 't')['Restarts']
    wait_for('starts without a place for logs, which are starts all the same',
             lambda: node.task('job', 'g', 't')['Restarts'] > count + 2)
    wait_for('word of it', lambda: 'output is lost until this is mended' in node.log(1 << 20))
    assert os.listdir(victim) == [], os.listdir(victim)
    node.finish()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it runs tasks as several users')
        sys.exit(77)
    sys.exit(tap([
        users_of_one_machine_are_separated,
        a_closed_data_directory_is_told_at_the_start,
        a_user_that_does_not_exist_is_said,
        links_swapped_in_by_a_payload_lead_root_nowhere,
    ]))
