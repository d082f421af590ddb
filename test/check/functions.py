#!/usr/bin/env python3
"""Proves that the manual names the functions of both languages, as the tables of the code have them.

usage: test/check/functions.py

  job files  the functions that Nomad has and this has not are refused by name, and the manual lists
             them; it lists, too, those that this has and Nomad has not
  templates  the manual lists all, and those that are refused though they need no server
"""
import glob
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')

# nomad v2.0.5 jobspec2/functions.go; md5 and sha1 are there unless it is told to obey FIPS 140.
NOMADS = set('''
abs abspath base64decode base64encode basename bcrypt can ceil chomp chunklist cidrhost cidrnetmask
cidrsubnet cidrsubnets coalesce coalescelist compact concat contains convert csvdecode dirname distinct
element file filebase64 fileexists fileset flatten floor format formatdate formatlist indent index join
jsondecode jsonencode keys length log lookup lower max md5 merge min parseint pathexpand pow range
regex_replace replace reverse rsadecrypt setintersection setproduct setunion sha1 sha256 sha512 signum
slice sort split strlen strrev substr timeadd title trim trimprefix trimspace trimsuffix try upper
urlencode uuidv4 uuidv5 values yamldecode yamlencode zipmap
'''.split())


def read(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read()


def between(text, begin, end):
    """What stands there; it must."""
    start = text.find(begin)
    assert start >= 0, 'no more "%s"' % begin
    start += len(begin)
    return text[start:text.index(end, start)]


def names_of(text):
    """The names in a list of the manual, whose macros are no names."""
    return set(re.findall(r'[A-Za-z]\w+', re.sub(r'^\.\w+', '', text, flags=re.M))) - {'and'}


def rows_of(text):
    return set(re.findall(r'\{"(\w+)", \d+, (?:\d+|SIZE_MAX|ANY), \w+\}', text))


def main():
    manual = read('agent/cairn.1')
    table = read('spec/hcl/functions/functions.c')
    here = set().union(*(rows_of(read(os.path.relpath(path, ROOT)))
                         for path in glob.glob(os.path.join(ROOT, 'spec/hcl/functions/*.c'))))
    here |= set(re.findall(r'"(\w+)"', between(table, 'special[] = {', '}')))
    templates = set().union(*(rows_of(read(os.path.relpath(path, ROOT)))
                              for path in glob.glob(os.path.join(ROOT, 'spec/template/functions/*.c'))))
    told = names_of(between(manual, '\nThere are and, or, not,', '.\n.I timestamp'))
    told |= {'and', 'or', 'not', 'env', 'file'}
    elsewhere = dict(re.findall(r'\{"(\w+)",\s+"([^"]*)', between(
        read('spec/template/functions/functions.c'), 'elsewhere[] = {', '};')))
    refused = {name for name, why in elsewhere.items() if not why.startswith('needs ')}
    unheard = between(manual, 'refused when the job is registered, and by name, too:', 'begin with sprig_')
    unheard = {name for name in names_of(unheard) if name in elsewhere or name in templates or '_' in name}
    comparisons = (
        ('refused by name in functions.c', set(re.findall(r'"(\w+)"', between(table, 'absent[] = {', '}'))),
         NOMADS - here),
        ('refused, says the manual', names_of(between(manual, 'refused by name:', '.PP')), NOMADS - here),
        ('not of Nomad, says the manual', names_of(between(manual, 'refused there: the functions', ';')),
         here - NOMADS),
        ('of templates, says the manual', told, templates),
        ('refused in templates, says the manual', unheard, refused),
        ('refused in templates and there', set(elsewhere) & templates, set()),
    )
    bad = 0
    for what, said, true in comparisons:
        for name in sorted(said ^ true):
            print('%s: %s is %s' % (what, name, 'not' if name in said else 'missing'))
            bad += 1
    print('functions: %d of job files and %d of templates, %d differences' %
          (len(here), len(templates), bad))
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
