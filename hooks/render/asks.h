/*
 * What the templates of one task ask of others, and what they were told.
 *
 * Which questions there are is known when the templates are rendered: one that is not answered yet
 * is noted, its template lacks it, and they are rendered again when it is.  Questions are kept as
 * long as the last rendering has asked them, over restarts of the task, until its stop hooks: so it
 * starts again by what is known when nobody can be asked.
 *
 * One rendering at a time, for which asks_begin and asks_settle are on the loop, and asks_answer is
 * on the pool between them.
 */
#ifndef CAIRN_HOOKS_RENDER_ASKS_H
#define CAIRN_HOOKS_RENDER_ASKS_H

#include "hooks/part.h"
#include "spec/question.h"

enum { ASKS_MAX = 256 }; /* questions of the templates of one task */

struct ask;

struct asks {
    struct hooks *hooks;
    const struct hooks_facts *facts; /* of the hooks */
    char *alloc, *task;
    json_t *order;           /* who asks; owned */
    struct spec_asker asker; /* the same */
    struct {
        struct ask **items;
        size_t count, size;
    } list;
    bool busy, ended;        /* a rendering is under way; to be freed when it is not */
    void (*news)(void *ctx); /* NULL: nobody waits for them */
    void *ctx;
    struct asks *prev, *next;
};

/* Who asks, as an order has it: a new reference. */
json_t *asks_asker(const struct hook_run *asked);

/* Those of the task, which are made if there are none, of the one who asks by ASKER.  NEWS is told
 * when an answer may be another one. */
struct asks *asks_open(struct hooks *hooks, const char *alloc, const char *task,
                       const json_t *asker, void (*news)(void *ctx), void *ctx);
void asks_close(struct asks *asks); /* who listens does not any more */

/* The task has ended. */
void asks_end(struct hooks *hooks, const char *alloc, const char *task);

/* All tasks' questions; who knows the answers is gone already, or nobody minds. */
void asks_free(struct hooks *hooks);

/* A rendering begins, by what is known. */
void asks_begin(struct asks *asks);

/* The answer to QUESTION, as the renderer of templates asks it (renderer.h). */
int asks_answer(struct asks *asks, const char *question, const char **ret_text, struct err *err);

/* It is over: what it has not asked is forgotten.  ASKS may be gone. */
void asks_settle(struct asks *asks);

/* The last rendering lacked an answer.  ASKS_READY: some of that is known by now.  ASKS_IN_VAIN:
 * some of it is refused for good, and ERR says why. */
enum asks_state { ASKS_COMPLETE, ASKS_LACKING, ASKS_READY, ASKS_IN_VAIN };
enum asks_state asks_state(const struct asks *asks, struct err *err);

/* What it lacks, in Nomad's words, cut if it is too much. */
void asks_missing(const struct asks *asks, char *to, size_t size);

#endif
