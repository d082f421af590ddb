/*
 * What the daemon does with the journal it finds: every record as it was stored, those that cannot
 * be read into quarantine, then RESTORE to each (restore.c), then allocs of which nothing but the
 * specification is left.
 */
#include "agent/daemon_part.h"

#include "agent/standalone.h"
#include "io/log.h"

#include <stdlib.h>
#include <string.h>

static bool load(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct daemon *daemon = ctx;

    agent_load(daemon->core, id, record);
    return true;
}

struct damaged {
    struct daemon *daemon;
    struct {
        char table[16], key[JOURNAL_KEY_SIZE], reason[ERR_TEXT_SIZE];
    } * items;
    size_t count;
};

/* Noted during the walk, moved afterwards: the walk's read transaction must have ended. */
static void note_damaged(void *ctx, const char *table, const char *key, const void *bytes,
                         size_t length, const char *reason)
{
    struct damaged *damaged = *(struct damaged **)ctx;

    (void)bytes;
    (void)length;
    damaged->items = realloc(damaged->items, (damaged->count + 1) * sizeof(*damaged->items));
    check(damaged->items != NULL);
    (void)text_copy(damaged->items[damaged->count].table, 16, table);
    (void)text_copy(damaged->items[damaged->count].key, JOURNAL_KEY_SIZE, key);
    (void)text_copy(damaged->items[damaged->count].reason, ERR_TEXT_SIZE, reason);
    damaged->count++;
}

struct loading {
    struct damaged *damaged; /* first: note_damaged finds it here */
    struct daemon *daemon;
};

static bool load_noting(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct loading *loading = ctx;

    return load(loading->daemon, id, record);
}

/* Allocs of which the journal has the specification and nothing else. */
struct bereft {
    const struct agent *core;
    char (*ids)[UUID_TEXT_SIZE];
    size_t count;
};

static bool note_bereft(void *ctx, const char *key, const void *bytes, size_t length)
{
    struct bereft *bereft = ctx;
    const char *id = key + strlen("alloc/");

    (void)bytes;
    (void)length;
    if (!uuid_is_valid(id) || agent_alloc(bereft->core, id) != NULL)
        return true;
    bereft->ids = realloc(bereft->ids, (bereft->count + 1) * sizeof(*bereft->ids));
    check(bereft->ids != NULL);
    (void)text_copy(bereft->ids[bereft->count++], UUID_TEXT_SIZE, id); /* a UUID */
    return true;
}

static int adopt_bereft(struct daemon *daemon, struct err *err)
{
    struct bereft bereft = {.core = daemon->core};
    int code = journal_each_spec(daemon->journal, "alloc/", note_bereft, &bereft, err);

    for (size_t i = 0; i < bereft.count && code == 0; i++)
        agent_adopt(daemon->core, bereft.ids[i]);
    free(bereft.ids);
    return code;
}

int daemon_restore(struct daemon *daemon, struct err *err)
{
    struct damaged damaged = {.daemon = daemon};
    struct loading loading = {&damaged, daemon};
    int code = 0;

    for (int kind = 0; kind < MACHINE_KIND_COUNT && code == 0; kind++)
        code = journal_each_record(daemon->journal, (enum machine_kind)kind, load_noting,
                                   note_damaged, &loading, err);
    for (size_t i = 0; i < damaged.count && code == 0; i++) {
        log_error("journal", "record is damaged, put into quarantine table=%s key=%s reason=%s",
                  damaged.items[i].table, log_value(damaged.items[i].key),
                  log_value(damaged.items[i].reason));
        code = journal_quarantine(daemon->journal, damaged.items[i].table, damaged.items[i].key,
                                  damaged.items[i].reason, loop_now_unix_ns(), err);
    }
    free(damaged.items);
    if (code < 0)
        return code;

    agent_continue(daemon->core, journal_next_sequence(daemon->journal), daemon->node.last_turn);
    daemon->index = agent_figures(daemon->core).sequence;
    code = standalone_load(daemon->standalone, err);
    if (code < 0)
        return code;
    size_t allocs = agent_count(daemon->core, MACHINE_ALLOC);
    daemon->reported = agent_count(daemon->core, MACHINE_TASK) == 0;
    if (allocs > 0)
        log_info("agent", "restoring allocs=%zu tasks=%zu rebooted=%s", allocs,
                 agent_count(daemon->core, MACHINE_TASK), daemon->node.rebooted ? "yes" : "no");
    node_keep(&daemon->node, daemon->core);
    agent_restore(daemon->core, true, daemon->node.rebooted);
    return adopt_bereft(daemon, err);
}
