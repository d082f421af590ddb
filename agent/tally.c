#include "agent/tally.h"

#include "base/list.h"

#include <string.h>
#include <uthash.h>

struct counted {
    struct tally_task task; /* found by its id */
    UT_hash_handle hh;
};

struct tally {
    struct counted *tasks;
    struct {
        struct tally_hook *items;
        size_t count, size;
    } hooks;
};

struct tally *tally_new(void)
{
    struct tally *tally = calloc(1, sizeof(*tally));

    check(tally != NULL);
    return tally;
}

static void forget(struct tally *tally, const char *id)
{
    struct counted *counted;

    HASH_FIND_STR(tally->tasks, id, counted);
    if (counted == NULL)
        return;
    HASH_DEL(tally->tasks, counted);
    free(counted);
}

void tally_free(struct tally *tally)
{
    struct counted *counted, *next;

    if (tally == NULL)
        return;
    HASH_ITER(hh, tally->tasks, counted, next)
    {
        HASH_DEL(tally->tasks, counted);
        free(counted);
    }
    free(tally->hooks.items);
    free(tally);
}

static struct tally_task *task_row(struct tally *tally, const char *id)
{
    struct counted *counted;

    HASH_FIND_STR(tally->tasks, id, counted);
    if (counted != NULL)
        return &counted->task;
    counted = calloc(1, sizeof(*counted));
    check(counted != NULL);
    check(text_copy(counted->task.id, sizeof(counted->task.id), id));
    HASH_ADD_STR(tally->tasks, task.id, counted);
    return &counted->task;
}

/* True if EVENT is what first showed the payload of a start alive: a look after a restart of the
 * daemon shows again what was known, or what nobody had seen; so does an end. */
static bool shows_start(const struct journal_event *event, const struct task *task)
{
    if (task == NULL || task->started_unix_ns != event->unix_ns)
        return false;
    return event->event.kind == TE_STARTED || event->event.kind == TE_RECOVERED ||
           (event->event.kind == TE_EXITED && event->before == T_STARTING);
}

void tally_note(struct tally *tally, const struct journal_event *event, const struct task *task)
{
    if (event->id.kind != MACHINE_TASK)
        return;
    if (shows_start(event, task))
        task_row(tally, event->id.text)->starts++;
    if (event->event.kind == TE_EXITED && ((const struct exited *)event->event.payload)->oom_killed)
        task_row(tally, event->id.text)->oom_kills++;
    if (event->after == T_GONE)
        forget(tally, event->id.text);
}

static struct tally_hook *hook_row(struct tally *tally, const char *namespace, bool of_task,
                                   uint8_t hook)
{
    for (size_t i = 0; i < tally->hooks.count; i++) {
        struct tally_hook *row = &tally->hooks.items[i];

        if (row->of_task == of_task && row->hook == hook && text_equal(row->namespace, namespace))
            return row;
    }
    if (tally->hooks.count == TALLY_HOOKS_MAX)
        return NULL;
    struct tally_hook *row = list_more(&tally->hooks);
    *row = (struct tally_hook){.of_task = of_task, .hook = hook};
    check(text_copy(row->namespace, sizeof(row->namespace), namespace));
    return row;
}

void tally_note_hook(struct tally *tally, const char *namespace, bool of_task, uint8_t hook,
                     double took_ms, bool failed)
{
    struct tally_hook *row = hook_row(tally, namespace, of_task, hook);

    if (row == NULL)
        return;
    bool first = row->done + row->failed == 0;
    row->min_ms = first || took_ms < row->min_ms ? took_ms : row->min_ms;
    row->max_ms = first || took_ms > row->max_ms ? took_ms : row->max_ms;
    row->sum_ms += took_ms;
    row->squares_ms2 += took_ms * took_ms;
    row->done += !failed;
    row->failed += failed;
}

const struct tally_task *tally_task(const struct tally *tally, const char *id)
{
    struct counted *counted;

    HASH_FIND_STR(tally->tasks, id, counted);
    return counted != NULL ? &counted->task : NULL;
}

const struct tally_hook *tally_hooks(const struct tally *tally, size_t *ret_count)
{
    *ret_count = tally->hooks.count;
    return tally->hooks.items;
}
