/*
 * What the servers hear of allocs: what has changed since they last heard, a few at a time.
 *
 * They overwrite what they have with what comes, so each is told whole.  What they decide by goes
 * soon, all else (an event of a task) with the next or a little later; what is as they have heard
 * it already does not go at all.  Nothing goes before they have said what is to run: they would not
 * believe it of a node that they take for lost.
 */
#include "server/nomad/part.h"

#include <string.h>

enum { PUSH_MAX = 64 /* allocs of one call */ };

/* --- what is to be told --- */

static void push_in(struct nomad *nomad, uint64_t wait_ms)
{
    uint64_t at_ms = nomad_now_ms(nomad) + wait_ms;

    if (at_ms < nomad->push_after_ms)
        at_ms = nomad->push_after_ms;
    if (nomad->push_at_ms == 0 || at_ms < nomad->push_at_ms)
        nomad->push_at_ms = at_ms;
}

void status_dirty(struct nomad *nomad, struct mine *mine, enum status_haste haste)
{
    mine->dirty = true;
    push_in(nomad, policy_push_after_ms(haste));
}

void status_all(struct nomad *nomad)
{
    struct mine *mine, *next;

    HASH_ITER(hh, nomad->mine, mine, next)
    {
        mine->told = 0;
        mine->presumed = false;
        status_dirty(nomad, mine, STATUS_URGENT);
    }
    nomad->telling_all = true;
}

void nomad_note(struct nomad *nomad, const struct journal_event *event)
{
    bool of_alloc = event->id.kind == MACHINE_ALLOC;

    if (nomad == NULL || (!of_alloc && event->id.kind != MACHINE_TASK) || !nomad->started)
        return;
    if (of_alloc && event->event.kind == AE_STATUS_ACKED)
        return;
    struct machine_id owner = of_alloc ? event->id : machine_id_owner(&event->id);
    struct mine *mine = mine_find(nomad, owner.text);
    if (mine == NULL)
        return;
    status_dirty(nomad, mine, of_alloc ? STATUS_URGENT : STATUS_LAZY);
}

/* --- one that never ran --- */

static json_t *time_of(int64_t unix_ns)
{
    return json_pack("{s:I}", "$time", (json_int_t)unix_ns);
}

static json_t *describe_refused(const struct mine *mine)
{
    json_t *healthy =
        json_pack("{s:b, s:o}", "Healthy", 0, "Timestamp", time_of(mine->refused_unix_ns));

    return json_pack("{s:s, s:s, s:s, s:{}, s:o}", "ID", mine->id, "ClientStatus", "failed",
                     "ClientDescription", mine->refused, "TaskStates", "DeploymentStatus", healthy);
}

static json_t *describe(const struct nomad *nomad, const struct mine *mine)
{
    json_t *json = mine->refused != NULL
                       ? describe_refused(mine)
                       : nomad->config.describe_alloc(nomad->config.ctx, mine->id);

    if (json != NULL)
        check(json_object_set_new(json, "NodeID", json_string(nomad->config.node_id)) == 0);
    return json;
}

/* --- telling --- */

static void acknowledge(struct nomad *nomad, const struct pushed *pushed)
{
    struct core *core = life_core(nomad->config.life);
    struct machine_id id = machine_id_make(MACHINE_ALLOC, pushed->id);
    const struct alloc *alloc = core_alloc(core, pushed->id);
    struct mine *mine = mine_find(nomad, pushed->id);
    struct ack ack = {.status_revision = pushed->revision};

    if (mine != NULL)
        mine->told = pushed->digest;
    if (alloc != NULL && alloc->acked_revision < pushed->revision && core_room(core) > 1)
        core_tell(core, &id, AE_STATUS_ACKED, &ack);
}

static void pushed(void *ctx, const json_t *reply, const struct err *err)
{
    struct nomad *nomad = ctx;
    struct pushed_list list = nomad->pushed;

    (void)err; /* it is told again */
    nomad->pushing = false;
    nomad->pushed = (struct pushed_list){0};
    for (size_t i = 0; i < list.count; i++) {
        struct mine *mine = mine_find(nomad, list.items[i].id);
        if (reply != NULL)
            acknowledge(nomad, &list.items[i]);
        else if (mine != NULL)
            mine->dirty = true;
    }
    free(list.items);
    if (reply == NULL) {
        nomad->push_at_ms = nomad->push_after_ms =
            nomad_now_ms(nomad) + policy_push_again_ms(nomad->config.random(nomad->config.ctx));
        return;
    }
    if (nomad->telling_all && nomad->push_at_ms == 0) {
        nomad->telling_all = false;
        nomad->beats_soon = true;
    }
}

/* ALLOC is told with what is in LIST, if there is anything new to tell. */
static void add(struct nomad *nomad, struct mine *mine, json_t *list)
{
    const struct alloc *alloc = core_alloc(life_core(nomad->config.life), mine->id);
    json_t *json = describe(nomad, mine);

    mine->dirty = false;
    if (json == NULL)
        return;
    uint64_t digest = nomad_digest(json);
    if (mine->presumed && alloc != NULL && alloc->acked_revision >= alloc->status_revision)
        mine->told = digest;
    mine->presumed = false;
    if (digest == mine->told) {
        json_decref(json);
        return;
    }
    check(json_array_append_new(list, json) == 0);
    struct pushed *one = list_more(&nomad->pushed);
    *one =
        (struct pushed){.digest = digest, .revision = alloc == NULL ? 0 : alloc->status_revision};
    memcpy(one->id, mine->id, sizeof(one->id));
    mine->told = 0; /* they may hear it, and the answer be lost */
}

static void push(struct nomad *nomad)
{
    struct mine *mine, *next;
    json_t *list = json_array();

    check(list != NULL);
    HASH_ITER(hh, nomad->mine, mine, next)
    {
        if (!mine->dirty)
            continue;
        if (json_array_size(list) < PUSH_MAX)
            add(nomad, mine, list);
        else
            push_in(nomad, 1); /* the rest behind these */
    }
    if (json_array_size(list) == 0) {
        json_decref(list);
        nomad->telling_all = false;
        return;
    }
    nomad->pushing = true;
    servers_call(nomad, "Node.UpdateAlloc", json_pack("{s:o, s:n}", "Alloc", list, "Evals"), false,
                 NOMAD_CALL_MS, pushed, nomad);
}

void status_wake(struct nomad *nomad)
{
    if (nomad->push_at_ms == 0 || nomad->push_at_ms > nomad_now_ms(nomad) || nomad->pushing ||
        !nomad->synced || !nomad->registered)
        return;
    nomad->push_at_ms = 0;
    push(nomad);
}
