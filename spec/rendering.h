/*
 * Between the daemon and cairn-parse when it renders templates (spec/template.h): messages, each a
 * kind, how long it is, and that many bytes.
 *
 *   daemon:   RENDER_NAMES (once), then for each template RENDER_HOW and RENDER_TEXT
 *   renderer: RENDER_ASKS for a file, any number of times, to which the daemon says RENDER_FILE or
 *             RENDER_FAILED; RENDER_ASKS_OTHERS likewise, to which it says RENDER_ANSWER; then
 *             RENDER_SAYS, RENDER_SAYS_NOW or RENDER_FAILED
 *
 * One renderer serves the templates of one task and ends when its socket does.  What it asks for it
 * gets if that template may read it, and what it says is written where that template is.
 */
#ifndef CAIRN_SPEC_RENDERING_H
#define CAIRN_SPEC_RENDERING_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define RENDERING "templates" /* what cairn-parse is started with for it */

enum {
    RENDER_NAMES = 'n',       /* a JSON object of all that a template may name */
    RENDER_HOW = 'h',         /* a JSON object: "left", "right", "strict", "alone", "now" */
    RENDER_TEXT = 't',        /* the template */
    RENDER_ASKS = 'a',        /* a path */
    RENDER_FILE = 'f',        /* what is there */
    RENDER_ASKS_OTHERS = 'c', /* a JSON object: "kind", "namespace", "name", "needed" */
    RENDER_ANSWER = 'l',      /* as JSON (spec/question.h) */
    RENDER_SAYS = 's',        /* what it renders */
    RENDER_SAYS_NOW = 'w',    /* the same, of a template that asks for the time */
    RENDER_FAILED = 'x',      /* why not, as rendering_failure writes it */
};

enum {
    RENDERING_HEAD_SIZE = 5,
    RENDERING_NAMES_MAX = 8 << 20,
    RENDERING_FAILURE_SIZE = ERR_TEXT_SIZE + 1,
};

void rendering_head(uint8_t to[RENDERING_HEAD_SIZE], char kind, size_t length);

/* The kind of the message that begins so. */
char rendering_head_read(const uint8_t from[RENDERING_HEAD_SIZE], size_t *ret_length);

/* ERR as bytes: how many.  Its text is whole then. */
size_t rendering_failure(uint8_t to[RENDERING_FAILURE_SIZE], struct err *err);

/* And back: returns its code, which is ERR_CORRUPT for what is none. */
int rendering_failure_read(const uint8_t *from, size_t length, struct err *err);

#endif
