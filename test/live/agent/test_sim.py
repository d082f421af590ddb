#!/usr/bin/env python3
"""`cairn sim` as its user meets it: what fails is shown again by one command, mistakes are said."""
import functools
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from lib import tap  # noqa: E402

CAIRN = os.path.join(os.environ.get('CAIRN_BUILD', os.path.abspath('build/debug')), 'cairn')
FAILS = '''alloc a
task a/main runs 50
task a/side
at 0 assign a
at 900 restart a
expect starts a/main 9
'''
SAFETY, FAILED, USAGE = 129, 1, 3


def in_a_place(test):
    """TEST with a directory of its own."""
    @functools.wraps(test)
    def run():
        with tempfile.TemporaryDirectory(prefix='cairn-sim-') as where:
            test(where)
    return run


def sim(*flags):
    return subprocess.run([CAIRN, 'sim'] + list(flags), capture_output=True, text=True)


def story_file(where, text):
    path = os.path.join(where, 'some.story')
    with open(path, 'w') as out:
        out.write(text)
    return path


def hash_of(done):
    assert done.returncode == 0, done.stdout[-300:] + done.stderr
    return re.findall(r'hash ([0-9a-f]{16})', done.stdout)[-1]


@in_a_place
def a_seed_is_the_same_world_told_or_as_a_script(where):
    for seed in ('1', '50', '4711'):
        script = sim('-seed', seed, '-script').stdout
        assert hash_of(sim('-seed', seed)) == hash_of(sim('-story', story_file(where, script)))


def many_worlds_are_the_same_on_one_core_and_on_two():
    one, two = (sim('-seeds', '60', '-base', '7', '-j', cores) for cores in '12')
    assert hash_of(one) == hash_of(two)
    assert re.search(r'covered: \d+ of \d+ rows', one.stdout), one.stdout


@in_a_place
def what_fails_is_shown_again_by_the_command_it_prints(where):
    done = sim('-exhaustive', story_file(where, FAILS))
    assert done.returncode == SAFETY, done
    assert '"expect starts a/main 9": it was' in done.stderr, done.stderr
    again = sim(*re.search(r'show it: +cairn sim (.*)', done.stderr).group(1).split())
    assert again.returncode == SAFETY and '"expect starts a/main 9"' in again.stdout, again


@in_a_place
def what_fails_is_made_smaller_and_still_fails(where):
    done = sim('-story', story_file(where, FAILS), '-shrink')
    assert done.returncode == SAFETY, done
    assert 'task a/side' not in done.stdout and 'restart a' not in done.stdout, done.stdout
    assert sim('-story', story_file(where, done.stdout)).returncode == SAFETY


@in_a_place
def the_journal_of_a_world_verifies_and_is_never_overwritten(where):
    journal = os.path.join(where, 'journal')
    assert sim('-seed', '7', '-journal', journal).returncode == 0
    verified = subprocess.run([CAIRN, 'journal', 'verify', '-dir', journal], capture_output=True,
                              text=True)
    assert verified.returncode == 0 and verified.stdout.startswith('ok: '), verified
    again = sim('-seed', '8', '-journal', journal)
    assert again.returncode == FAILED and 'is there already' in again.stderr, again


@in_a_place
def every_mistake_is_said_in_one_line(where):
    for flags, status, words in (
            ((), USAGE, 'nothing to do'),
            (('-seeds', '-5'), USAGE, 'not negative'),
            (('-seeds', '5', '-j', '0'), USAGE, 'from 1 to'),
            (('-sede', '5'), USAGE, 'did you mean -seed'),
            (('-seed', '5', '-fate', 'maybe'), USAGE, 'happens, not or drawn'),
            (('-seed', '5', '-die', 'x'), USAGE, 'crash points'),
            (('-away', 'reboot'), USAGE, '-from names the journal'),
            (('-search', 'leader,cows=2'), USAGE, 'neither a shape'),
            (('-story', 'nowhere'), FAILED, 'no story and no file'),
            (('-from', '/nowhere'), FAILED, 'no journal at'),
            (('-story', story_file(where, 'alloc a\nat soon assign a\n')), FAILED, 'line 2')):
        done = sim(*flags)
        assert done.returncode == status and words in done.stderr, (flags, done)
        assert done.stderr.count('\n') == 1, (flags, done.stderr)


if __name__ == '__main__':
    sys.exit(tap([
        a_seed_is_the_same_world_told_or_as_a_script,
        many_worlds_are_the_same_on_one_core_and_on_two,
        what_fails_is_shown_again_by_the_command_it_prints,
        what_fails_is_made_smaller_and_still_fails,
        the_journal_of_a_world_verifies_and_is_never_overwritten,
        every_mistake_is_said_in_one_line,
    ]))
