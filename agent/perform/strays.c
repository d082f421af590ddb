/*
 * Volumes that are mounted and that nothing in the journal names.
 *
 * A claim whose record and specification are lost is found by its place, for its machine to undo
 * it. For an alloc that the journal does not know, since it is new or an older copy, no machine is
 * made: when its payloads have been ended, and what its plugins may still have been at work on is
 * over, what is mounted for it is unmounted, and then what is staged and no claim is on.  The same
 * goes for one that was made again in order to be ended, once it has been, and whose claims nothing
 * has named.  What something else in quarantine may be about is left to whoever looks there.
 */
#include "agent/perform/strays.h"

#include "agent/perform/volumes.h"
#include "base/list.h"
#include "io/log.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOOK_AFTER_MS = 60000, /* calls that were given up are over before that */
    LOOKS_MAX = 10,        /* what is in use for as long stays until the next start */
};

struct strays {
    struct parts *parts;
    struct io_timer timer;
    unsigned looks;
    size_t under_way; /* unmounts of the last of them */
    bool waits;       /* for allocs to be ended */
    bool begun;
    bool told; /* that something is left to whoever looks */
};

struct stray {
    char alloc[UUID_TEXT_SIZE]; /* "": it is staged */
    struct csi_found found;
};

struct mounted {
    struct stray *items;
    size_t count, size;
};

struct strays *strays_new(struct parts *parts)
{
    struct strays *strays = calloc(1, sizeof(*strays));

    check(strays != NULL);
    strays->parts = parts;
    return strays;
}

void strays_free(struct strays *strays)
{
    if (strays == NULL)
        return;
    io_timer_stop(&strays->timer);
    free(strays);
}

/* --- what there is --- */

static bool list_mounted(void *ctx, const struct csi_found *found)
{
    struct stray *stray = list_more((struct mounted *)ctx);

    stray->found = *found;
    stray->found.alloc = NULL; /* the list may move */
    if (!text_copy(stray->alloc, sizeof(stray->alloc), found->alloc == NULL ? "" : found->alloc))
        stray->alloc[0] = '\0'; /* a valid one fits */
    return true;
}

/* All that is mounted; the caller frees the items. */
static int read_mounted(const struct parts *parts, struct mounted *ret_mounted, struct err *err)
{
    char root[PATH_SIZE];

    *ret_mounted = (struct mounted){0};
    check(text_format(root, sizeof(root), "%s/csi/node", parts->config->state_dir)); /* it fits */
    return csi_volumes_each_mounted(root, list_mounted, ret_mounted, err);
}

struct having {
    const char *alloc; /* whose claims are asked for, "": everybody's */
    const struct volume_define *define;
    bool found;
};

static bool look_at_claim(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct having *having = ctx;
    const struct volume_define *define = &volume_of(record)->define;
    struct machine_id owner = machine_id_owner(id);

    if (having->alloc[0] == '\0')
        having->found = !fsm_is_final(record);
    else
        having->found = text_equal(owner.text, having->alloc) &&
                        define->read_only == having->define->read_only &&
                        define->access_mode == having->define->access_mode &&
                        define->attachment_mode == having->define->attachment_mode;
    return !having->found;
}

/* True if a machine has what is DEFINEd: one of ALLOC in that place, or anybody's if it is "". */
static bool is_claimed(const struct parts *parts, const char *alloc,
                       const struct volume_define *define)
{
    struct having having = {alloc, define, false};

    core_each_of_volume(parts->core, define, look_at_claim, &having);
    return having.found;
}

bool strays_find_place(const struct parts *parts, const char *alloc, unsigned nth,
                       struct volume_define *ret_define)
{
    const struct alloc *record = core_alloc(parts->core, alloc);
    struct mounted mounted;
    struct err err;
    bool found = false;

    if (record == NULL || record->assign.namespace[0] == '\0')
        return false; /* of its namespace the place says nothing */
    if (read_mounted(parts, &mounted, &err) != 0)
        log_error("volumes", "cannot look for what is mounted alloc=%s error=%s", alloc,
                  log_value(err.text));
    for (size_t i = 0; i < mounted.count && !found; i++) {
        struct volume_define define = mounted.items[i].found.define;

        if (!text_equal(mounted.items[i].alloc, alloc) ||
            !text_copy(define.namespace, sizeof(define.namespace), record->assign.namespace) ||
            is_claimed(parts, alloc, &define) || nth-- > 0)
            continue;
        *ret_define = define;
        found = true;
    }
    free(mounted.items);
    return found;
}

/* --- what is in quarantine --- */

struct aside {
    const struct parts *parts;
    const char *alloc; /* asked for; "": any that nobody knows */
    bool found;
};

static bool look_at_aside(void *ctx, const struct journal_quarantined *item)
{
    struct aside *aside = ctx;
    struct machine_id id = {.kind = MACHINE_ALLOC};

    bool spec = text_equal(item->table, "spec");
    if ((!spec && !text_equal(item->table, "state")) ||
        (spec && !text_starts_with(item->key, "alloc/") && !text_starts_with(item->key, "raw:")))
        return true; /* of a job, a token */
    if (!journal_id_of_key(item->key, &id) || !machine_id_is_sound(&id)) {
        aside->found = true; /* whose it is nobody can tell */
        return false;
    }
    if (id.kind == MACHINE_PLUGIN)
        return true;
    if (id.kind != MACHINE_ALLOC)
        id = machine_id_owner(&id);
    aside->found = aside->alloc[0] != '\0' ? text_equal(id.text, aside->alloc)
                                           : core_alloc(aside->parts->core, id.text) == NULL;
    return !aside->found;
}

/* True if something in quarantine may be about ALLOC, or, if it is "", about one that nobody knows;
 * or if that cannot be found out. */
static bool is_aside(const struct strays *strays, const char *alloc)
{
    struct aside aside = {strays->parts, alloc, false};
    struct err err;

    return journal_each_quarantined(strays->parts->journal, look_at_aside, &aside, &err) != 0 ||
           aside.found;
}

/* --- the end of it --- */

static void look(struct io_timer *timer);

static void look_later(struct strays *strays, uint64_t pause_ms)
{
    if (strays->looks < LOOKS_MAX)
        io_timer_start(strays->parts->loop, &strays->timer, loop_now_ms() + pause_ms, look, strays);
}

static void unmounted(void *ctx, const struct csi_step_result *result)
{
    struct strays *strays = ctx;

    if (result->code != 0)
        log_warn("volumes", "cannot unmount what belongs to nobody error=%s",
                 log_value(result->error.text));
    else if (result->remark != NULL)
        log_warn("volumes", "it belonged to nobody: %s", result->remark);
    /* What was in it is free by now, or is tried again. */
    if (--strays->under_way == 0)
        look_later(strays, result->code == 0 ? 0 : LOOK_AFTER_MS);
}

/* Somebody has the volume published: one whose alloc is known, or whose unmount is still to come.
 */
static bool is_published(const struct mounted *mounted, const struct volume_define *define)
{
    for (size_t i = 0; i < mounted->count; i++) {
        const struct stray *other = &mounted->items[i];

        if (other->alloc[0] != '\0' && text_equal(other->found.define.plugin, define->plugin) &&
            text_equal(other->found.define.volume, define->volume))
            return true;
    }
    return false;
}

/* A machine undoes what ALLOC has, or may have, mounted. */
static bool has_claims(const struct parts *parts, const char *id, const struct alloc *alloc)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        struct machine_id volume = machine_id_join(MACHINE_VOLUME, id, member->name);

        if (member->kind == MEMBER_VOLUME && core_find(parts->core, &volume) != NULL)
            return true;
    }
    return false;
}

/* Whose it is, or may be. */
enum owner {
    OWNER_IS_KNOWN,
    OWNER_ENDS, /* and has nothing to undo it by */
    OWNER_HAS_ENDED,
    OWNER_IS_NOBODY, /* that the journal knows */
};

static enum owner owner_of(const struct parts *parts, const struct mounted *mounted,
                           const struct stray *stray)
{
    const struct volume_define *define = &stray->found.define;
    const struct alloc *alloc = core_alloc(parts->core, stray->alloc);

    if (stray->alloc[0] == '\0')
        return is_published(mounted, define) || is_claimed(parts, "", define) ? OWNER_IS_KNOWN
                                                                              : OWNER_IS_NOBODY;
    if (alloc == NULL)
        return OWNER_IS_NOBODY;
    if (!alloc->assign.condemned || has_claims(parts, stray->alloc, alloc))
        return OWNER_IS_KNOWN;
    return alloc_state_has_released(alloc->machine.state) ? OWNER_HAS_ENDED : OWNER_ENDS;
}

static void look(struct io_timer *timer)
{
    struct strays *strays = timer->ctx;
    struct mounted mounted;
    struct err err = {0};

    strays->looks++;
    strays->waits = false;
    if (read_mounted(strays->parts, &mounted, &err) != 0)
        log_error("volumes", "cannot look for what belongs to nobody error=%s",
                  log_value(err.text));
    for (size_t i = 0; i < mounted.count; i++) {
        struct stray *stray = &mounted.items[i];
        enum owner owner = owner_of(strays->parts, &mounted, stray);

        strays->waits |= owner == OWNER_ENDS;
        if (owner == OWNER_IS_KNOWN || owner == OWNER_ENDS)
            continue;
        if (owner == OWNER_IS_NOBODY && is_aside(strays, stray->alloc)) {
            if (!strays->told)
                log_warn("volumes",
                         "something in quarantine may be about what is mounted, which is "
                         "left as it is volume=%s plugin=%s",
                         log_value(stray->found.define.volume),
                         log_value(stray->found.define.plugin));
            strays->told = true;
            continue;
        }
        stray->found.alloc = stray->alloc[0] == '\0' ? NULL : stray->alloc;
        strays->under_way++;
        volumes_unmount(strays->parts, &stray->found, unmounted, strays);
    }
    free(mounted.items);
    if (strays->under_way == 0 && strays->waits)
        look_later(strays, LOOK_AFTER_MS);
}

void strays_swept(struct parts *parts)
{
    struct strays *strays = parts->strays;

    if (strays->begun)
        return;
    strays->begun = true;
    io_timer_start(parts->loop, &strays->timer, loop_now_ms() + LOOK_AFTER_MS, look, strays);
}
