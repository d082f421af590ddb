/*
 * Asking the parser beside the daemon (spec/parsed.h) what is in a text of a stranger.
 *
 * What is read there: bodies of requests that bring a job, which hold the language with all its
 * functions, regular expressions and numbers, and templates, which the hooks have rendered there,
 * too (hooks/render/renderer.h).  What is read here, and why: other bodies, which are
 * plain JSON of 16 KiB at most, a dispatch of as much more as a payload may have; rules of
 * policies, from who may do everything already, in which nothing is computed, so that the longest
 * take the loop 7 ms; the daemon's own configuration.  Files of volumes are read by the command
 * line, for whoever calls it.
 */
#ifndef CAIRN_AGENT_PARSER_H
#define CAIRN_AGENT_PARSER_H

#include "spec/parsed.h"

/* Starts PROGRAM, a cairn-parse, for this one TEXT, and waits for its answer: for the pool.  As
 * parsed_read; any other failure is one of the parser or of starting it, and no word about TEXT. */
typedef int parser_function(const char *program, enum parse_kind kind, const char *text,
                            size_t length, json_t **ret_value, char **ret_refusal, struct err *err);
parser_function parser_ask;

#endif
