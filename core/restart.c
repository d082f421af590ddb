/*
 * What the daemon does with the journal it finds: every record as it was stored, those that cannot
 * be read into quarantine, then RESTORE to each (restore.c), then allocs of which nothing but the
 * specification is left.
 */
#include "agent/part.h"

#include "core/lost.h"
#include "io/log.h"
#include "server/alone/alone.h"

#include <stdlib.h>

/* --- records --- */

/* One that could not be read. */
struct damaged {
    char table[16], key[JOURNAL_KEY_SIZE], reason[ERR_TEXT_SIZE];
};

struct loading {
    struct core *core;
    struct damaged *damaged;
    size_t count;
};

static bool load(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct loading *loading = ctx;

    core_load(loading->core, id, record);
    return true;
}

/* Noted during the walk, moved afterwards: the walk's read transaction must have ended. */
static void note_damaged(void *ctx, const char *table, const char *key, const void *bytes,
                         size_t length, const char *reason)
{
    struct loading *loading = ctx;

    (void)bytes; /* the quarantine reads them itself */
    (void)length;
    loading->damaged = realloc(loading->damaged, (loading->count + 1) * sizeof(*loading->damaged));
    check(loading->damaged != NULL);
    struct damaged *damaged = &loading->damaged[loading->count++];
    (void)text_copy(damaged->table, sizeof(damaged->table), table);    /* a short name */
    (void)text_copy(damaged->key, sizeof(damaged->key), key);          /* same size */
    (void)text_copy(damaged->reason, sizeof(damaged->reason), reason); /* cut if too long */
}

/* A damaged specification costs what needs it: a running payload does not. */
static int load_records(struct daemon *daemon, struct err *err)
{
    struct loading loading = {.core = daemon->core};
    int code = 0;

    for (int kind = 0; kind < MACHINE_KIND_COUNT && code == 0; kind++)
        code = journal_each_record(daemon->journal, (enum machine_kind)kind, load, note_damaged,
                                   &loading, err);
    if (code == 0)
        code = journal_each_bad_spec(daemon->journal, note_damaged, &loading, err);
    for (size_t i = 0; i < loading.count && code == 0; i++) {
        const struct damaged *damaged = &loading.damaged[i];
        log_error("journal", "entry is damaged, put into quarantine table=%s key=%s reason=%s",
                  damaged->table, log_value(damaged->key), log_value(damaged->reason));
        code = journal_quarantine(daemon->journal, damaged->table, damaged->key, damaged->reason,
                                  loop_now_unix_ns(), err);
    }
    free(loading.damaged);
    return code;
}

/* --- restore --- */

int daemon_restore(struct daemon *daemon, struct err *err)
{
    int code = load_records(daemon, err);

    if (code < 0)
        return code;
    core_continue(daemon->core, journal_next_sequence(daemon->journal),
                  daemon->node.identity.last_turn);
    daemon->index = core_figures(daemon->core).sequence;
    code = alone_load(daemon->alone, err);
    if (code < 0)
        return code;
    size_t allocs = core_count(daemon->core, MACHINE_ALLOC);
    daemon->reported = core_count(daemon->core, MACHINE_TASK) == 0;
    if (allocs > 0)
        log_info("agent", "restoring allocs=%zu tasks=%zu rebooted=%s", allocs,
                 core_count(daemon->core, MACHINE_TASK),
                 daemon->node.identity.rebooted ? "yes" : "no");
    identity_keep(&daemon->node.identity, daemon->core);
    core_restore(daemon->core, true, daemon->node.identity.rebooted);
    return lost_adopt(daemon->journal, daemon->core, err);
}
