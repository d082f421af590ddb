#!/usr/bin/env python3
"""cairn journal on a real node: live, stopped and copied; and its page in a real browser.

The browser is Debian's chromium, headless; where it is not installed those tests are skipped.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import Node, milliseconds, raw_exec, restart_policy, tap, wait_for  # noqa: E402

JOB = {'ID': 'shop', 'Name': 'shop', 'Type': 'service', 'Datacenters': ['dc1'],
       'TaskGroups': [{'Name': 'front', 'Count': 1, 'RestartPolicy': restart_policy(5, 50),
                       'Tasks': [raw_exec('web', 'exec sleep 1000',
                                          KillTimeout=milliseconds(2000),
                                          Env={'PASSWORD': 'hunter2'}),
                                 raw_exec('frail', 'test -e gone || { touch gone; exit 3; }; '
                                                   'exec sleep 1000')]}]}


def journal(node, *arguments, status=0, where=None):
    done = subprocess.run([os.path.join(node.build, 'cairn'), 'journal', *arguments, '-dir',
                           where or node.data], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def running(node, task):
    state = node.task('shop', 'front', task)
    return state if state and state['State'] == 'running' else None


NODE = Node()


def live_journal_verifies_while_the_daemon_writes():
    NODE.start()
    NODE.run_job(JOB)
    for _ in range(20):
        assert 'ok: ' in journal(NODE, 'verify')
    wait_for('the restart', lambda: (running(NODE, 'frail') or {}).get('Restarts') == 1)
    wait_for('the task', lambda: running(NODE, 'web'))
    states = {line['id'].rpartition('/')[2]: line['state']
              for line in lines(journal(NODE, 'list', '-json', '-kind', 'task'))}
    assert states == {'web': 'RUNNING', 'frail': 'RUNNING'}, states


def follow_prints_what_happens_as_it_happens():
    last = lines(journal(NODE, 'log', '-json', '-n', '1'))[0]['sequence']
    follower = subprocess.Popen([os.path.join(NODE.build, 'cairn'), 'journal', 'log', '-f', '-json',
                                 '-since', str(last + 1), '-dir', NODE.data],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        alloc = NODE.alloc('shop', 'front')['ID']
        NODE.put('/v1/client/allocation/%s/signal' % alloc, {'Signal': 'SIGCONT', 'Task': 'web'})
        event = json.loads(follower.stdout.readline())
        assert event['sequence'] == last + 1 and event['event'] == 'SIGNAL', event
    finally:
        follower.kill()
        follower.wait()


def restore_foretells_what_the_restart_then_does():
    NODE.kill()
    foretold = {line['id']: line for line in lines(journal(NODE, 'restore', '-json'))}
    last = lines(journal(NODE, 'log', '-json', '-n', '1'))[0]['sequence']
    NODE.start()
    wait_for('the tasks', lambda: running(NODE, 'web') and running(NODE, 'frail'))
    done = [event for event in lines(journal(NODE, 'log', '-json', '-since', str(last + 1)))
            if event['event'] == 'RESTORE']
    assert len(done) == len(foretold) == 3, (done, foretold)
    for event in done:
        guard = '' if event['guard'] == 'ALWAYS' else '[%s]' % event['guard']
        row = '%s -RESTORE%s-> %s' % (event['before'], guard, event['after'])
        assert foretold[event['id']]['rows'][0] == row, (row, foretold[event['id']])


def stopped_and_copied_journals_say_the_same():
    NODE.call('DELETE', '/v1/job/shop')
    wait_for('the end', lambda: {line['state'] for line in lines(journal(NODE, 'list', '-json'))}
             == {'TERMINAL', 'DEAD'})
    live = journal(NODE, 'export', '-redact')
    assert NODE.terminate() == 0
    assert journal(NODE, 'export', '-redact') == live
    copy = os.path.join(NODE.dir, 'copy')
    os.mkdir(copy)
    shutil.copy(os.path.join(NODE.data, 'client/journal/data.mdb'), copy)
    os.chmod(os.path.join(copy, 'data.mdb'), 0o400)
    assert journal(NODE, 'export', '-redact', where=copy) == live
    assert 'ok: ' in journal(NODE, 'verify', where=copy)
    assert os.listdir(copy) == ['data.mdb'], 'reading left something behind'
    assert 'hunter2' not in live


# --- the browser ---

def kept(node):
    """The oldest and the newest event of its history, which leads to every record."""
    found = re.match(r'ok: (\d+) events, (\d+) to (\d+), ', journal(node, 'verify'))
    count, first, last = (int(number) for number in found.groups())
    assert count == last - first + 1, found.group(0)
    return first, last


def history_is_as_short_as_was_asked_for_and_leads_to_every_record():
    """Also after a crash, and when more of it is wanted again nothing that is gone is missed."""
    node = Node(config='client {\n  journal_max_events = 100\n}\n')
    node.start()
    job = dict(JOB, TaskGroups=[dict(JOB['TaskGroups'][0], Tasks=[raw_exec('web', 'exit 3'), raw_exec(
        'frail', 'exec sleep 1000')], RestartPolicy=restart_policy(1000, 1))])
    node.run_job(job)
    wait_for('events enough', lambda: lines(journal(node, 'log', '-json', '-n', '1'))[0]['sequence'] > 300)
    node.kill()
    first, last = kept(node)
    assert 0 <= last - first < 100, (first, last)
    with open(node.config, 'w') as out:
        out.write('client {\n  journal_max_events = 100000\n}\n')
    node.start()
    wait_for('twice as many', lambda: lines(journal(node, 'log', '-json', '-n', '1'))[0]['sequence'] > last + 100)
    node.kill()
    assert kept(node)[0] == first
    node.start()
    node.finish()


def browse(page, fragment='', script=''):
    """The page's DOM after SCRIPT has run in it."""
    changed = os.path.join(NODE.dir, 'changed.html')
    with open(page) as source, open(changed, 'w') as to:
        to.write(source.read().replace(
            '</body>', '<pre id="said"></pre><script>function say(text) {'
            ' byId("said").textContent += text + "\\n"; }\n%s</script></body>' % script))
    done = subprocess.run(
        ['chromium', '--headless', '--no-sandbox', '--disable-gpu', '--window-size=1400,900',
         '--user-data-dir=' + os.path.join(NODE.dir, 'profile'), '--virtual-time-budget=3000',
         '--dump-dom', 'file://%s#%s' % (changed, fragment)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def said(dom):
    return dom.partition('<pre id="said">')[2].partition('</pre>')[0].splitlines()


def make_page():
    page = os.path.join(NODE.dir, 'page.html')
    if not os.path.exists(page):
        journal(NODE, 'timeline', '-html', page)
    return page


def no_browser():
    return None if shutil.which('chromium') else 'chromium is not installed'


def page_draws_lanes_restarts_and_crashes():
    if no_browser():
        return no_browser()
    dom = browse(make_page())
    assert 'data-ready="3"' in dom, dom[-3000:]
    assert dom.count('<g data-id=') == 3
    assert 'class="restart"' in dom and '>restart</text>' in dom
    assert 'class="crash"' in dom, 'the crash of the frail task has a mark'
    return None


def page_searches_zooms_and_tells_details():
    if no_browser():
        return no_browser()
    alloc = lines(journal(NODE, 'list', '-json', '-kind', 'alloc'))[0]['id']
    dom = browse(make_page(), 'select=%s/frail' % alloc, '''
        const bars = () => document.querySelectorAll('#lanes rect.alive').length;
        const at = (x, y) => ({clientX: x, clientY: y, bubbles: true});
        say(document.querySelectorAll('#lanes g').length);
        byId('search').value = 'frail';
        byId('search').dispatchEvent(new Event('input'));
        say(document.querySelectorAll('#lanes g').length + ' ' + byId('hits').textContent);
        byId('search').value = 'no such thing';
        byId('search').dispatchEvent(new Event('input'));
        say(document.querySelectorAll('#lanes g').length);
        byId('search').value = '';
        byId('search').dispatchEvent(new Event('input'));
        const before = document.querySelector('#axis text').textContent;
        byId('in').click();
        byId('in').click();
        say(document.querySelector('#axis text').textContent !== before);
        byId('all').click();
        say(document.querySelector('#axis text').textContent === before);
        const crash = document.querySelector('.crash');
        crash.dispatchEvent(new PointerEvent('pointermove', at(600, 200)));
        say(!byId('tip').hidden && byId('tip').textContent.includes('ended with exit code 3'));
        byId('squeeze').click();
        say(byId('squeeze').textContent);
    ''')
    assert said(dom) == ['3', '1 1 of 3', '0', 'true', 'true', 'true', 'by time'], said(dom)
    side = dom.partition('<aside')[2].partition('</aside>')[0]
    assert 'class="node visited" data-state="BACKOFF"' in side or \
        'class="node visited" data-state="PRESTART"' in side, side[:3000]
    assert 'data-state="HELD"' in side and 'class="node visited" data-state="HELD"' not in side
    assert side.count('class="edge visited"') >= 5
    assert 'class="edge restore visited"' in side, 'the restart went through a RESTORE row'
    assert 'ended with exit code 3' in side
    return None


def end():
    NODE.start()
    mark = NODE.node_mark()
    NODE.call('DELETE', '/v1/job/shop?purge=true')
    NODE.put('/v1/system/gc')
    wait_for('the allocs to be gone', lambda: not NODE.allocs())
    assert 'ok: ' in journal(NODE, 'verify')
    NODE.audit(mark)
    assert NODE.terminate() == 0
    NODE.close()


if __name__ == '__main__':
    if os.getuid() != 0:
        print('needs root: it runs a node with real tasks')
        sys.exit(77)
    began = time.monotonic()
    status = tap([
        live_journal_verifies_while_the_daemon_writes,
        follow_prints_what_happens_as_it_happens,
        restore_foretells_what_the_restart_then_does,
        stopped_and_copied_journals_say_the_same,
        history_is_as_short_as_was_asked_for_and_leads_to_every_record,
        page_draws_lanes_restarts_and_crashes,
        page_searches_zooms_and_tells_details,
        end,
    ])
    print('# %.1f s' % (time.monotonic() - began))
    sys.exit(status)
