/*
 * Inside agent/tasks/ only: doors.c has the sockets, requests.c asks who has come, forward.c what
 * the servers are asked for him, and answers.c answers.
 */
#ifndef CAIRN_AGENT_TASKS_PART_H
#define CAIRN_AGENT_TASKS_PART_H

#include "agent/tasks/tasks.h"

#include <jansson.h>

struct task_api {
    struct parts *parts;
    struct api *api;
    struct http_server *server;
    struct task_door *doors;       /* by the ids of tasks */
    struct task_request *requests; /* the servers are asked for */
    size_t requests_count;
    bool ended; /* no answer comes any more */
};

/* Of whoever has come by a door. */
struct task_request {
    struct task_api *tasks;
    struct http_exchange *exchange; /* NULL: he has gone */
    const struct forward *forward;  /* what he asks for; NULL: not known yet */
    char *token;                    /* owned; wiped at the end */
    struct task_request *prev, *next;
};

/* --- requests.c --- */

/* A whole request has come by a door. */
void requests_handle(void *tasks, struct http_exchange *exchange);
void requests_end(struct task_api *tasks);

/* --- answers.c --- */

/* Answers with a line of text. */
void request_respond(struct http_exchange *exchange, int status, const char *text);

/* Forgets REQUEST, and gives its exchange to the caller; NULL: he has gone. */
struct http_exchange *request_take(struct task_request *request);
void request_forget(struct task_request *request);

/* Answers with a line of text, and forgets REQUEST. */
void request_refuse(struct task_request *request, int status, const char *text);

/* Answers with VALUE (borrowed; NULL: nothing), the index of REPLY, and forgets REQUEST. */
void request_answer(struct task_request *request, int status, const json_t *reply,
                    const json_t *value);

/* --- forward.c --- */

/* What the servers answer of what EXCHANGE asks; NULL: nothing. */
const struct forward *forward_find(const struct http_exchange *exchange);

/* Asks them, as the one whose token REQUEST has. */
void forward_begin(struct task_request *request);

#endif
