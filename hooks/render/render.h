/*
 * Templates of a task that runs: what they read is watched, and they are rendered again when it
 * changes, or when the daemon comes back to it.
 *
 * One watch a task, made by hook template behind the task's start and ended by its next start or
 * by its end.  Nothing is polled: the kernel tells of files (inotify), and a change waits until it
 * has settled.  Which of it the task is told is up to its machine, which knows what was rendered
 * before (fsm/policy.h, struct rendered); here it only waits for the longest splay.
 */
#ifndef CAIRN_HOOKS_RENDER_RENDER_H
#define CAIRN_HOOKS_RENDER_RENDER_H

#include "fsm/policy.h"
#include "hooks/part.h"
#include "hooks/render/asks.h"
#include "io/host.h"

enum { MARKS_MAX = 4096 }; /* of one task; what is read beyond is not watched */

/* Something below the task's directory that was read, or looked for in vain. */
struct render_mark {
    int wd;               /* of inotify */
    char name[NAME_SIZE]; /* in that directory, "": the file itself */
};

/* Rendering again, for who runs. */
struct hooks_rerender {
    int inotify;
    const struct rendered *before; /* borrowed; as many as there are templates, or none */
    size_t before_count;
    struct {
        struct render_mark *items;
        size_t count, size;
    } marks;           /* the caller's to free */
    bool blind;        /* not all could be marked */
    uint64_t splay_ms; /* the longest of those that say something else than before */
};

/* --- the watches of a node --- */

struct watches;

struct watches *watches_new(struct hooks *hooks);
void watches_free(struct watches *watches); /* work under way ends, and nobody is told */

/* Ends the watch of a task, if it has one.  True: it is just rendering, and RESUME follows on the
 * loop when it does not any more. */
bool watches_end(struct watches *watches, const char *alloc, const char *task,
                 void (*resume)(void *ctx), void *ctx);

#endif
