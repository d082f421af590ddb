/*
 * base: bytes, text, ids, errors.  The lowest room: everything stands on it, it stands on nothing.
 *
 * Nothing here reads a clock, allocates, opens a file or a socket, or keeps a global
 * (but for the guards of check.h, of each thread); a check in the tests holds the room to that
 * (test/check/purity.py).  Memory always belongs to the caller.
 */
#ifndef CAIRN_BASE_H
#define CAIRN_BASE_H

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/quote.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/url.h"
#include "base/uuid.h"
#include "base/wall.h"

#endif
