#!/usr/bin/env python3
"""Proves that what prose names is there: files and words of the code, in the READMEs and in comments.

usage: test/check/names.py

  READMEs   what stands in backquotes: a path of the tree, or a file name that some folder has;
            `*` and `<anything>` stand for any text, and a folder ends in a slash
  comments  a C file or header: in the same room (a test's is the room it tests, too), else from the
            root; a header that is included somewhere may be anybody's
  both      a word with an underscore is one that the code knows, a parameter in capitals, or a file

Before it looks at the tree it proves on a small one of its own that each kind of staleness is seen.
"""
import fnmatch
import os
import re
import subprocess
import sys

READMES = ('README.md', 'fsm/README.md', 'test/README.md')
SOURCES = ('.c', '.h', '.cc')

# What comments rightly know of others.
FOREIGN = {
    'mdb.c': 'LMDB', 'CURSOR_STACK': 'LMDB', 'src/timer.c': 'libuv', 'checked_drivers': 'Nomad',
    'linux_dirent64': 'Linux', 'MAX_ARG_STRLEN': 'Linux', 'NAME_MAX': 'Linux', 'TIME_WAIT': 'TCP',
}

TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
FILE = re.compile(r'(?<![\w/.<*$-])[\w./-]+\.(?:c|h|cc)\b(?![.\w])')
WORD = re.compile(r'(?<![\w/*<.])[A-Za-z]\w*_\w*[A-Za-z0-9]\b(?!\*|\.\w|<)')


def parts_of(text):
    """(code, [(line, comment)]) of a C text."""
    comments = []

    def take(match):
        if not match.group(0).startswith('/'):
            return match.group(0)
        comments.append((text.count('\n', 0, match.start()) + 1, match.group(0)))
        return ' '
    return TOKEN.sub(take, text), comments


class Tree:
    """FILES is {path: text}."""

    def __init__(self, files):
        self.files = files
        self.tops = {path.split('/')[0] for path in files}
        self.folders = {path[:at + 1] for path in files
                        for at, letter in enumerate(path) if letter == '/'}
        self.names = {os.path.basename(path) for path in files}
        self.endings = {os.path.splitext(path)[1] for path in files} - {''}
        self.words = {os.path.splitext(name)[0].lower() for name in self.names}
        self.headers, self.comments = set(), {}
        for path, text in files.items():
            if path.endswith(SOURCES):
                code, self.comments[path] = parts_of(text)
                self.headers.update(re.findall(r'#\s*include\s+<([^>]+)>', code))
            elif path.endswith('.md') or path == 'test/check/names.py':
                continue
            else:
                code = text
            self.words.update(word.lower() for word in re.findall(r'\w+', code))

    def has_word(self, word):
        return word in FOREIGN or word.lower() in self.words

    def has_path(self, pattern):
        pattern = re.sub(r'<[^>]*>', '*', pattern)
        return any(fnmatch.fnmatchcase(path, pattern)
                   for path in (self.folders if pattern.endswith('/') else self.files))

    def check_readme(self, path):
        text = re.sub(r'```.*?```', lambda match: re.sub(r'[^\n]', ' ', match.group(0)),
                      self.files[path], flags=re.S)
        for match in re.finditer(r'`([^`\n]+)`', text):
            line = text.count('\n', 0, match.start()) + 1
            if WORD.fullmatch(match.group(1)) and not self.has_word(match.group(1)):
                yield '%s:%d: no code knows %s' % (path, line, match.group(1))
            for word in match.group(1).split():
                word = word.rstrip(':,')
                if '/' in word and word.split('/')[0] in self.tops:
                    if not self.has_path(word):
                        yield '%s:%d: there is no %s' % (path, line, word)
                elif '/' not in word and os.path.splitext(word)[1] in self.endings:
                    pattern = re.sub(r'<[^>]*>', '*', word)
                    if not any(fnmatch.fnmatchcase(name, pattern) for name in self.names):
                        yield '%s:%d: no file is called %s' % (path, line, word)

    def knows_file(self, path, name):
        if name in FOREIGN or name in self.files or name in self.headers:
            return True
        parts = path.split('/')
        rooms = ['test/', parts[1] + '/'] if parts[0] == 'test' else [parts[0] + '/']
        return any(other.startswith(room) and other.endswith('/' + name)
                   for room in rooms for other in self.files)

    def check_comments(self, path):
        for begin, comment in self.comments[path]:
            for pattern, known, what in ((FILE, lambda name: self.knows_file(path, name),
                                          'there is no %s here'),
                                         (WORD, self.has_word, 'no code knows %s')):
                for match in pattern.finditer(comment):
                    if not known(match.group(0)):
                        yield '%s:%d: %s' % (path, begin + comment.count('\n', 0, match.start()),
                                             what % match.group(0))

    def check(self):
        """Everything that is wrong, a line each."""
        bad = []
        for path in READMES:
            bad += self.check_readme(path)
        for path in sorted(self.comments):
            bad += self.check_comments(path)
        return bad


# --- the proof ---

SOUND = {
    'README.md': 'See `io/net/` and `io/<part>.c`, `loop.c`, `a.h: text`; `io_run` or `MAX_SIZE`.\n'
                 '```\ncp io/gone.c .\n```\n',
    'fsm/README.md': '', 'test/README.md': '`test/io/test_a.c: test_run` and `/v1/jobs`\n',
    'io/loop.c': '/* As loop.c, net/a.h of lmdb.h, test/io/test_a.c.  RET_SIZE of io_run, io_run_*,\n'
                 ' * nomad job_endpoint.go */\n#include <lmdb.h>\nint io_run(int *ret_size);\n',
    'io/net/a.h': 'enum { MAX_SIZE = 1 }; // see loop.c\n',
    'test/io/test_a.c': 'static void test_run(void **state) /* of loop.c */\n',
    'core/turn.c': '/* io/loop.c */\n',
}

# (what becomes stale, file, what is replaced, by what, words of the finding)
SPOILS = [
    ('a folder is gone', 'README.md', 'io/net/', 'io/disk/', 'README.md:1: there is no io/disk/'),
    ('a path is gone', 'README.md', 'io/<part>.c', 'io/gone-<part>.c', 'there is no io/gone'),
    ('a name is gone', 'README.md', 'loop.c', 'gone.c', 'no file is called gone.c'),
    ('a name with text is gone', 'README.md', 'a.h:', 'gone.h:', 'no file is called gone.h'),
    ('a function is gone', 'README.md', 'io_run', 'io_gone', 'no code knows io_gone'),
    ('a comment names no file', 'core/turn.c', 'io/loop.c', 'io/gone.c', 'no io/gone.c here'),
    ('a comment names a file of another room', 'core/turn.c', 'io/loop.c', 'loop.c',
     'core/turn.c:1: there is no loop.c here'),
    ('a comment of a test names no file', 'test/io/test_a.c', 'loop.c', 'gone.c', 'no gone.c here'),
    ('a comment names no word', 'io/loop.c', 'of io_run', 'of io_gone', 'no code knows io_gone'),
    ('a comment names no parameter', 'io/loop.c', 'RET_SIZE', 'RET_GONE', 'knows RET_GONE'),
]


def prove():
    """The check is silent about a sound tree and sees each spoiled one."""
    assert Tree(SOUND).check() == [], Tree(SOUND).check()
    for what, path, old, new, words in SPOILS:
        assert old in SOUND[path], what
        found = Tree(dict(SOUND, **{path: SOUND[path].replace(old, new)})).check()
        assert any(words in line for line in found), (what, found)


def main():
    prove()
    listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], check=True,
                            capture_output=True, text=True).stdout.split()
    files = {}
    for path in listed:
        if os.path.exists(path):
            with open(path, encoding='utf-8', errors='replace') as file:
                files[path] = file.read()
    bad = Tree(files).check()
    for line in bad:
        print('names: ' + line)
    if bad:
        sys.exit(1)
    print('names: what %d READMEs and the comments of %d files name is there; %d kinds of staleness '
          'are seen' % (len(READMES), sum(path.endswith(SOURCES) for path in files), len(SPOILS)))


main()
