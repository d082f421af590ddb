/*
 * What has happened since the daemon began, counted for those who watch: starts of each task and
 * ends for want of memory, and how long the hooks before a start took.
 *
 * It lives in memory alone: whoever adds up counters expects them to begin anew with their process.
 * Tasks are counted as long as they are there, hooks by namespace.
 */
#ifndef CAIRN_AGENT_TALLY_H
#define CAIRN_AGENT_TALLY_H

#include "fsm/task.h"
#include "journal/journal.h"

/* Rows of hooks; those of further namespaces are not counted. */
enum { TALLY_HOOKS_MAX = 1024 };

struct tally_task {
    char id[MACHINE_ID_SIZE]; /* of its machine */
    uint32_t starts, oom_kills;
};

struct tally_hook {
    char namespace[SPEC_NAMESPACE_SIZE];
    bool of_task;          /* else of an alloc */
    uint8_t hook;          /* enum task_hook or alloc_hook */
    uint32_t done, failed; /* together how many times it was run */
    double sum_ms, squares_ms2, min_ms, max_ms;
};

struct tally;

struct tally *tally_new(void);
void tally_free(struct tally *tally);

/* EVENT was committed; TASK is the record of its machine after the whole turn, NULL if that is no
 * task, or is gone. */
void tally_note(struct tally *tally, const struct journal_event *event, const struct task *task);

/* A hook before the tasks of an alloc, or before a start of a task, has ended. */
void tally_note_hook(struct tally *tally, const char *namespace, bool of_task, uint8_t hook,
                     double took_ms, bool failed);

/* Of the task whose machine has this id; NULL: it has not run since the daemon began. */
const struct tally_task *tally_task(const struct tally *tally, const char *id);

/* All of them, in the order in which they were first run; borrowed until the next one ends. */
const struct tally_hook *tally_hooks(const struct tally *tally, size_t *ret_count);

#endif
