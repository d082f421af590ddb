/*
 * Inside agent/servers/ only.
 *
 * servers.c holds connections; calls.c and streams.c answer what servers ask of this node, by what
 * the API answers to the same question, and csi.c what they ask of its storage plugins.
 */
#ifndef CAIRN_AGENT_SERVERS_PART_H
#define CAIRN_AGENT_SERVERS_PART_H

#include "agent/servers/servers.h"
#include "io/rpc.h"
#include "server/nomad/nomad.h"

/* --- questions.c --- */

enum { QUESTION_QUERY_MAX = 8, QUESTION_NUMBER_SIZE = 24, QUESTION_FIELDS_MAX = 4 };

/* A field of what a server asks, the name of the query that it becomes, and what is asked where it
 * is missing, which to Go is its zero; NULL: nothing. */
struct question_field {
    const char *field, *query, *missing;
};

/* How a method is asked of the API.  Lists end with NULL. */
struct question {
    const char *method;      /* of servers */
    const char *verb, *path; /* of the API; a * stands for AllocID */
    struct question_field query[QUESTION_QUERY_MAX];
    const char *body[QUESTION_FIELDS_MAX]; /* fields that the body has, as they are */
};

/* The exchange in which QUESTION is asked with ARGS (borrowed), answered to GUEST's callbacks:
 * given to the API by api_serve.  HEADERS may be NULL. */
struct http_exchange *question_begin(const struct question *question, const json_t *args,
                                     const struct http_pair *headers, size_t headers_count,
                                     const struct http_guest *guest);

/* --- calls.c, streams.c --- */

/* Answers CALLED, in its time. */
void calls_begin(struct api *api, struct rpc_called *called, const char *method,
                 const json_t *args);

bool streams_know(void *ctx, const char *method);
void streams_begin(struct api *api, struct rpc_stream *stream, const char *method,
                   const json_t *args);

/* --- csi.c --- */

/* Of servers to storage plugins, under way. */
struct storage_calls {
    struct parts *parts;
    struct storage_call *items;
};

/* Answers CALLED, in its time; false: it is no such call. */
bool storage_calls_begin(struct storage_calls *calls, struct rpc_called *called, const char *method,
                         const json_t *args);

/* Whoever waits hears that it ends.  What was asked may be answered afterwards no more. */
void storage_calls_end(struct storage_calls *calls);

#endif
