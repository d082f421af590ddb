/*
 * Who waits for the daemon: callers for an answer, watchers for a change, allocs for the end of
 * others.
 *
 * A caller that asked one machine waits under a token until an effect replies or the core refuses
 * it; one that posted a change of its own waits for the commit.  Either hears exactly once (I-14).
 */
#include "agent/part.h"

#include "server/alone/alone.h"

#include <stdlib.h>
#include <uthash.h>

enum { WATCHERS_MAX = 1024 };

struct waiting {
    uint64_t token;
    daemon_answer *answer;
    void *ctx;
    UT_hash_handle hh;
};

struct committed {
    daemon_answer *answer;
    void *ctx;
};

struct watcher {
    void (*cb)(void *ctx);
    void *ctx;
};

struct previous {
    struct machine_id id;
    char alloc[UUID_TEXT_SIZE];
};

/* --- answers --- */

void daemon_ask(struct daemon *daemon, const struct machine_id *id, uint8_t event,
                const struct request *request, daemon_answer *answer, void *ctx)
{
    struct waiting *waiting = calloc(1, sizeof(*waiting));

    check(waiting != NULL);
    waiting->token = ++daemon->tokens;
    waiting->answer = answer;
    waiting->ctx = ctx;
    HASH_ADD(hh, daemon->waiting, token, sizeof(waiting->token), waiting);
    core_ask(daemon->core, id, event, request, waiting->token);
}

void daemon_reply(struct daemon *daemon, uint64_t token, int code, const struct err *err)
{
    struct waiting *waiting;
    struct err none = {0};

    HASH_FIND(hh, daemon->waiting, &token, sizeof(token), waiting);
    if (waiting == NULL)
        return;
    HASH_DEL(daemon->waiting, waiting);
    waiting->answer(waiting->ctx, code, err != NULL ? err : &none);
    free(waiting);
}

void daemon_after_commit(struct daemon *daemon, daemon_answer *answer, void *ctx)
{
    if (daemon->committed_count == daemon->committed_size) {
        daemon->committed_size = daemon->committed_size == 0 ? 8 : daemon->committed_size * 2;
        daemon->committed =
            realloc(daemon->committed, daemon->committed_size * sizeof(*daemon->committed));
        check(daemon->committed != NULL);
    }
    daemon->committed[daemon->committed_count++] = (struct committed){answer, ctx};
}

void daemon_answer_committed(struct daemon *daemon, int code, const struct err *err)
{
    struct committed *list = daemon->committed;
    size_t count = daemon->committed_count;

    daemon->committed = NULL; /* an answer may ask again */
    daemon->committed_count = daemon->committed_size = 0;
    for (size_t i = 0; i < count; i++)
        list[i].answer(list[i].ctx, code, err);
    free(list);
}

/* --- watchers --- */

void daemon_watch(struct daemon *daemon, void (*cb)(void *ctx), void *ctx)
{
    daemon->watchers =
        realloc(daemon->watchers, (daemon->watchers_count + 1) * sizeof(*daemon->watchers));
    check(daemon->watchers != NULL);
    check(daemon->watchers_count < WATCHERS_MAX); /* the API bounds its callers below this */
    daemon->watchers[daemon->watchers_count++] = (struct watcher){cb, ctx};
}

void daemon_unwatch(struct daemon *daemon, void (*cb)(void *ctx), void *ctx)
{
    for (size_t i = 0; i < daemon->watchers_count; i++) {
        if (daemon->watchers[i].cb == cb && daemon->watchers[i].ctx == ctx) {
            daemon->watchers[i] = daemon->watchers[--daemon->watchers_count];
            return;
        }
    }
}

void daemon_changed(struct daemon *daemon)
{
    daemon->changed = true;
}

void daemon_tell_watchers(struct daemon *daemon)
{
    if (!daemon->changed)
        return;
    daemon->changed = false;
    daemon->index = core_figures(daemon->core).sequence;
    for (size_t i = daemon->watchers_count; i > 0; i--) {
        struct watcher watcher = daemon->watchers[i - 1];
        watcher.cb(watcher.ctx);
        if (i > daemon->watchers_count + 1)
            i = daemon->watchers_count + 1; /* some have gone */
    }
}

/* --- allocs that wait for others --- */

static bool has_ended(struct daemon *daemon, const char *alloc)
{
    const struct alloc *record = core_alloc(daemon->core, alloc);

    return record == NULL || record->ended_unix_ns != 0;
}

void daemon_watch_previous(struct daemon *daemon, const struct machine_id *id, const char *previous)
{
    if (has_ended(daemon, previous)) {
        core_done(daemon->core, id, LANE_WAIT, AE_PREVIOUS_ENDED, NULL);
        return;
    }
    if (daemon->previous_count == daemon->previous_size) {
        daemon->previous_size = daemon->previous_size == 0 ? 8 : daemon->previous_size * 2;
        daemon->previous =
            realloc(daemon->previous, daemon->previous_size * sizeof(*daemon->previous));
        check(daemon->previous != NULL);
    }
    struct previous *entry = &daemon->previous[daemon->previous_count++];
    entry->id = *id;
    (void)text_copy(entry->alloc, sizeof(entry->alloc), previous); /* a UUID */
}

void daemon_alloc_ended(struct daemon *daemon, const char *alloc)
{
    for (size_t i = daemon->previous_count; i > 0; i--) {
        struct previous entry = daemon->previous[i - 1];
        if (!text_equal(entry.alloc, alloc))
            continue;
        daemon->previous[i - 1] = daemon->previous[--daemon->previous_count];
        core_done(daemon->core, &entry.id, LANE_WAIT, AE_PREVIOUS_ENDED, NULL);
    }
    alone_alloc_ended(daemon->alone);
    daemon->changed = true;
}

/* --- the end --- */

void daemon_forget_callers(struct daemon *daemon)
{
    struct waiting *waiting, *next;

    HASH_ITER(hh, daemon->waiting, waiting, next)
    {
        HASH_DEL(daemon->waiting, waiting);
        free(waiting);
    }
}

void daemon_free_answers(struct daemon *daemon)
{
    free(daemon->committed);
    free(daemon->watchers);
    free(daemon->previous);
}
