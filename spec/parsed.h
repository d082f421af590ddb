/*
 * Between the daemon and the parser beside it, cairn-parse, which reads the bytes of strangers.
 *
 *   daemon -> parser: the kind of the order, one byte, and the text; then nothing more comes
 *   parser -> daemon: one answer, and its end
 *
 * A parser serves one order and ends: whoever gets hold of one lies about his own request and about
 * nothing else.  What it says is believed as little as what it read: an answer is bytes with tags
 * and lengths, which one short function reads, and bounds what comes of them.
 */
#ifndef CAIRN_SPEC_PARSED_H
#define CAIRN_SPEC_PARSED_H

#include "base/base.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* What cairn-parse is started with: a socket, and nothing else. */
enum { PARSER_SOCKET = 3 };

enum parse_kind {
    PARSE_OBJECT = 'o', /* JSON text: the object that it is, a request that brings a job, in
                           which texts of templates are read, too (jobspec_note_templates) */
    PARSE_JOB = 'j',    /* JSON text, whose "JobHCL" is a job file: the job (spec/job.h) */
};

enum {
    PARSE_TEXT_MAX = 8 << 20,
    PARSED_BYTES_MAX = 48 << 20,   /* an answer */
    PARSED_VALUES_MAX = 1 << 20,   /* in one */
    PARSED_NESTING_MAX = 128,      /* of them in each other */
    PARSED_REFUSAL_MAX = 64 << 10, /* what is wrong with a text */
};

/* The answer to an order; owned by the caller.  RET_LENGTH is never 0. */
uint8_t *parse_answer(enum parse_kind kind, const char *text, size_t length, size_t *ret_length);

/* What an answer says: the value, a new reference; else ERR_INVALID, and RET_REFUSAL, owned by the
 * caller, says what is wrong with the text; or ERR_CORRUPT, which no parser of ours answers.  The
 * outputs that are not said are NULL. */
int parsed_read(const uint8_t *answer, size_t length, json_t **ret_value, char **ret_refusal,
                struct err *err);

/* BYTES as the JSON object that they are, or NULL and why not: a sentence for who sent them. */
json_t *parse_object(const char *bytes, size_t length, struct err *err);

#endif
