#!/usr/bin/env python3
"""Templates on a real node: rendered before each start, only when they change, and never through a link."""
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import (NO_RESCHEDULE, Node, Refused, events, milliseconds, raw_exec,  # noqa: E402
                 restart_policy, service, tap, wait_for)

NOBODY = 65534


def task(*templates, script='exec sleep 1000', **fields):
    return raw_exec('t', script, KillTimeout=milliseconds(500), Templates=list(templates), **fields)


def template(data, destination, **fields):
    return dict({'EmbeddedTmpl': data, 'DestPath': destination}, **fields)


def open_node(config='client {\n  meta {\n    rack = "r7"\n  }\n}\n'):
    node = Node(config=config)
    os.chmod(node.dir, 0o711)
    node.start()
    return node


def path_of(node, *names):
    return os.path.join(node.data, 'alloc', node.alloc('job', 'g')['ID'], 't', *names)


def read(path):
    with open(path) as file:
        return file.read()


def restart(node, starts):
    node.put('/v1/client/allocation/%s/restart' % node.alloc('job', 'g')['ID'], {})
    wait_for('start %d' % starts, lambda: events(node.running()).count('Started') == starts)


def stamp(path):
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns


def says(node):
    """The last words of a hook that failed."""
    found = [event['DisplayMessage'] for event in (node.task('job', 'g', 't') or {}).get('Events') or []
             if event['Type'] == 'Task hook failed']
    return found[-1] if found else None


def what_is_rendered_is_there_before_the_task():
    node = open_node()
    node.run_job(service(task(
        template('{{ env "NOMAD_META_what" | toUpper }} {{ env "meta.rack" }} {{ env "attr.kernel.name" }}\n'
                 '{{- range $i, $p := split "," "a,b" }}\n{{ $i }}={{ $p }}{{ end }}\n',
                 '${NOMAD_TASK_DIR}/conf/a.txt', Perms='0640'),
        template('[[ env "NOMAD_ALLOC_ID" ]] {{ }}', 'secrets/b', LeftDelim='[[', RightDelim=']]', Uid=0, Gid=0),
        script='cat local/conf/a.txt > local/seen; exec sleep 1000', User='nobody', Meta={'what': 'x'})))
    wait_for('the task', node.running)
    rendered = 'X r7 linux\n0=a\n1=b\n'
    assert read(path_of(node, 'local', 'conf', 'a.txt')) == rendered
    wait_for('what it saw', lambda: os.path.exists(path_of(node, 'local', 'seen'))
             and read(path_of(node, 'local', 'seen')) == rendered)
    status = os.stat(path_of(node, 'local', 'conf', 'a.txt'))
    assert (status.st_mode & 0o7777, status.st_uid) == (0o640, NOBODY), status
    assert os.stat(path_of(node, 'local', 'conf')).st_uid == NOBODY
    assert read(path_of(node, 'secrets', 'b')) == node.alloc('job', 'g')['ID'] + ' {{ }}'
    assert os.stat(path_of(node, 'secrets', 'b')).st_uid == 0
    node.finish()


def what_did_not_change_is_not_written_and_nobody_is_told():
    node = open_node()
    many = [template('{{ env "NOMAD_ALLOC_ID" }} %d' % i, 'local/f%d' % i) for i in range(300)]
    node.run_job(service(task(*many)))
    before = wait_for('the task', node.running)
    stamps = [stamp(path_of(node, 'local', 'f%d' % i)) for i in range(300)]
    restart(node, 2)
    assert [stamp(path_of(node, 'local', 'f%d' % i)) for i in range(300)] == stamps, 'written again'
    told = events(node.running())
    node.kill()
    node.start()
    state = wait_for('the task', node.running)
    assert events(state) == told and state['StartedAt'] != before['StartedAt'], state
    assert [stamp(path_of(node, 'local', 'f%d' % i)) for i in range(300)] == stamps, 'written again'
    os.unlink(path_of(node, 'local', 'f7'))
    with open(path_of(node, 'local', 'f8'), 'w') as out:
        out.write('changed by the task')
    restart(node, 3)
    assert read(path_of(node, 'local', 'f7')) == node.alloc('job', 'g')['ID'] + ' 7'
    assert read(path_of(node, 'local', 'f8')) == node.alloc('job', 'g')['ID'] + ' 8'
    assert stamp(path_of(node, 'local', 'f9')) == stamps[9]
    node.finish()


def variables_of_a_template_are_the_tasks():
    node = open_node()
    node.run_job(service(task(
        template('# none of it\nPLAIN=a b\nexport QUOTED="x\\ty" \nSINGLE=\'$HOME\'\n\nEMPTY=\n',
                 'secrets/env', Envvars=True, Perms='0600'),
        script='env > local/env; exec sleep 1000')))
    wait_for('the task', node.running)
    seen = wait_for('its environment', lambda: os.path.exists(path_of(node, 'local', 'env'))
                    and re.findall('(?m)^(?:PLAIN|QUOTED|SINGLE|EMPTY)=.*$', read(path_of(node, 'local', 'env'))))
    assert sorted(seen) == ['EMPTY=', 'PLAIN=a b', 'QUOTED=x\ty', 'SINGLE=$HOME'], seen
    node.kill()
    node.start()
    wait_for('the task', node.running)
    restart(node, 2)
    node.finish()


def what_it_reads_is_read_at_each_start_and_by_no_link():
    node = open_node()
    node.run_job(service(task(
        template('{{ if env "NOMAD_TASK_NAME" }}first{{ end }}', 'local/source.tpl'),
        {'SourcePath': 'local/source.tpl', 'DestPath': 'local/out'},
        template('{{ file "local/out" }} {{ file (print (env "NOMAD_TASK_DIR") "/source.tpl") }}', 'local/both'))))
    wait_for('the task', node.running)
    assert read(path_of(node, 'local', 'both')) == 'first first'
    outside = os.path.join(node.dir, 'outside')
    with open(outside, 'w') as out:
        out.write('not its own')
    os.symlink(outside, path_of(node, 'local', 'link'))
    os.rename(path_of(node, 'local', 'link'), path_of(node, 'local', 'out'))  # it is never gone: that would be rendered
    restart(node, 2)
    assert read(outside) == 'not its own' and not os.path.islink(path_of(node, 'local', 'out'))
    assert read(path_of(node, 'local', 'both')) == 'first first'
    local, moved = path_of(node, 'local'), path_of(node, 'moved')
    os.rename(local, moved)
    os.symlink(node.dir, local)
    node.put('/v1/client/allocation/%s/restart' % node.alloc('job', 'g')['ID'], {})
    wait_for('the refusal', lambda: says(node))
    assert read(outside) == 'not its own' and not os.path.exists(os.path.join(node.dir, 'both'))
    os.unlink(path_of(node, 'local'))
    node.finish()


def words(node):
    """What users read of it, in order."""
    return [(event['Type'], event['DisplayMessage']) for event in (node.task('job', 'g', 't') or {}).get('Events') or []]


RESTARTED = ('Restart Signaled', 'Template with change_mode restart re-rendered')
SIGNALED = ('Signaling', 'Template re-rendered')


def put(path, text):
    """As those do who replace a file: it is whole whenever it is there."""
    with open(path + '.new', 'w') as out:
        out.write(text)
    os.rename(path + '.new', path)


def told_how_often(node):
    found = words(node)
    return found.count(RESTARTED), found.count(SIGNALED)


CHANGING = [template('{{ file "local/noop" }}', 'local/of-noop', ChangeMode='noop'),
            template('{{ file "local/hup" }}', 'local/of-hup', ChangeMode='signal', ChangeSignal='SIGHUP', Splay=0),
            template('{{ file "local/again" }} {{ timestamp }}', 'local/of-again', Splay=0)]
COUNTING = """n=0; trap 'n=$((n+1)); echo $n > local/hups' HUP; : > local/ready; while :; do sleep 1000 & wait; done"""


def start_changing(node):
    given = [template('1', 'local/' + name, Once=True) for name in ('noop', 'hup', 'again')]
    node.run_job(service(task(*(given + CHANGING), script=COUNTING)))
    place = wait_for('the task', lambda: node.running() and path_of(node, 'local'))
    wait_for('its trap', lambda: os.path.exists(os.path.join(place, 'ready')))
    return place


def says_now(place, name):
    return read(os.path.join(place, 'of-' + name)).split(' ')[0]


def hups(place):
    path = os.path.join(place, 'hups')
    return int(read(path).strip() or 0) if os.path.exists(path) else 0


def task_is_told_of_what_changes_as_it_asks():
    node = open_node()
    place = start_changing(node)
    put(os.path.join(place, 'noop'), 'two')
    wait_for('the file', lambda: says_now(place, 'noop') == 'two')
    assert told_how_often(node) == (0, 0), words(node)
    put(os.path.join(place, 'hup'), 'two')
    wait_for('the signal', lambda: hups(place) == 1)
    assert says_now(place, 'hup') == 'two'
    wait_for('the word of it', lambda: told_how_often(node) == (0, 1))
    with open(os.path.join(place, 'hup'), 'a') as out:  # in place, too
        out.write('s')
    wait_for('the signal', lambda: hups(place) == 2)
    assert says_now(place, 'hup') == 'twos'
    put(os.path.join(place, 'hup'), 'twos')  # says the same
    put(os.path.join(place, 'again'), 'two')
    wait_for('another start', lambda: events(node.running()).count('Started') == 2)
    state = node.task('job', 'g', 't')
    assert state['Restarts'] == 1 and told_how_often(node) == (1, 2), words(node)
    assert ('Restarting', 'Task restarting in 0s') in words(node), words(node)
    node.finish()


def what_changes_waits_until_it_has_settled():
    """wait.min begins anew with each change, wait.max ends what never settles."""
    node = open_node()
    hup, again = dict(CHANGING[1], Wait={'Min': milliseconds(6000), 'Max': milliseconds(9000)}), CHANGING[2]
    node.run_job(service(task(template('1', 'local/hup', Once=True), template('1', 'local/again', Once=True),
                              hup, again, script=COUNTING)))
    place = wait_for('the task', lambda: node.running() and path_of(node, 'local'))
    wait_for('its trap', lambda: os.path.exists(os.path.join(place, 'ready')))
    put(os.path.join(place, 'hup'), 'one')  # what is there when the watch begins need not settle
    wait_for('the first signal', lambda: hups(place) == 1)
    for text in ('two', 'three'):
        put(os.path.join(place, 'hup'), text)
        began = time.monotonic()
    wait_for('the signal', lambda: hups(place) == 2)
    assert time.monotonic() - began > 4, time.monotonic() - began  # a turn may have begun before the change
    assert says_now(place, 'hup') == 'three', says_now(place, 'hup')
    count = 0
    while hups(place) < 3:  # for as long as it takes, it is not left alone for wait.min
        count += 1
        assert count < 1200, 'nobody was told'
        put(os.path.join(place, 'hup'), 'change %d' % count)
        time.sleep(0.05)
    wait_for('the word of it', lambda: told_how_often(node) == (0, 3))
    node.finish()


def change_while_the_daemon_was_away_is_told_once():
    node = open_node()
    place = start_changing(node)
    before = words(node)
    stamps = [stamp(os.path.join(place, name)) for name in ('of-noop', 'of-hup', 'of-again')]
    node.kill()
    node.start()
    wait_for('the task', node.running)
    put(os.path.join(place, 'noop'), 'seen')  # behind the first look
    wait_for('the file', lambda: says_now(place, 'noop') == 'seen')
    assert words(node) == before
    assert [stamp(os.path.join(place, name)) for name in ('of-hup', 'of-again')] == stamps[1:], 'written again'
    node.kill()
    put(os.path.join(place, 'hup'), 'two')
    node.start()
    wait_for('the signal', lambda: hups(place) == 1)
    node.kill()
    node.start()
    wait_for('the task', node.running)
    os.unlink(os.path.join(place, 'of-hup'))
    put(os.path.join(place, 'noop'), 'again')
    wait_for('the file', lambda: says_now(place, 'noop') == 'again')
    wait_for('the one behind it', lambda: os.path.exists(os.path.join(place, 'of-hup')))
    assert told_how_often(node) == (0, 1) and hups(place) == 1 and says_now(place, 'hup') == 'two'
    node.kill()
    put(os.path.join(place, 'again'), 'two')
    node.start()
    wait_for('another start', lambda: events(node.running()).count('Started') == 2)
    assert told_how_often(node) == (1, 1) and node.task('job', 'g', 't')['Restarts'] == 1, words(node)
    node.finish()


def scripted(script, *arguments, **fields):
    return {'ChangeMode': 'script', 'Splay': 0,
            'ChangeScript': dict({'Command': script, 'Args': list(arguments)}, **fields)}


def start_scripted(node, driver, *changes):
    names = ['given%d' % i for i in range(len(changes))]
    node.run_job(service(task(
        *([template('1', 'local/' + name, Once=True) for name in names]
          + [template('{{ file "local/%s" }}' % name, 'local/of-' + name, **change)
             for name, change in zip(names, changes)]),
        script='exec sleep 1000', Driver=driver), restart=restart_policy(0), ReschedulePolicy=NO_RESCHEDULE))
    return wait_for('the task', lambda: node.running() and path_of(node, 'local'))


def scripts_told(node):
    return [said for kind, said in words(node) if kind == 'Task hook message']


def script_runs_in_the_task_once_for_each_change():
    for driver in ('raw_exec', 'exec'):
        node = open_node()
        place = start_scripted(node, driver, scripted(
            '/bin/sh', '-c', 'cat $NOMAD_TASK_DIR/of-given0 >> $NOMAD_TASK_DIR/ran; echo " $NOMAD_TASK_NAME" >> $NOMAD_TASK_DIR/ran'))
        for said, lines in (('two', ['two t']), ('three', ['two t', 'three t'])):
            put(os.path.join(place, 'given0'), said)
            wait_for('the script', lambda: len(scripts_told(node)) == len(lines))
            assert read(os.path.join(place, 'ran')).splitlines() == lines
        assert words(node)[-1][1].startswith('Template successfully ran script /bin/sh with arguments: [-c cat '), words(node)
        node.kill()
        put(os.path.join(place, 'given0'), 'away')
        node.start()
        wait_for('the script', lambda: len(scripts_told(node)) == 3)
        node.kill()
        node.start()
        wait_for('the task', node.running)
        put(os.path.join(place, 'given0'), 'last')
        wait_for('the script', lambda: read(os.path.join(place, 'ran')).splitlines()
                 == ['two t', 'three t', 'away t', 'last t'])
        assert events(node.running()).count('Started') == 1
        node.finish()


def script_that_fails_ends_its_task_if_it_is_to():
    node = open_node()
    place = start_scripted(node, 'exec', scripted('/bin/sh', '-c', 'exit 3'), scripted('/nonexistent'),
                           scripted('/bin/sleep', '1000', Timeout=200000000),
                           scripted('/bin/sh', '-c', 'exit 4', FailOnError=True))
    for number, said in (
            (0, 'Template ran script /bin/sh with arguments [-c exit 3] on change but it exited with code: 3'),
            (1, 'Template failed to run script /nonexistent with arguments [] on change: '),
            (2, 'Template failed to run script /bin/sleep with arguments [1000] on change: context deadline exceeded')):
        put(os.path.join(place, 'given%d' % number), 'two')
        message = wait_for('a word', lambda: words(node)[-1][0] == 'Task hook failed' and said in words(node)[-1][1]
                           and words(node)[-1][1])
        assert node.running(), message
    wait_for('its end', lambda: not [line for line in node.payloads().values() if line.endswith('sleep 1000')
                                     and not line.startswith('sleep')])
    put(os.path.join(place, 'given3'), 'two')
    state = wait_for('its end', node.dead)
    assert state['Failed'] and state['Restarts'] == 0, state
    assert ('Killing', 'Template script failed, task is being killed') in words(node), words(node)
    node.finish()


def script_under_way_ends_with_the_daemon_and_is_run_again():
    node = open_node()
    place = start_scripted(node, 'exec', scripted(
        '/bin/sh', '-c', 'echo begun >> $NOMAD_TASK_DIR/ran; [ -e $NOMAD_TASK_DIR/go ] || sleep 998; '
        'echo done >> $NOMAD_TASK_DIR/ran', Timeout=600000000000))
    put(os.path.join(place, 'given0'), 'two')
    pid = node.await_pid('sleep 998')
    node.kill()
    wait_for('its end', lambda: pid not in node.payloads())  # the first process of the task may not wait for it
    put(os.path.join(place, 'go'), '')
    node.start()
    wait_for('the script', lambda: read(os.path.join(place, 'ran')).splitlines() == ['begun', 'begun', 'done'])
    wait_for('the word', lambda: words(node)[-1][0] == 'Task hook message')
    os.unlink(os.path.join(place, 'go'))
    put(os.path.join(place, 'given0'), 'three')
    node.await_pid('sleep 998')
    node.call('DELETE', '/v1/job/job')
    state = wait_for('its end', node.dead)
    assert not state['Failed'] and [word for word in words(node) if word[0] == 'Task hook failed'] == [], words(node)
    node.finish()


def what_cannot_be_rendered_again_is_left():
    node = open_node()
    place = start_changing(node)
    before = words(node)
    os.unlink(os.path.join(place, 'hup'))
    wait_for('a word', lambda: 'templates are left as they are' in node.log(1 << 20))
    assert says_now(place, 'hup') == '1' and words(node) == before
    put(os.path.join(place, 'hup'), 'back')
    wait_for('the signal', lambda: hups(place) == 1)
    assert says_now(place, 'hup') == 'back'
    node.finish()


def changes_that_make_no_sense_are_refused():
    node = open_node()
    for wrong, said in (({'ChangeMode': 'signal'}, 'Must specify signal value when change mode is signal'),
                        ({'ChangeMode': 'signal', 'ChangeSignal': 'SIGWHAT'}, 'unknown signal'),
                        ({'ChangeMode': 'signal', 'ChangeSignal': 'SIGHUP', 'Envvars': True}, 'env var templates'),
                        ({'ChangeMode': 'scripts'}, 'Invalid change mode'),
                        ({'ChangeMode': 'script'}, 'must specify change script configuration value'),
                        ({'ChangeMode': 'script', 'ChangeScript': {'Args': ['x']}}, 'must specify script path value'),
                        ({'ChangeMode': 'script', 'ChangeScript': {'Command': '/bin/true', 'RunOnFirstRender': True}},
                         'RunOnFirstRender'),
                        ({'Wait': {'Min': 2000000000, 'Max': 1000000000}}, 'wait min is greater than wait max')):
        try:
            node.run_job(service(task(template('x', 'local/x', **wrong))))
            raise AssertionError('it was taken: %s' % wrong)
        except Refused as answer:
            assert said in answer.text, answer
    node.finish()


def template_that_makes_no_sense_fails_its_task():
    node = open_node()
    for data, said in (('{{ mustEnv "NONE" }}', 'mustEnv: "NONE" is not set'),
                       ('{{ file "/etc/passwd" }}', 'No such file'),
                       ('{{ file "../../other" }}', 'not in the directory of the task')):
        node.run_job(service(task(template(data, 'local/x')), restart=restart_policy(3),
                             ReschedulePolicy=NO_RESCHEDULE))
        message = wait_for('the refusal', lambda: says(node))
        assert message.startswith('template: local/x: template: line 1: ') and said in message, message
        state = wait_for('its end', node.dead)
        assert state['Failed'] and state['Restarts'] == 0 and 'Started' not in events(state), state
        node.call('DELETE', '/v1/job/job?purge=true')
        wait_for('the alloc to be gone', lambda: not node.allocs())
    try:
        node.run_job(service(task(template('{{ key "x" }}', 'local/x'))))
        raise AssertionError('it was taken')
    except Refused as answer:
        assert 'function "key" needs Consul, which this node has not' in answer.text.replace('\\"', '"'), answer
    node.finish()


if __name__ == '__main__':
    sys.exit(tap([
        what_is_rendered_is_there_before_the_task,
        what_did_not_change_is_not_written_and_nobody_is_told,
        variables_of_a_template_are_the_tasks,
        what_it_reads_is_read_at_each_start_and_by_no_link,
        task_is_told_of_what_changes_as_it_asks,
        what_changes_waits_until_it_has_settled,
        change_while_the_daemon_was_away_is_told_once,
        script_runs_in_the_task_once_for_each_change,
        script_that_fails_ends_its_task_if_it_is_to,
        script_under_way_ends_with_the_daemon_and_is_run_again,
        what_cannot_be_rendered_again_is_left,
        changes_that_make_no_sense_are_refused,
        template_that_makes_no_sense_fails_its_task,
    ]))
