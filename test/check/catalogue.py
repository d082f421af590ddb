#!/usr/bin/env python3
"""Keeps the map of test/README.md true: which test proves which entry of the failure catalogue.

usage: test/check/catalogue.py [--write]

The map has a row for each entry R-01 to R-69 with five cells: entry, what happens, stories, tests,
what is open.  What must hold:

  - each entry has one row, in order, with a title and a proof, or the reason why there is none;
  - the stories of a row are those of sim/stories/*.story that say `# covers R-nn`;
    --write puts them in;
  - a test is `path: name`: a function that its C file registers, or the label of a TAP line of a
    live test that test/run.py runs;
  - the reason is "Cannot occur: ..." or "Waits for ..."; what waits names the text in the tree that
    says so, as `path: text`, so that the row falls due on the day that text goes;
  - a live test that names an entry in its docstring is in that entry's row.

The map of task events below it has a row for each type of fsm/task.h, in that order: event, when,
stories, tests, what is open.  Each of its stories expects that the type is noted at least once.
Those of Nomad's types that are not there have a row behind them that says why, as above.

The map of distrust between the two has rows of what happens, what comes of it, stories, tests, what is
open: its stories and tests exist, and each row has a test or a reason.

Before it looks at the tree it proves on a small one of its own that each kind of staleness is seen.
"""
import ast
import glob
import os
import re
import sys
import tempfile

ENTRIES = ['R-%02d' % number for number in range(1, 70)]
MAP, STORIES = 'test/README.md', 'sim/stories'
REASONS = ('Cannot occur: ', 'Waits for ')
CELLS = 5
TYPES = 'fsm/task.h'


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


# --- what is in the tree ---

def stories(root):
    """story -> entries it covers."""
    found = {}
    for path in sorted(glob.glob(os.path.join(root, STORIES, '*.story'))):
        name = os.path.basename(path)[:-len('.story')]
        covers = re.findall(r'^# covers (.*)$', read(root, os.path.join(STORIES, name + '.story')),
                            re.M)
        found[name] = ' '.join(covers).split()
    return found


def c_tests(text):
    """Functions that are defined and handed to a macro that registers them."""
    return {name for name in re.findall(r'^static void (test_\w+)\(void \*\*state\)', text, re.M)
            if re.search(r'\w\(\s*%s\s*[,)]' % name, text)}


def live_tests(text):
    """label -> docstring of the functions in the list that is given to tap()."""
    found = {}
    tree = ast.parse(text)
    functions = {node.name: ast.get_docstring(node) or '' for node in tree.body
                 if isinstance(node, ast.FunctionDef)}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and getattr(call.func, 'id', '') == 'tap':
            for name in call.args[0].elts:
                if name.id in functions:
                    found[name.id.replace('_', ' ')] = functions[name.id]
    return found


def shell_tests(root, path):
    """Labels of the lines that the program behind a shell script prints, without their numbers."""
    behind = re.findall(r'\$\(dirname "\$0"\)/([\w.-]+)', read(root, path))
    return {label for name in behind
            for label in re.findall(r"'ok %d - ([a-z ]+?) ?(?:%d)?\\?n?'",
                                    read(root, os.path.join(os.path.dirname(path), name)))}


def tests_of(root, path):
    """What test PATH holds; None if nobody would run it."""
    full = os.path.join(root, path)
    if not os.path.isfile(full):
        return None
    if re.fullmatch(r'test/\w+(/\w+)?/test_\w+\.c', path):
        return c_tests(read(root, path))
    if not re.fullmatch(r'test/live/(\w+/)*test_\w+\.(py|sh)', path) or not os.access(full, os.X_OK):
        return None
    return set(live_tests(read(root, path))) if path.endswith('.py') else shell_tests(root, path)


# --- the map ---

def rows(text):
    """(entry, the other cells) of each row, in the order of the file."""
    for line in text.split('\n'):
        if re.match(r'\| *R-\d\d *\|', line):
            cells = [cell.strip() for cell in re.split(r'(?<!\\)\|', line)[1:-1]]
            yield cells[0], cells[1:]


def quoted(cell):
    return re.findall(r'`([^`]+)`', cell)


def check_row(root, entry, cells, covering, bad):
    if len(cells) != CELLS - 1:
        bad.append('%s: %d cells instead of %d' % (entry, len(cells) + 1, CELLS))
        return
    title, told, tests, reason = cells
    if not title:
        bad.append('%s: has no title' % entry)
    for name in quoted(told):
        if name not in covering:
            bad.append('%s: no story "%s" covers it' % (entry, name))
    for name in covering:
        if name not in quoted(told):
            bad.append('%s: the story "%s" covers it and is missing; run ./dev golden'
                       % (entry, name))
    check_tests(root, entry, tests, bad)
    if reason:
        check_reason(root, entry, reason, bad)
    elif not quoted(told) and not quoted(tests):
        bad.append('%s: has neither a proof nor a reason' % entry)


def check_reason(root, entry, reason, bad):
    if not reason.startswith(REASONS):
        bad.append('%s: a reason begins with "%s"' % (entry, '" or "'.join(REASONS)))
    evidence = quoted(reason)
    if reason.startswith('Waits for ') and not evidence:
        bad.append('%s: names nothing that shows what it waits for' % entry)
    for part in evidence:
        path, _, text = part.partition(': ')
        if not os.path.isfile(os.path.join(root, path)) or text not in read(root, path):
            bad.append('%s: %s does not say "%s" any more: what it waited for is here'
                       % (entry, path, text))


def check_tests(root, entry, tests, bad):
    for test in quoted(tests):
        path, _, name = test.partition(': ')
        found = tests_of(root, path)
        if found is None:
            bad.append('%s: %s is no test that is run' % (entry, path))
        elif name not in found:
            bad.append('%s: %s has no test "%s"' % (entry, path, name))


def event_types(root):
    """Nomad's name of each type of task events -> ours, in their order."""
    listed = re.search(r'#define TASK_EVENT_TYPES\(X\)(.*?)\nenum ', read(root, TYPES), re.S)
    return {theirs: ours for ours, theirs in re.findall(r'X\((\w+), "([^"]+)"\)', listed.group(1))}


def event_rows(text):
    """(type, the other cells) of each row of the map of task events."""
    for line in text.split('\n'):
        if re.match(r'\| *`', line):
            cells = [cell.strip() for cell in line.split('|')[1:-1]]
            yield cells[0].strip('`'), cells[1:]


def check_events(root, bad):
    types, text = event_types(root), read(root, MAP).partition('## The map of task events')[2]
    emitted, _, silent = text.partition('\n### ')
    table = list(event_rows(emitted))
    check_silent(root, types, list(event_rows(silent)), bad)
    if [name for name, _ in table] != list(types):
        bad.append('task events: the rows are not the types of %s in their order' % TYPES)
        return
    for name, cells in table:
        if len(cells) != CELLS - 1 or not cells[0]:
            bad.append('%s: not %d cells, or it does not say when' % (name, CELLS))
            continue
        _, told, tests, reason = cells
        for story in quoted(told):
            path = os.path.join(STORIES, story + '.story')
            if not os.path.isfile(os.path.join(root, path)) or not re.search(
                    r'^\w+ notes \S+ %s [1-9]' % types[name], read(root, path), re.M):
                bad.append('%s: no story "%s" expects it' % (name, story))
        check_tests(root, name, tests, bad)
        if reason:
            check_reason(root, name, reason, bad)
        elif not quoted(told):
            bad.append('%s: has neither a story nor a reason' % name)


def check_distrust(root, told, bad):
    section = read(root, MAP).partition('## The map of distrust')[2].partition('\n## ')[0]
    table = [[cell.strip() for cell in line.split('|')[1:-1]] for line in section.split('\n')
             if line.startswith('|')][2:]
    if not table:
        bad.append('%s: there is no map of distrust' % MAP)
    for cells in table:
        if len(cells) != CELLS or not cells[0] or not cells[1]:
            bad.append('%s: not %d cells, or it does not say what comes of it' % (cells[0], CELLS))
            continue
        name, _, names, tests, reason = cells
        bad.extend('%s: there is no story "%s"' % (name, story)
                   for story in quoted(names) if story not in told)
        check_tests(root, name, tests, bad)
        if reason:
            check_reason(root, name, reason, bad)
        elif not quoted(tests):
            bad.append('%s: has neither a test nor a reason' % name)


def check_silent(root, types, table, bad):
    """Types of Nomad that nothing emits: each with who would, and a reason."""
    for name, cells in table:
        if name in types:
            bad.append('%s: is a type of %s, and a row says that nothing emits it' % (name, TYPES))
        if len(cells) != 2 or not all(cells):
            bad.append('%s: does not say who would emit it, and why nobody does' % name)
        else:
            check_reason(root, name, cells[1], bad)


def check_docstrings(root, tests_by_entry, bad):
    """What a live test says of itself."""
    for full in sorted(glob.glob(os.path.join(root, 'test/live/**/test_*.py'), recursive=True)):
        path = os.path.relpath(full, root)
        for label, docstring in live_tests(read(root, path)).items():
            for entry in re.findall(r'\bR-\d\d\b', docstring):
                if '%s: %s' % (path, label) not in tests_by_entry.get(entry, []):
                    bad.append('%s: "%s" of %s says that it proves it, and is missing'
                               % (entry, label, path))


def check(root):
    """Everything that is wrong, a line each."""
    bad, told = [], stories(root)
    table = list(rows(read(root, MAP)))
    order = [entry for entry, _ in table]
    for entry in ENTRIES:
        if order.count(entry) != 1:
            bad.append('%s: has %d rows' % (entry, order.count(entry)))
    if order != sorted(order):
        bad.append('%s: the rows are not in order' % MAP)
    for entry in sorted(set(order) - set(ENTRIES)):
        bad.append('%s: there is no such entry' % entry)
    for name, covers in told.items():
        if not covers:
            bad.append('%s: says of no entry that it covers it' % name)
        for entry in sorted(set(covers) - set(ENTRIES)):
            bad.append('%s: covers %s, which is no entry' % (name, entry))
    for entry, cells in table:
        covering = [name for name, covers in told.items() if entry in covers]
        check_row(root, entry, cells, covering, bad)
    check_docstrings(root, {entry: quoted(cells[2]) for entry, cells in table if len(cells) > 2},
                     bad)
    check_events(root, bad)
    check_distrust(root, told, bad)
    return bad


def write(root):
    """Puts the stories that cover an entry into its row."""
    text, told = read(root, MAP), stories(root)
    for line in text.split('\n'):
        match = re.match(r'(\| *(R-\d\d) *\|[^|]*\|)[^|]*(\|.*)', line)
        if match:
            names = ', '.join('`%s`' % name for name, covers in told.items()
                              if match.group(2) in covers)
            text = text.replace(line, ' '.join(filter(None, (match.group(1), names,
                                                             match.group(3)))))
    with open(os.path.join(root, MAP), 'w', encoding='utf-8') as file:
        file.write(text)


# --- the proof ---

SOUND = {
    MAP: '\n'.join(['| entry | what | stories | tests | open |', '|---|---|---|---|---|',
                    '| R-01 | a | `one`, `two` | `test/io/test_a.c: test_a`, '
                    '`test/live/a/test_a.py: it lives` |  |',
                    '| R-02 | b | `one` | `test/live/test_b.sh: crash point` |  |',
                    '| R-03 | c |  |  | Waits for wings (`agent/b.c: no wings`): it cannot fly. |']
                   + ['| %s | d |  |  | Cannot occur: nothing does it. |' % entry
                      for entry in ENTRIES[3:]] +
                     ['## The map of distrust', '| what | comes | stories | tests | open |',
                      '|---|---|---|---|---|', '| it lies | nothing | `two` | '
                      '`test/io/test_a.c: test_a` | |'] +
                     ['## The map of task events', '| `Started` | it runs | `one` | '
                      '`test/io/test_a.c: test_a` | |',
                      '| `Flown` | it flies | | | Waits for wings (`agent/b.c: no wings`). |',
                      '### What nothing says',
                      '| `Dived` | a fin | Waits for water (`agent/b.c: no wings`). |'])
         + '\n',
    TYPES: '#define TASK_EVENT_TYPES(X) X(STARTED, "Started") X(FLOWN, "Flown")\nenum types {};\n',
    STORIES + '/one.story': '# A story.\n# covers R-01 R-02\nalloc a\n'
                            'expect notes a/b STARTED 1\n',
    STORIES + '/two.story': '# Another.\n# covers R-01\nalloc a\n',
    'test/io/test_a.c': 'static void test_a(void **state)\n{\n}\n'
                        'static void test_unused(void **state)\n{\n}\n'
                        'tests[] = {TEST(test_a)};\n',
    'test/live/a/test_a.py': 'def it_lives():\n    """R-01: it does."""\n\n'
                             'def unused():\n    pass\n\ntap([it_lives])\n',
    'test/live/test_b.sh': 'exec python3 "$(dirname "$0")/b.py" --all\n',
    'test/live/b.py': "print('ok %d - crash point %d' % (1, 1))\n",
    'agent/b.c': '/* no wings */\n',
}

# (what becomes stale, file, what is replaced, by what, words of the finding)
SPOILS = [
    ('a row is gone', MAP, '| R-69 | d |  |  | Cannot occur: nothing does it. |\n', '',
     'R-69: has 0 rows'),
    ('a row is there twice', MAP, '| R-69 |', '| R-68 |', 'R-68: has 2 rows'),
    ('rows change places', MAP, 'R-68 | d |  |  | Cannot occur: nothing does it. |\n| R-69',
     'R-69 | d |  |  | Cannot occur: nothing does it. |\n| R-68', 'not in order'),
    ('an entry that is none', MAP, '| R-69 |', '| R-70 |', 'R-70: there is no such entry'),
    ('a cell is missing', MAP, '| R-69 | d |  |', '| R-69 | d |', 'R-69: 4 cells'),
    ('a title is missing', MAP, '| R-69 | d |', '| R-69 |  |', 'R-69: has no title'),
    ('a row with nothing', MAP, 'Cannot occur: nothing does it. |\n| R-69', '|\n| R-69',
     'R-68: has neither'),
    ('a reason of no kind', MAP, 'Cannot occur: nothing does it. |\n| R-69',
     'Later. |\n| R-69', 'R-68: a reason begins with'),
    ('a reason without evidence', MAP, ' (`agent/b.c: no wings`)', '', 'R-03: names nothing'),
    ('what a row waits for has come', 'agent/b.c', 'no wings', 'wings', 'R-03: agent/b.c'),
    ('a story is gone', STORIES + '/two.story', None, None, 'no story "two"'),
    ('a story covers less', STORIES + '/one.story', ' R-02', '', 'R-02: no story "one"'),
    ('a story covers more', STORIES + '/two.story', 'R-01', 'R-01 R-02', 'the story "two" covers'),
    ('a story covers nothing', STORIES + '/two.story', '# covers R-01', '#', 'two: says of no'),
    ('a story covers no entry', STORIES + '/two.story', 'R-01', 'R-01 R-99', 'R-99, which is no'),
    ('a C test is renamed', 'test/io/test_a.c', 'test_a(', 'test_b(', 'no test "test_a"'),
    ('a C test is not registered', 'test/io/test_a.c', 'TEST(test_a)', '', 'no test "test_a"'),
    ('a C file is gone', 'test/io/test_a.c', None, None, 'test/io/test_a.c is no test'),
    ('a live test is renamed', 'test/live/a/test_a.py', 'it_lives', 'it_dies', 'no test "it lives"'),
    ('a live test is not run', 'test/live/a/test_a.py', 'tap([it_lives])', 'tap([])',
     'no test "it lives"'),
    ('a live file is gone', 'test/live/a/test_a.py', None, None, 'test/live/a/test_a.py is no test'),
    ('a label is gone', 'test/live/b.py', 'crash point', 'point', 'no test "crash point"'),
    ('a type of task events is new', TYPES, ' X(FLOWN', ' X(SUNG, "Sung") X(FLOWN', 'not the types'),
    ('an event is not told when', MAP, '| it runs |', '| |', 'Started: not 5 cells'),
    ('an event is never expected', STORIES + '/one.story', 'STARTED 1', 'STARTED 0',
     'Started: no story "one"'),
    ('an event has no story', MAP, '| `one` | `test/io/test_a.c: test_a` | |', '| | | |',
     'Started: has neither'),
    ('what nothing says is said', TYPES, ' X(FLOWN', ' X(DIVED, "Dived") X(FLOWN',
     'Dived: is a type'),
    ('what is distrusted has no story', MAP, '| nothing | `two` |', '| nothing | `six` |',
     'it lies: there is no story "six"'),
    ('what is distrusted has no test', MAP, '| nothing | `two` | `test/io/test_a.c: test_a`',
     '| nothing | `two` | ', 'it lies: has neither'),
    ('what is distrusted comes to nothing', MAP, '| it lies | nothing |', '| it lies | |',
     'it lies: not 5 cells'),
    ('nobody would say it', MAP, '| a fin |', '| |', 'Dived: does not say who'),
    ('what nothing says has no reason', MAP, 'Waits for water', 'Later', 'Dived: a reason begins'),
    ('a live test proves more', 'test/live/a/test_a.py', 'R-01:', 'R-01, R-02:', 'R-02: "it lives"'),
]


def plant(root, files):
    for path, text in files.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, 'w', encoding='utf-8') as file:
            file.write(text)
        os.chmod(full, 0o755)


def findings_of(files):
    with tempfile.TemporaryDirectory() as root:
        plant(root, files)
        return check(root)


def prove():
    """The check is silent about a sound tree and sees each spoiled one."""
    assert findings_of(SOUND) == [], findings_of(SOUND)
    for what, path, old, new, words in SPOILS:
        files = dict(SOUND)
        if old is None:
            del files[path]
        else:
            assert old in files[path], (what, old)
            files[path] = files[path].replace(old, new)
        found = findings_of(files)
        assert any(words in line for line in found), (what, found)
    with tempfile.TemporaryDirectory() as root:
        plant(root, dict(SOUND, **{STORIES + '/two.story': '# covers R-01 R-02 R-04\n'}))
        write(root)
        assert check(root) == [], check(root)


def main():
    prove()
    if sys.argv[1:] == ['--write']:
        write('.')
    bad = check('.')
    for line in bad:
        print('catalogue: ' + line)
    if bad:
        sys.exit(1)
    table = list(rows(read('.', MAP)))
    proven = sum(bool(quoted(cells[1]) or quoted(cells[2])) for _, cells in table)
    print('catalogue: %d entries, %d proven, %d with a reason why not; %d stories; %d kinds of '
          'staleness are seen' % (len(table), proven, len(table) - proven, len(stories('.')),
                                  len(SPOILS)))


main()
