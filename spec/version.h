/*
 * Versions and what a constraint wants of them, as hashicorp/go-version v1.9.0 and Nomad's
 * helper/constraints/semver do.
 *
 * A version is numbers with points between them, perhaps a pre-release ("-rc.1") and what does not
 * count ("+deb12").  The constraints of `version` know ~> and want that a pre-release is asked for
 * by name; those of `semver` know neither, and order by the rules of Semver 2.0.
 */
#ifndef CAIRN_SPEC_VERSION_H
#define CAIRN_SPEC_VERSION_H

#include "base/err.h"

#include <stdbool.h>

enum version_kind { VERSION_LOOSE, VERSION_SEMVER };

/* 0 if WANTED is one constraint or more, with commas between them: ">= 1.2, < 2"; ERR_INVALID. */
int version_check(enum version_kind kind, const char *wanted, struct err *err);

/* True if VERSION is one and fulfils all of WANTED. */
bool version_matches(enum version_kind kind, const char *wanted, const char *version);

#endif
