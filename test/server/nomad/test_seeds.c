/*
 * The client of servers against servers that do what servers do, in orders that nobody chose: they
 * add, stop and forget allocs, forget the node, answer late, with what they knew earlier, or not at
 * all, of which nobody knows whether it was done; payloads end, and the daemon dies.
 *
 * Some of what they want takes the place of allocs on other nodes, which end when they like.
 *
 * However it went, nothing runs that was never wanted, nobody begins while the alloc whose place it
 * takes still runs, nobody who is over runs again, and when all
 * answer again the node runs what they want, and they know what became of all they have.
 */
#include "test/server/nomad/small_session.h"

#include "base/rng.h"

#define ELSEWHERE "eeeeeeee-eeee-4eee-8eee-"

enum { SEEDS = 500, STEPS = 250, ALLOCS_MAX = 12, QUIET_ROUNDS = 400 };

/* An alloc as servers have it. */
struct theirs {
    char id[UUID_TEXT_SIZE];
    int index;
    bool is_known, stops; /* not forgotten; to be stopped */
    char status[16];      /* that they have heard */
    bool was_over;        /* the node has ended it */
    int elsewhere;        /* number of the alloc of another node whose place it takes; 0: none */
};

struct theirs_list {
    struct theirs items[ALLOCS_MAX];
    size_t count;
    int index; /* of the newest change of an alloc, or of what is known of one */
    int ended; /* allocs of other nodes up to this one have ended */
};

struct seeded {
    struct small_session *session;
    struct rng rng;
    struct theirs_list now, earlier; /* what the leader has, and a follower */
    bool knows_node, is_ready;
    uint64_t seed, numbers;
};

static bool chance(struct seeded *seeded, uint64_t one_in)
{
    return rng_below(&seeded->rng, one_in) == 0;
}

/* --- what they have --- */

static struct theirs *theirs_of(struct theirs_list *list, const char *id)
{
    for (size_t i = 0; i < list->count; i++) {
        if (text_equal(list->items[i].id, id))
            return &list->items[i];
    }
    return NULL;
}

static void add_alloc(struct seeded *seeded)
{
    struct theirs_list *list = &seeded->now;

    if (list->count == ALLOCS_MAX || !seeded->knows_node)
        return;
    struct theirs *theirs = &list->items[list->count++];
    *theirs = (struct theirs){.index = ++list->index, .is_known = true, .status = "pending"};
    seeded->numbers++;
    if (chance(seeded, 2))
        theirs->elsewhere = (int)seeded->numbers;
    uuid_format(theirs->id, hash_u64(1, seeded->numbers), hash_u64(2, seeded->numbers));
}

static void change_alloc(struct seeded *seeded)
{
    struct theirs_list *list = &seeded->now;
    struct theirs *theirs =
        list->count == 0 ? NULL : &list->items[rng_below(&seeded->rng, list->count)];

    if (theirs == NULL || !theirs->is_known)
        return;
    theirs->index = ++list->index;
    if (chance(seeded, 3)) /* else it goes on by a newer version, which nobody minds */
        theirs->stops = true;
    else if (chance(seeded, 4))
        theirs->is_known = false;
}

/* Its allocs are lost for them, and others have been placed elsewhere. */
static void forget_node(struct seeded *seeded)
{
    seeded->knows_node = seeded->is_ready = false;
    for (size_t i = 0; i < seeded->now.count; i++) {
        seeded->now.items[i].stops = true;
        seeded->now.items[i].index = ++seeded->now.index;
    }
}

/* One more alloc of another node has ended. */
static void end_elsewhere(struct seeded *seeded)
{
    if (seeded->now.ended < (int)seeded->numbers) {
        seeded->now.ended++;
        seeded->now.index++;
    }
}

/* --- what they answer --- */

static json_t *listed(const struct theirs_list *list)
{
    json_t *allocs = json_object();

    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].is_known)
            assert_int_equal(
                json_object_set_new(allocs, list->items[i].id, json_integer(list->items[i].index)),
                0);
    }
    return json_pack("{s:i, s:o}", "Index", list->index, "Allocs", allocs);
}

static json_t *pulled(struct theirs_list *list, const json_t *ids)
{
    json_t *allocs = json_array(), *id;
    size_t i;

    json_array_foreach(ids, i, id)
    {
        const struct theirs *theirs = theirs_of(list, json_string_value(id));
        if (theirs == NULL || !theirs->is_known)
            continue;
        json_t *alloc =
            alloc_json(theirs->id, theirs->index, theirs->stops ? "stop" : "run", "/bin/a");
        assert_int_equal(json_object_set_new(alloc, "ClientStatus", json_string(theirs->status)),
                         0);
        if (theirs->elsewhere != 0)
            assert_int_equal(
                json_object_set_new(alloc, "PreviousAllocation",
                                    json_sprintf(ELSEWHERE "%012d", theirs->elsewhere)),
                0);
        assert_int_equal(json_array_append_new(allocs, alloc), 0);
    }
    return json_pack("{s:i, s:o}", "Index", list->index, "Allocs", allocs);
}

/* What is known of the alloc ID of another node. */
static json_t *seen_elsewhere(const struct theirs_list *list, const char *id)
{
    uint64_t number;

    assert_true(text_starts_with(id, ELSEWHERE));
    assert_true(text_to_u64(id + strlen(ELSEWHERE), &number));
    return json_pack("{s:i, s:{s:s, s:s}}", "Index", list->index, "Alloc", "ID", id, "ClientStatus",
                     (int)number <= list->ended ? "complete" : "running");
}

static bool is_over(const char *status)
{
    return text_equal(status, "complete") || text_equal(status, "failed");
}

static void hear(struct seeded *seeded, const json_t *args)
{
    const json_t *told;
    size_t i;

    json_array_foreach(json_object_get(args, "Alloc"), i, told)
    {
        struct theirs *theirs = theirs_of(&seeded->now, word_of(told, "ID"));
        const char *status = word_of(told, "ClientStatus");
        if (theirs == NULL)
            continue;
        assert_false(is_over(theirs->status) && !is_over(status)); /* nobody comes back */
        (void)text_copy(theirs->status, sizeof(theirs->status), status);
    }
    seeded->now.index++;
}

/* What a server does that takes the call; NULL: it refuses, as TEXT says. */
static json_t *reply_of(struct seeded *seeded, const struct waiting *call, const char **ret_text)
{
    bool may_lag = json_is_true(json_object_get(call->args, "AllowStale"));
    struct theirs_list *list = may_lag && chance(seeded, 3) ? &seeded->earlier : &seeded->now;

    *ret_text = "node not found";
    if (text_equal(call->method, "Node.Register")) {
        seeded->knows_node = true;
        return node_reply(1);
    }
    if (text_equal(call->method, "Node.UpdateStatus")) {
        bool was_ready = seeded->is_ready;
        seeded->is_ready = seeded->knows_node;
        return seeded->knows_node ? node_reply(was_ready ? 0 : list->index) : NULL;
    }
    if (!seeded->knows_node && text_equal(call->method, "Node.UpdateAlloc"))
        return NULL;
    if (text_equal(call->method, "Alloc.GetAlloc"))
        return seen_elsewhere(list, word_of(call->args, "AllocID"));
    if (!seeded->knows_node) /* lists nothing, without an error */
        return json_pack("{s:i, s:{}}", "Index", list->index, "Allocs");
    if (text_equal(call->method, "Node.GetClientAllocs"))
        return listed(list);
    if (text_equal(call->method, "Alloc.GetAllocs"))
        return pulled(list, json_object_get(call->args, "AllocIDs"));
    assert_string_equal(call->method, "Node.UpdateAlloc");
    hear(seeded, call->args);
    return json_pack("{s:i}", "Index", seeded->now.index);
}

/* A question that nothing has changed since: its server still waits. */
static bool still_blocks(struct seeded *seeded, const struct waiting *call)
{
    json_int_t asked = json_integer_value(json_object_get(call->args, "MinQueryIndex"));

    return (text_equal(call->method, "Node.GetClientAllocs") ||
            text_equal(call->method, "Alloc.GetAlloc")) &&
           asked != 0 && seeded->now.index <= asked;
}

static void take_at(struct small_session *session, size_t at, struct waiting *ret_call)
{
    *ret_call = session->calls[at];
    memmove(&session->calls[at], &session->calls[at + 1],
            (session->calls_count - at - 1) * sizeof(*session->calls));
    session->calls_count--;
}

static void finish_call(struct waiting *call, json_t *reply, int code, const char *text)
{
    struct err err = {0};

    if (reply == NULL)
        (void)err_set(&err, code, "%s", text);
    call->cb(call->ctx, reply, reply == NULL ? &err : NULL);
    json_decref(reply);
    json_decref(call->args);
}

/* The call number AT ends: well, refused, or with a connection that is lost before or after it was
 * done. */
static void answer_at(struct seeded *seeded, size_t at, bool faults)
{
    struct waiting call;
    const char *text;

    take_at(seeded->session, at, &call);
    if (faults && chance(seeded, 6)) {
        finish_call(&call, NULL, ERR_AGAIN, "nobody listens");
        return;
    }
    json_t *reply = reply_of(seeded, &call, &text);
    if (faults && reply != NULL && chance(seeded, 6)) {
        json_decref(reply);
        finish_call(&call, NULL, ERR_IO, "the connection is lost");
        return;
    }
    finish_call(&call, reply, ERR_REFUSED, text);
}

/* --- what happens here --- */

static void end_payload(struct seeded *seeded)
{
    const struct theirs *theirs =
        seeded->now.count == 0 ? NULL
                               : &seeded->now.items[rng_below(&seeded->rng, seeded->now.count)];
    struct core *core = life_core(seeded->session->small->life);
    const struct task *task = theirs == NULL ? NULL : core_task(core, theirs->id, "web");
    struct exited ended = {.known = 1, .code = 1};

    if (task == NULL || task->machine.state != T_RUNNING)
        return;
    struct machine_id id = machine_id_join(MACHINE_TASK, theirs->id, "web");
    core_news(core, &id, task->machine.generation, TE_EXITED, &ended);
}

/* Something of it is done. */
static bool has_begun(const struct seeded *seeded, const char *id)
{
    const struct alloc *alloc = here(seeded->session, id);

    return alloc->machine.state == A_PREPARING || alloc->machine.state == A_MOUNTING ||
           alloc->machine.state == A_RUNNING;
}

/* What must hold at any time. */
static void look(struct seeded *seeded)
{
    for (size_t i = 0; i < seeded->now.count; i++) {
        struct theirs *theirs = &seeded->now.items[i];
        const struct alloc *alloc = here(seeded->session, theirs->id);

        if (alloc == NULL)
            continue;
        if (theirs->elsewhere > seeded->now.ended && has_begun(seeded, theirs->id))
            fail_msg("seed %llu: %s overlaps", (unsigned long long)seeded->seed, theirs->id);
        if (theirs->was_over && alloc->ended_unix_ns == 0)
            fail_msg("seed %llu: %s is back", (unsigned long long)seeded->seed, theirs->id);
        theirs->was_over |= alloc->ended_unix_ns != 0;
    }
}

static bool count_one(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct seeded *seeded = ctx;

    (void)record;
    assert_non_null(theirs_of(&seeded->now, id->text)); /* somebody has wanted it */
    return true;
}

static void step(struct seeded *seeded)
{
    struct small_session *session = seeded->session;

    switch (rng_below(&seeded->rng, 13)) {
    case 0:
        add_alloc(seeded);
        break;
    case 1:
        change_alloc(seeded);
        break;
    case 2:
        seeded->earlier = seeded->now;
        break;
    case 3:
        end_payload(seeded);
        break;
    case 4:
        if (chance(seeded, 6))
            restart(session);
        break;
    case 5:
        if (chance(seeded, 8))
            forget_node(seeded);
        break;
    case 6:
        end_elsewhere(seeded);
        break;
    case 7:
    case 8:
        pass(session, 1 + rng_below(&seeded->rng, 4000));
        break;
    default:
        if (session->calls_count > 0) {
            size_t at = rng_below(&seeded->rng, session->calls_count);
            if (!still_blocks(seeded, &session->calls[at]) || chance(seeded, 10))
                answer_at(seeded, at, true);
        }
    }
    pass(session, 0);
    look(seeded);
    core_each(life_core(session->small->life), MACHINE_ALLOC, count_one, seeded);
}

/* All answer, and nothing happens any more. */
static void settle(struct seeded *seeded)
{
    struct small_session *session = seeded->session;

    while (seeded->now.ended < (int)seeded->numbers)
        end_elsewhere(seeded);
    for (int round = 0; round < QUIET_ROUNDS; round++) {
        for (size_t at = 0; at < session->calls_count;) {
            if (still_blocks(seeded, &session->calls[at])) {
                at++;
                continue;
            }
            seeded->earlier = seeded->now;
            answer_at(seeded, at, false);
            pass(session, 0);
            at = 0;
        }
        pass(session, 500);
        look(seeded);
    }
}

static void compare(struct seeded *seeded)
{
    unsigned long long seed = seeded->seed;

    for (size_t i = 0; i < seeded->now.count; i++) {
        const struct theirs *theirs = &seeded->now.items[i];
        const struct alloc *alloc = here(seeded->session, theirs->id);
        const char *status =
            alloc == NULL ? "none" : client_status_name((enum client_status)alloc->client_status);
        bool runs = alloc != NULL && alloc->machine.state == A_RUNNING;
        bool should = theirs->is_known && !theirs->stops && !is_over(theirs->status);

        if (runs != should)
            fail_msg("seed %llu: %s runs %d and should %d", seed, theirs->id, runs, should);
        if (theirs->is_known && alloc != NULL && !text_equal(theirs->status, status))
            fail_msg("seed %llu: %s is %s, and they think %s", seed, theirs->id, status,
                     theirs->status);
        if (!theirs->is_known && alloc != NULL)
            fail_msg("seed %llu: %s is left", seed, theirs->id);
    }
}

static void test_however_it_went_both_sides_agree_in_the_end(void **state)
{
    const char *only = getenv("CAIRN_SEED");

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct seeded seeded = {.seed = only == NULL ? seed : strtoull(only, NULL, 10),
                                .now = {.index = 5}};
        void *session;

        seeded.rng = rng_init(seeded.seed);

        assert_int_equal(open_session(&session), 0);
        seeded.session = session;
        for (int i = 0; i < STEPS; i++)
            step(&seeded);
        settle(&seeded);
        compare(&seeded);
        (void)close_session(&session); /* what it returns is asserted within */
        if (only != NULL)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_however_it_went_both_sides_agree_in_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
