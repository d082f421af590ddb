/*
 * attempt: what survives an assertion.
 *
 * Assertions guard against our own mistakes and end the process.  What was read from a journal, and
 * then stepped, may be somebody else's: an event that breaks an assertion there costs whose event
 * it was.  Only for what is pure: it holds nothing that a jump out of it could leak.
 */
#ifndef CAIRN_CORE_ATTEMPT_H
#define CAIRN_CORE_ATTEMPT_H

#include "base/base.h"

/* Runs RUN; false if an assertion broke in it, whose text is then in RET_BROKEN.  It was left where
 * it stood: whatever it was working on is good for nothing but being freed. */
bool core_attempt(void (*run)(void *ctx), void *ctx, char ret_broken[ERR_TEXT_SIZE]);

#endif
