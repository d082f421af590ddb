/*
 * What is to run here: asked for again and again, each time until something has changed.
 *
 * An answer lists ids with the version of each.  Those that are new or newer are pulled, then all
 * is carried out, and only then the next question is asked with the index of this answer.  What is
 * here and not in the list is destroyed.  Whatever does not fit the core's queue waits for the next
 * turn: carrying out the same answer twice changes nothing.
 *
 * The first question of a connection is answered at once, and by the leader: a server that lags may
 * know less than was known before, and what was deleted wakes nobody who waits for more (R-02,
 *
 *
 * Servers that do not know the node list nothing, without an error: so nobody is asked before the
 * node is registered, and an answer that comes when it is not any more is not looked at.
 */
#include "server/nomad/part.h"

#include <string.h>

enum {
    PULL_MAX = 256,  /* allocs that are asked for at once */
    QUICK_MS = 1000, /* an answer that says nothing new and comes sooner was no wait */
    MISSING_MS = 2000,
    PULL_MS = 3000, /* that a server may wait to know as much as the one that listed them: no
                     * longer, as one that was deleted meanwhile never comes */
};

/* --- what is here at the start, and its end --- */

static bool add_mine(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct nomad *nomad = ctx;
    struct mine *mine = mine_add(nomad, id->text);

    mine->minds_contact = alloc_of(record)->assign.stop_after_ms != 0;
    nomad->contacted += mine->minds_contact;
    mine->index = place_index(nomad, id->text);
    mine->presumed = alloc_of(record)->acked_revision >= alloc_of(record)->status_revision;
    mine->dirty = !mine->presumed;
    return true;
}

void allocs_begin(struct nomad *nomad)
{
    core_each(life_core(nomad->config.life), MACHINE_ALLOC, add_mine, nomad);
}

void allocs_end(struct nomad *nomad)
{
    json_decref(nomad->listing);
    json_decref(nomad->pulled);
}

/* --- asking --- */

static void ask_in(struct nomad *nomad, uint64_t wait_ms)
{
    nomad->ask_at_ms = nomad_now_ms(nomad) + wait_ms;
}

static uint64_t draw(const struct nomad *nomad)
{
    return nomad->config.random(nomad->config.ctx);
}

static void give_up(struct nomad *nomad)
{
    json_decref(nomad->listing);
    json_decref(nomad->pulled);
    nomad->listing = nomad->pulled = NULL;
    nomad->missing = 0;
}

void nomad_connection_over(struct nomad *nomad)
{
    if (nomad != NULL)
        nomad->losses++;
}

static void asked_in_vain(struct nomad *nomad, const struct err *err)
{
    give_up(nomad);
    nomad->losses++;
    ask_in(nomad, policy_ask_again_ms(draw(nomad)));
    if (policy_node_trouble(err->code, err->text) == NODE_TROUBLE_UNKNOWN)
        nomad->is_unknown = true;
}

static void listed(void *ctx, const json_t *reply, const struct err *err)
{
    struct nomad *nomad = ctx;
    uint64_t index = (uint64_t)json_integer_value(json_object_get(reply, "Index"));
    uint64_t took_ms = nomad_now_ms(nomad) - nomad->asked_at_ms;

    nomad->asking = false;
    if (reply == NULL) {
        asked_in_vain(nomad, err);
        return;
    }
    if (!nomad->registered)
        return; /* asked again when it is */
    bool is_anew = nomad->asked_losses != nomad->synced_losses,
         is_new = is_anew ? index >= nomad->index : index > nomad->index;
    if (!is_new && nomad->index != 0) { /* or of a server that lags */
        ask_in(nomad, took_ms < QUICK_MS ? policy_ask_again_ms(draw(nomad)) : 0);
        return;
    }
    nomad->listing = json_incref((json_t *)(uintptr_t)reply);
    moving_learn(nomad, reply);
    ask_in(nomad, 0);
}

static void ask(struct nomad *nomad)
{
    bool is_first = !nomad->synced || nomad->losses != nomad->synced_losses;
    json_t *args =
        json_pack("{s:s, s:s, s:I, s:b}", "NodeID", nomad->config.node_id, "SecretID",
                  nomad->config.secret, "MinQueryIndex",
                  is_first ? (json_int_t)0 : (json_int_t)nomad->index, "AllowStale", !is_first);

    check(args != NULL);
    nomad->asking = true;
    nomad->asked_losses = nomad->losses;
    nomad->asked_at_ms = nomad_now_ms(nomad);
    servers_call(nomad, "Node.GetClientAllocs", args, false, NOMAD_BLOCKED_CALL_MS, listed, nomad);
}

/* --- pulling --- */

static void pulled(void *ctx, const json_t *reply, const struct err *err)
{
    struct nomad *nomad = ctx;
    const json_t *allocs = json_object_get(reply, "Allocs");

    nomad->asking = false;
    if (reply == NULL) {
        asked_in_vain(nomad, err);
        return;
    }
    if (nomad->listing == NULL)
        return; /* given up meanwhile */
    if (json_array_size(allocs) == 0) {
        give_up(nomad);
        ask_in(nomad, MISSING_MS); /* of a server that does not know them yet */
        return;
    }
    nomad->pulled = json_copy((json_t *)(uintptr_t)allocs);
    check(nomad->pulled != NULL);
    ask_in(nomad, 0);
}

/* What is new or newer, or the first of it. */
struct wishes {
    json_t *ids;    /* owned */
    uint64_t index; /* the largest of these */
    size_t total;
};

static struct wishes to_pull(const struct nomad *nomad)
{
    json_t *allocs = json_object_get(nomad->listing, "Allocs"), *number;
    struct wishes wishes = {.ids = json_array()};
    const char *id;

    check(wishes.ids != NULL);
    json_object_foreach(allocs, id, number)
    {
        uint64_t index = (uint64_t)json_integer_value(number);
        const struct mine *mine = uuid_is_valid(id) ? mine_find(nomad, id) : NULL;

        if (!uuid_is_valid(id) || (mine != NULL && mine->index >= index) ||
            ++wishes.total > PULL_MAX)
            continue;
        check(json_array_append_new(wishes.ids, json_string(id)) == 0);
        wishes.index = index > wishes.index ? index : wishes.index;
    }
    return wishes;
}

static void pull(struct nomad *nomad, const struct wishes *wishes)
{
    json_t *args = json_pack("{s:O, s:I, s:I, s:b}", "AllocIDs", wishes->ids, "MinQueryIndex",
                             (json_int_t)(wishes->index - 1), "MaxQueryTime",
                             (json_int_t)PULL_MS * 1000000, "AllowStale", 1);

    check(args != NULL);
    nomad->asking = true;
    servers_call(nomad, "Alloc.GetAllocs", args, false, PULL_MS + NOMAD_CALL_MS, pulled, nomad);
}

/* --- carrying out --- */

/* Room for one alloc's event, and what stays for everybody else. */
static bool has_room(const struct nomad *nomad, size_t events)
{
    return core_room(life_core(nomad->config.life)) > events;
}

/* ID is here, and wanted no more: it is brought to its end and forgotten. */
static bool destroy(struct nomad *nomad, struct mine *mine)
{
    struct core *core = life_core(nomad->config.life);
    const struct alloc *alloc = core_alloc(core, mine->id);
    struct machine_id id = machine_id_make(MACHINE_ALLOC, mine->id);
    struct request request = {0};

    if (alloc == NULL) {
        finding_drop(nomad, mine->id);
        mine_drop(nomad, mine);
        return true;
    }
    if (alloc->destroy_wanted)
        return true;
    if (!has_room(nomad, 2))
        return false;
    (void)text_copy(request.text, sizeof(request.text), "the servers know nothing of it");
    if (!alloc->stop_wanted && alloc->ended_unix_ns == 0)
        core_tell(core, &id, AE_STOP, &request);
    core_tell(core, &id, AE_DESTROY, NULL);
    return true;
}

/* ID is here, and the servers want what it is. */
static bool authorize(const struct nomad *nomad, const struct mine *mine)
{
    struct core *core = life_core(nomad->config.life);
    const struct alloc *alloc = core_alloc(core, mine->id);
    struct machine_id id = machine_id_make(MACHINE_ALLOC, mine->id);

    if (alloc == NULL || alloc->may_start || alloc->ended_unix_ns != 0)
        return true;
    if (!has_room(nomad, 1))
        return false;
    core_tell(core, &id, AE_AUTHORIZED, NULL);
    return true;
}

/* True if all that is listed has been carried out. */
static bool carry_out(struct nomad *nomad)
{
    const json_t *allocs = json_object_get(nomad->listing, "Allocs");
    struct mine *mine, *next;
    bool done = true;

    HASH_ITER(hh, nomad->mine, mine, next)
    {
        bool wanted = json_object_get(allocs, mine->id) != NULL;
        done = (wanted ? authorize(nomad, mine) : destroy(nomad, mine)) && done;
    }
    return done;
}

static void carried_out(struct nomad *nomad)
{
    if (!nomad->synced)
        say(&nomad->config.say, SAY_INFO, "server",
            "the servers have said what is to run allocs=%zu",
            json_object_size(json_object_get(nomad->listing, "Allocs")));
    nomad->index = (uint64_t)json_integer_value(json_object_get(nomad->listing, "Index"));
    nomad->synced = true;
    nomad->synced_losses = nomad->asked_losses;
    give_up(nomad);
    ask_in(nomad, nomad->index != 0 ? 0 : policy_ask_again_ms(draw(nomad))); /* it cannot wait */
    if (nomad->push_at_ms == 0)
        nomad->push_at_ms = nomad_now_ms(nomad); /* nothing was told before */
}

/* The outcome of a new version of an alloc, or of a new one. */
static enum place_outcome look_at(struct nomad *nomad, const json_t *alloc)
{
    const char *id = json_string_value(json_object_get(alloc, "ID"));
    struct lacking lacking;

    if (id != NULL)
        finding_drop(nomad, id);
    enum place_outcome outcome = place_alloc(nomad, alloc, NULL, &lacking);
    if (outcome == PLACE_LACKS)
        finding_begin(nomad, alloc, &lacking);
    return outcome;
}

/* What is older than what was listed is of a server that lags: it is as good as missing. */
static bool is_older(const struct nomad *nomad, const json_t *alloc)
{
    const char *id = json_string_value(json_object_get(alloc, "ID"));
    const json_t *listed =
        id == NULL ? NULL : json_object_get(json_object_get(nomad->listing, "Allocs"), id);

    return listed != NULL && json_integer_value(json_object_get(alloc, "AllocModifyIndex")) <
                                 json_integer_value(listed);
}

/* The allocs that were pulled, one after the other; false: the rest when there is room. */
static bool look_at_pulled(struct nomad *nomad)
{
    while (json_array_size(nomad->pulled) > 0) {
        size_t last = json_array_size(nomad->pulled) - 1;
        const json_t *alloc = json_array_get(nomad->pulled, last);

        if (!is_older(nomad, alloc) && look_at(nomad, alloc) == PLACE_NO_ROOM)
            return false;
        check(json_array_remove(nomad->pulled, last) == 0);
    }
    json_decref(nomad->pulled);
    nomad->pulled = NULL;
    return true;
}

/* Nothing of what was pulled has come: of a server that knows less than the one that listed it. */
static void wait_for_missing(struct nomad *nomad)
{
    give_up(nomad);
    ask_in(nomad, MISSING_MS);
}

/* A step of an answer that is there: it is looked at, more is pulled for it, or it is done. */
static void go_on(struct nomad *nomad)
{
    if (nomad->pulled != NULL && !look_at_pulled(nomad)) {
        ask_in(nomad, 1); /* after the turn that makes room */
        return;
    }
    struct wishes wishes = to_pull(nomad);
    if (wishes.total > 0 && wishes.total == nomad->missing)
        wait_for_missing(nomad);
    else if (wishes.total > 0)
        pull(nomad, &wishes);
    else if (carry_out(nomad))
        carried_out(nomad);
    else
        ask_in(nomad, 1);
    nomad->missing = nomad->listing == NULL ? 0 : wishes.total;
    json_decref(wishes.ids);
}

void allocs_wake(struct nomad *nomad)
{
    if (nomad->ask_at_ms == 0 || nomad->ask_at_ms > nomad_now_ms(nomad) || nomad->asking)
        return;
    nomad->ask_at_ms = 0;
    if (!nomad->registered)
        give_up(nomad);
    else if (nomad->listing != NULL)
        go_on(nomad);
    else
        ask(nomad);
}

/* --- contact --- */

static void tell_contact(struct nomad *nomad)
{
    struct core *core = life_core(nomad->config.life);
    struct mine *mine, *next;

    HASH_ITER(hh, nomad->mine, mine, next)
    {
        struct machine_id id = machine_id_make(MACHINE_ALLOC, mine->id);
        if (mine->minds_contact && core_alloc(core, mine->id) != NULL && has_room(nomad, 1))
            core_tell(core, &id, AE_CONTACT, NULL);
    }
}

void allocs_elsewhere(struct nomad *nomad)
{
    servers_abandon(nomad, "Node.GetClientAllocs");
}

void allocs_heard(struct nomad *nomad)
{
    if (nomad->contacted > 0)
        tell_contact(nomad);
    if (!nomad->asking && (nomad->ask_at_ms == 0 || nomad->listing == NULL))
        ask_in(nomad, 0);
}
