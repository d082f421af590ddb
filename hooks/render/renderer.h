/*
 * The renderer of one task's templates: a cairn-parse beside the daemon, which reads no template
 * itself (spec/rendering.h).
 *
 * It is started with the first template, and anew for one that finds it at work for long already,
 * so that the time of one is not that of those before.  For the pool: all of it blocks.
 *
 * No renderer serves two tasks, however many are asked for at once.  A template that has taken its
 * renderer over learns what that is handed: what one task may name, and what the templates of that
 * task may read.  Another task's would be the secrets of somebody else.  What it costs was measured
 * (300 tasks with a template each, release): 1.3 ms of a core's time a task, of which 0.4 ms are
 * those of any process that is started and ended.
 */
#ifndef CAIRN_HOOKS_RENDER_RENDERER_H
#define CAIRN_HOOKS_RENDER_RENDERER_H

#include "io/helper.h"

#include <jansson.h>

struct renderer {
    const char *program; /* cairn-parse */
    const json_t *names; /* all that a template may name; borrowed */
    /* A file that a template asks for; RET_TEXT is the caller's. */
    int (*read)(void *ctx, const char *path, char **ret_text, size_t *ret_length, struct err *err);
    /* The answer to a question of a template to others (RENDER_ASKS_OTHERS), as JSON; RET_TEXT is
     * borrowed.  ERR_AGAIN: there is none yet; ERR_CORRUPT: it is no such question. */
    int (*ask)(void *ctx, const char *question, const char **ret_text, struct err *err);
    void *ctx;

    bool runs, is_strange; /* what it said last is nothing that a renderer says */
    uint64_t began_ms;
    struct helper helper;
};

/* A template, and how it is read. */
struct renderer_order {
    const char *text, *left, *right;
    size_t length;
    bool strict, alone;
    int64_t now_unix_ns;
};

/* What it renders: RET_TEXT is the caller's, with a NUL behind it.  Otherwise, and without a word
 * of the template's but what its error says: ERR_INVALID, ERR_LIMIT, or what reading a file or
 * asking gave;
 * ERR_TIMEOUT and ERR_IO: it takes too much of something; other failures may be over the next time,
 * and ERR says so. */
int renderer_say(struct renderer *renderer, const struct renderer_order *order, char **ret_text,
                 size_t *ret_length, bool *ret_asks_time, struct err *err);

void renderer_end(struct renderer *renderer);

#endif
