/*
 * Every field of every machine in every state it is ever stored in, set to every odd value.
 *
 * A node runs two allocs, and their records are kept whenever a machine of the first one reaches a
 * state that was not seen before.  Then, for each field of that machine's record and each value
 * that makes little sense there, the daemon is started from those records four times, asked what is
 * asked of it, and told to stop and to remove the alloc.  Whatever the value was: nothing fails an
 * assertion, the other alloc runs on untouched, no payload outlives its alloc, none runs twice.
 *
 * Built as debug, clang-asan: same_worlds.py says that builds do the same.
 */
#include "test/core/seam.h"

#include "fsm/policy.h"
#include "inspect/fields.h"

#include <setjmp.h>

enum { RESTARTS = 4, TURNS_MAX = 400, SEEN_MAX = 64, PAYLOADS = 4 };

struct payload {
    struct machine_id id;
    uint32_t generation; /* that runs, 0: none */
    uint32_t starts, doubles;
};

/* The records when one of them had come to a new state. */
struct seen {
    struct machine_id id; /* the one */
    uint8_t state;
    struct seam_record records[8];
    struct payload payloads[PAYLOADS];
    size_t count;
    uint64_t now_ms, sequence, turn;
};

/* The case under way. */
struct attempt {
    const struct seen *seen;
    struct seam *seam;
    char path[160];
    sigjmp_buf place;
    char broken[256];
    bool trying;
    const struct seen *lost; /* one was tried whose record is put aside */
};

static struct attempt at;
static size_t cases, believed, wrongs;

/* Ends the case under way: one line for each tells more than the first of them. */
#define WRONG(...)                                                                                 \
    do {                                                                                           \
        (void)text_format(at.broken, sizeof(at.broken), __VA_ARGS__);                              \
        if (!at.trying)                                                                            \
            fail_msg("%s", at.broken);                                                             \
        siglongjmp(at.place, 1);                                                                   \
    } while (0)

/* --- the world: what really runs --- */

static struct payload payloads[PAYLOADS];
static bool sweep_wanted, plugin_wanted;

static struct payload *payload_of(const struct machine_id *id)
{
    for (size_t i = 0; i < PAYLOADS; i++) {
        if (payloads[i].id.text[0] == '\0')
            payloads[i].id = *id;
        if (machine_id_equal(&payloads[i].id, id))
            return &payloads[i];
    }
    fail_msg("no room for %s", id->text);
    return NULL;
}

/* The first completion of an effect is the one that tells of success. */
static uint8_t success_of(const struct effect *effect)
{
    uint64_t completions =
        fsm_definition((enum machine_kind)effect->id.kind)->effects[effect->kind].completions;

    check(completions != 0);
    return (uint8_t)__builtin_ctzll(completions);
}

static void answer_driver(struct seam *seam, const struct effect *effect)
{
    struct payload *payload = payload_of(&effect->id);
    const struct started started = {.payload_pid = 100, .payload_ticks = 1, .shim_pid = 99};
    const struct failure lost = {.code = ERR_GONE, .untouched = 1};
    const struct exited ended = {.known = 1, .code = 143, .signal = 15};

    if (effect->kind == TX_DRIVER_START) {
        payload->doubles += payload->generation != 0 && payload->generation != effect->generation;
        payload->starts++;
        payload->generation = effect->generation;
        core_done(seam->core, &effect->id, LANE_DRIVER, TE_STARTED, &started);
    } else if (effect->kind == TX_DRIVER_RECOVER) {
        bool lives = payload->generation == effect->generation;
        core_done(seam->core, &effect->id, LANE_DRIVER, lives ? TE_RECOVERED : TE_LOST,
                  lives ? (const void *)&started : &lost);
    } else if (effect->kind == TX_DRIVER_STOP) {
        payload->generation = 0;
        core_done(seam->core, &effect->id, LANE_DRIVER, TE_STOP_ACCEPTED, NULL);
        core_news(seam->core, &effect->id, effect->generation, TE_EXITED, &ended);
    } else if (effect->kind == TX_DRIVER_DESTROY) {
        payload->generation = 0;
        core_done(seam->core, &effect->id, LANE_DRIVER, TE_REAPED, NULL);
    } else {
        core_done(seam->core, &effect->id, LANE_DRIVER, success_of(effect), NULL);
    }
}

static void answer(void *ctx, const struct effect *effect)
{
    struct seam *seam = ctx;
    static uint8_t nothing[FSM_PAYLOAD_BYTES_MAX] __attribute__((aligned(16)));
    const struct plugin_identity identity = {.healthy = 1, .staging = 1};
    const struct fsm_def *def = fsm_definition((enum machine_kind)effect->id.kind);

    if (effect->lane >= LANE_COUNT)
        return;
    if (effect->id.kind == MACHINE_TASK && effect->lane == LANE_DRIVER) {
        answer_driver(seam, effect);
        return;
    }
    uint8_t event = success_of(effect);
    const void *payload =
        def->events[event].payload == PAYLOAD_IDENTITY ? (const void *)&identity : nothing;
    core_done(seam->core, &effect->id, (enum fsm_lane)effect->lane, event, payload);
}

static void put_aside(void *ctx, const struct machine_id *id, const char *why)
{
    struct seam *seam = ctx;
    struct seam_record *stored = seam_stored(seam, id);

    assert_true(why[0] != '\0');
    free(stored->record);
    stored->record = NULL;
    sweep_wanted = true;
}

static void refuse(void *ctx, uint64_t reply, const struct err *err)
{
    (void)ctx;
    (void)reply;
    assert_true(err->code < 0);
}

static void sweep(struct seam *seam)
{
    sweep_wanted = false;
    for (size_t i = 0; i < PAYLOADS; i++) {
        const struct task *task = seam_task(seam, payloads[i].id.text);
        if (payloads[i].generation != 0 &&
            (task == NULL || task->machine.generation != payloads[i].generation ||
             !task_holds_work(task)))
            payloads[i].generation = 0;
    }
    core_swept(seam->core, true);
}

/* --- the node --- */

static void begin(struct seam *seam)
{
    struct world world = {
        .ctx = seam,
        .commit = seam_commit,
        .perform = answer,
        .refuse = refuse,
        .known = seam_known,
        .claim = seam_claim,
        .put_aside = put_aside,
    };

    core_free(seam->core);
    seam->core = core_new(&world);
}

static bool look_at_deadline(void *ctx, const struct machine_id *id, const struct machine *record)
{
    uint64_t *latest_ms = ctx;

    if (id->text[0] == 'a' && record->deadline_ms > *latest_ms)
        *latest_ms = record->deadline_ms;
    return true;
}

/* When the last of what alloc a waits for is due: others may be probed a thousand times until then.
 */
static uint64_t latest_deadline_ms(const struct seam *seam)
{
    uint64_t latest_ms = 0;

    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        core_each(seam->core, (enum machine_kind)kind, look_at_deadline, &latest_ms);
    return latest_ms;
}

/* Turns until nothing is left to do, sooner or later. */
static void settle(struct seam *seam, uint64_t until_ms)
{
    bool gone = until_ms == DURATION_MS_MAX; /* only that is waited for */
    struct err err;

    for (int turns = 0; turns < TURNS_MAX; turns++) {
        seam->crossed[0] = '\0';
        assert_int_equal(core_turn(seam->core, seam->now_ms, 1, ++seam->seed, &err), 0);
        if (sweep_wanted)
            sweep(seam);
        if (core_has_work(seam->core))
            continue;
        uint64_t next_ms = core_deadline_ms(seam->core);
        if (next_ms == 0 || next_ms > until_ms || (gone && core_alloc(seam->core, "a") == NULL))
            return;
        if (gone && latest_deadline_ms(seam) > next_ms)
            next_ms = latest_deadline_ms(seam);
        seam->now_ms = next_ms > seam->now_ms ? next_ms : seam->now_ms;
    }
    WRONG("%d turns, and still something to do", TURNS_MAX);
}

static void flat(void *ctx, const char *path, const char *text, const char *doc, bool zero)
{
    (void)path;
    (void)doc;
    *(size_t *)ctx += strlen(text) + zero;
}

/* What the API and the inspector print of a machine. */
static void read_machine(const struct machine_id *id, const struct machine *record)
{
    static FILE *to;
    char message[512];
    size_t size = 0;

    if (to == NULL)
        to = fopen("/dev/null", "w");
    check(to != NULL);
    inspect_json_record(to, id, record, false);
    inspect_walk(record, false, flat, &size);
    check(size > 0);
    if (id->kind == MACHINE_TASK) {
        for (int i = 0; i < task_of(record)->events_count; i++)
            task_event_message(&task_of(record)->events[i], message, sizeof(message));
    } else if (id->kind == MACHINE_ALLOC) {
        const char *description;
        const struct alloc_assign *assign = &alloc_of(record)->assign;
        (void)policy_client_status(alloc_of(record), &description);
        check(text_is_utf8(assign->namespace, strlen(assign->namespace)));
        check(text_is_utf8(assign->job_id, strlen(assign->job_id)));
        check(text_is_utf8(assign->group, strlen(assign->group)));
        for (uint32_t i = 0; i < assign->members_count; i++)
            check(text_is_utf8(assign->members[i].name, strlen(assign->members[i].name)));
    }
}

/* Those that know of what was changed. */
static void read_machines(struct seam *seam)
{
    static const char *const ids[MACHINE_KIND_COUNT] = {[MACHINE_PLUGIN] = "csi/disks",
                                                        [MACHINE_VOLUME] = "a/data",
                                                        [MACHINE_TASK] = "a/web",
                                                        [MACHINE_ALLOC] = "a"};

    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        struct machine_id id = seam_id((enum machine_kind)kind, ids[kind]);
        const struct machine *record = core_find(seam->core, &id);
        if (record != NULL && (kind == MACHINE_ALLOC || machine_id_equal(&id, &at.seen->id)))
            read_machine(&id, record);
    }
}

/* As core/life/restart.c: what makes no sense is put aside, the rest is believed. */
static void restart(struct seam *seam)
{
    begin(seam);
    for (size_t i = 0; i < seam->journal_count; i++) {
        struct seam_record *item = &seam->journal[i];
        if (item->record == NULL)
            continue;
        if (fsm_senseless(&item->id, item->record) == NULL)
            core_load(seam->core, &item->id, item->record);
        else
            put_aside(seam, &item->id, "senseless");
    }
    core_continue(seam->core, seam->sequence + 1, seam->turn);
    core_restore(seam->core, true, false);
    core_adopt(seam->core, "a"); /* its specification is there */
    if (plugin_wanted)
        seam_tell(seam, MACHINE_PLUGIN, "csi/disks", PE_DEFINE,
                  &(struct plugin_define){.type = PLUGIN_CSI_NODE, .plugin = "disks"});
    sweep_wanted = true;
    settle(seam, seam->now_ms + 5000);
}

/* --- records of every state --- */

static struct seen *seen;
static size_t seen_count;

static bool is_seen(const struct machine_id *id, uint8_t state)
{
    for (size_t i = 0; i < seen_count; i++) {
        if (seen[i].id.kind == id->kind && seen[i].state == state)
            return true;
    }
    return false;
}

/* Before the commit has its effects: what is stored is what a crash would find. */
static void look(struct seam *seam, const struct journal_batch *batch)
{
    for (size_t r = 0; r < batch->records_count; r++)
        seam_store(seam, &batch->records[r]);
    for (size_t r = 0; r < batch->records_count; r++) {
        const struct journal_record *stored = &batch->records[r];
        if (stored->record == NULL || stored->id.text[0] == 'b' || seen == NULL ||
            is_seen(&stored->id, stored->record->state))
            continue;
        assert_in_range(seen_count, 0, SEEN_MAX - 1);
        struct seen *found = &seen[seen_count++];
        *found = (struct seen){.id = stored->id,
                               .state = stored->record->state,
                               .now_ms = seam->now_ms,
                               .sequence = seam->sequence + batch->events_count,
                               .turn = seam->turn + 1};
        memcpy(found->payloads, payloads, sizeof(payloads));
        for (size_t i = 0; i < seam->journal_count; i++) {
            const struct seam_record *item = &seam->journal[i];
            if (item->record == NULL)
                continue;
            assert_in_range(found->count, 0, COUNT_OF(found->records) - 1);
            struct seam_record *copy = &found->records[found->count++];
            copy->id = item->id;
            copy->record = calloc(1, FSM_RECORD_BYTES_MAX);
            assert_non_null(copy->record);
            memcpy(copy->record, item->record, fsm_record_size(item->record));
        }
    }
}

static void place(struct seam *seam, const char *alloc, bool whole)
{
    struct alloc_assign *assign = calloc(1, sizeof(*assign) + 4 * sizeof(assign->members[0]));
    struct task_define define = {
        .restart_interval_ms = 60000,
        .restart_delay_ms = 1000,
        .restart_attempts = 2,
        .kill_timeout_ms = 3000,
        .may_start = 1,
        .driver = "mock",
    };

    assert_non_null(assign);
    *assign = (struct alloc_assign){.may_start = 1,
                                    .namespace = "default",
                                    .job_id = "job",
                                    .group = "group",
                                    .hooks_prerun = 1,
                                    .hooks_prekill = whole,
                                    .hooks_postrun = 1,
                                    .hooks_destroy = 1,
                                    .shutdown_delay_ms = whole ? 50 : 0};
    if (whole)
        (void)text_copy(assign->previous, sizeof(assign->previous), "before");
    assign->members[0] = (struct alloc_member){.kind = MEMBER_TASK, .name = "web"};
    assign->members[1] =
        (struct alloc_member){.kind = MEMBER_TASK, .lifecycle = LIFECYCLE_POSTSTOP, .name = "end"};
    assign->members[2] = (struct alloc_member){.kind = MEMBER_VOLUME, .name = "data"};
    assign->members_count = whole ? 3 : 1;
    seam_tell(seam, MACHINE_ALLOC, alloc, AE_ASSIGN, assign);
    free(assign);
    if (whole) {
        define.hooks_prestart = define.hooks_poststart = define.hooks_prekill = 7;
        define.hooks_exited = define.hooks_stop = 7;
        define.shutdown_delay_ms = 20;
        const struct volume_define volume = {.plugin = "disks", .volume = "disk"};
        const struct plugin_define plugin = {.type = PLUGIN_CSI_NODE, .plugin = "disks"};
        seam_tell(seam, MACHINE_PLUGIN, "csi/disks", PE_DEFINE, &plugin);
        seam_tell(seam, MACHINE_VOLUME, "a/data", VE_DEFINE, &volume);
    }
    struct machine_id id = machine_id_join(MACHINE_TASK, alloc, "web");
    core_tell(seam->core, &id, TE_DEFINE, &define);
    if (!whole)
        return;
    id = machine_id_join(MACHINE_TASK, alloc, "end");
    define.lifecycle = LIFECYCLE_POSTSTOP;
    core_tell(seam->core, &id, TE_DEFINE, &define);
}

/* Two allocs live, one of them through all that can be; its journal is looked at. */
static void live(struct seam *seam)
{
    memset(payloads, 0, sizeof(payloads));
    begin(seam);
    seam->looks = look;
    place(seam, "b", false);
    settle(seam, 0);
    place(seam, "a", true);
    settle(seam, seam->now_ms + 100);
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "a"), A_RUNNING);
    payload_of(&(struct machine_id){.kind = MACHINE_TASK, .text = "a/web"})->generation = 0;
    seam_exited(seam, "a/web", 1, 1); /* backs off and starts again */
    settle(seam, seam->now_ms + 5000);
    restart(seam);
    seam_ask(seam, MACHINE_ALLOC, "a", AE_STOP, 0);
    settle(seam, seam->now_ms + 20000);
    restart(seam);
    seam_ask(seam, MACHINE_ALLOC, "a", AE_DESTROY, 0);
    settle(seam, seam->now_ms + 200000);
    assert_null(core_alloc(seam->core, "a"));
    seam_tell(seam, MACHINE_PLUGIN, "csi/disks", PE_REMOVE, NULL);
    settle(seam, seam->now_ms + 20000);
    plugin_wanted = true; /* from now on, whatever becomes of its record */
    seam->looks = NULL;
}

/* --- one case --- */

static void on_assertion(void *ctx, const char *file, int line, const char *text)
{
    (void)ctx;
    (void)text_format(at.broken, sizeof(at.broken), "%s:%d: %s", file, line, text);
    siglongjmp(at.place, 1);
}

static void expect_neighbour(struct seam *seam, const struct payload *before)
{
    struct payload *payload =
        payload_of(&(struct machine_id){.kind = MACHINE_TASK, .text = "b/web"});

    if (seam_state(seam, MACHINE_ALLOC, "b") != A_RUNNING ||
        seam_state(seam, MACHINE_TASK, "b/web") != T_RUNNING ||
        payload->generation != before->generation || payload->starts != before->starts)
        WRONG("its neighbour is not as it was");
}

static void expect_end(struct seam *seam, bool gone)
{
    const struct alloc *alloc = core_alloc(seam->core, "a");

    for (size_t i = 0; i < PAYLOADS; i++) {
        if (payloads[i].doubles > 0)
            WRONG("%s ran twice at once", payloads[i].id.text);
        if (payloads[i].id.text[0] == 'a' && payloads[i].generation != 0)
            WRONG("%s outlives its alloc", payloads[i].id.text);
    }
    if (gone && alloc != NULL)
        WRONG("the alloc was to go and is %s", fsm_state_name(&alloc_def, alloc->machine.state));
}

static void try_lives(struct seam *seam)
{
    const struct payload before =
        *payload_of(&(struct machine_id){.kind = MACHINE_TASK, .text = "b/web"});

    for (int i = 0; i < RESTARTS; i++) {
        restart(seam);
        if (i == 0)
            read_machines(seam);
        expect_neighbour(seam, &before);
    }
    seam_ask(seam, MACHINE_ALLOC, "a", AE_STOP, 0);
    settle(seam, seam->now_ms + 20000);
    seam_ask(seam, MACHINE_ALLOC, "a", AE_DESTROY, 0);
    /* Else a volume may wait for its plugin, as long as there is no such plugin. */
    bool plugged = at.seen->id.kind != MACHINE_PLUGIN && strstr(at.path, ".plugin =") == NULL;
    settle(seam, plugged ? DURATION_MS_MAX : seam->now_ms + 200000); /* as long as may be */
    expect_neighbour(seam, &before);
    expect_end(seam, plugged);
}

/* RECORD is the one that was changed. */
static void try_case(const struct machine *record)
{
    struct seam *seam = at.seam;
    const struct seen *found = at.seen;
    struct check_guard guard;

    cases++;
    bool sensible = fsm_senseless(&found->id, record) == NULL;
    if (!sensible && at.lost == found)
        return; /* none of it is seen: one that is put aside is as good as another */
    if (!sensible)
        at.lost = found;
    believed += sensible;
    for (size_t i = 0; i < seam->journal_count; i++) {
        free(seam->journal[i].record);
        seam->journal[i].record = NULL;
    }
    seam->journal_count = 0;
    for (size_t i = 0; i < found->count; i++) {
        bool changed = machine_id_equal(&found->records[i].id, &found->id);
        const struct machine *from = changed ? record : found->records[i].record;
        size_t size = changed ? FSM_RECORD_BYTES_MAX : fsm_record_size(from);
        struct seam_record *to = &seam->journal[seam->journal_count++];
        to->id = found->records[i].id;
        to->record = calloc(1, size);
        assert_non_null(to->record);
        memcpy(to->record, from, size);
    }
    seam->now_ms = found->now_ms;
    seam->sequence = found->sequence;
    seam->turn = found->turn;
    memcpy(payloads, found->payloads, sizeof(payloads));
    check_guard_push(&guard, on_assertion, NULL);
    at.trying = true;
    if (sigsetjmp(at.place, 0) == 0) {
        try_lives(seam);
    } else {
        print_error("%s: %s\n", at.path, at.broken);
        wrongs++;
    }
    at.trying = false;
    check_guard_pop(&guard);
}

/* --- every field, every value --- */

static struct machine *changed; /* FSM_RECORD_BYTES_MAX */

static void try_bytes(void *field, size_t size, const void *value, const char *name,
                      const char *what)
{
    uint8_t before[VOLUME_NAME_SIZE];

    assert_in_range(size, 1, sizeof(before));
    memcpy(before, field, size);
    if (memcmp(before, value, size) == 0)
        return;
    memcpy(field, value, size);
    (void)text_format(
        at.path, sizeof(at.path), "%s %s in %s: %s = %s",
        machine_kind_name((enum machine_kind)at.seen->id.kind), at.seen->id.text,
        fsm_state_name(fsm_definition((enum machine_kind)at.seen->id.kind), at.seen->state), name,
        what);
    try_case(changed);
    memcpy(field, before, size);
}

static void try_number(void *field, size_t size, const char *name)
{
    static const uint64_t odd[] = {0, 1,   2,          (uint64_t)1 << 31, (uint64_t)1 << 63,
                                   7, 254, UINT64_MAX, UINT64_MAX - 1};
    uint64_t most = size == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * size) - 1;
    char what[32];

    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        uint64_t value = odd[i] < UINT64_MAX - 1 ? odd[i] : odd[i] & most;
        if (value > most || (size > 1 && (value == 2 || value == 7 || value == 254)))
            continue; /* small ones are for enums */
        (void)text_format(what, sizeof(what), "%llx", (unsigned long long)value);
        try_bytes(field, size, &value, name, what);
    }
}

static void try_text(char *field, size_t size, const char *name)
{
    static const char *const odd[] = {"", "x", "..", "\xff\xfe"};
    char text[VOLUME_NAME_SIZE];

    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        (void)text_copy(text, sizeof(text), odd[i]);
        try_bytes(field, size, text, name, odd[i]);
    }
    memset(text, 'x', sizeof(text));
    try_bytes(field, size, text, name, "without an end");
}

static void try_shape(const struct shape *shape, uint8_t *base, const char *outer)
{
    char name[96];

    for (uint16_t i = 0; i < shape->fields_count; i++) {
        const struct field *field = &shape->fields[i];
        size_t sizes[] = {
            [VALUE_U64] = 8, [VALUE_I64] = 8, [VALUE_U32] = 4, [VALUE_I32] = 4, [VALUE_U8] = 1};
        (void)text_format(name, sizeof(name), "%s%s", outer, field->name);
        if (field->kind == VALUE_TEXT)
            try_text((char *)base + field->offset, field->size, name);
        else if (field->kind != VALUE_PAD && !text_equal(field->name, "members_count") &&
                 !text_equal(field->name, "events_count"))
            try_number(base + field->offset, sizes[field->kind], name);
    }
    for (uint16_t i = 0; i < shape->parts_count; i++) {
        const struct part *part = &shape->parts[i];
        if (part->count == PART_RESULTS)
            continue;
        uint32_t length = shape_part_length(part, base);
        for (uint32_t k = 0; k < length; k++) {
            (void)text_format(name, sizeof(name), "%s%s[%u].", outer, part->name, k);
            if (part->count != PART_U8 || k == 0) /* one task event is as good as another */
                try_shape(part->shape, base + part->offset + k * part->shape->size, name);
        }
    }
}

static void try_counts(void)
{
    struct task *task = (struct task *)(void *)changed;
    struct alloc *alloc = (struct alloc *)(void *)changed;
    static const uint32_t odd[] = {0, 1, 2, ALLOC_MEMBERS_MAX, ALLOC_MEMBERS_MAX + 1, UINT32_MAX};

    for (size_t i = 0; i < COUNT_OF(odd) && changed->kind == MACHINE_ALLOC; i++)
        try_bytes(&alloc->assign.members_count, 4, &odd[i], "members_count", "odd");
    for (size_t i = 0; i < COUNT_OF(odd) && changed->kind == MACHINE_TASK; i++) {
        try_bytes(&task->events_count, 1, &odd[i], "events_count", "odd");
        try_bytes(&task->results_bytes, 4, &odd[i], "results_bytes", "odd");
    }
}

static void try_head(void)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)changed->kind);

    for (unsigned state = 0; state <= def->states_count; state++) {
        uint8_t value = (uint8_t)state;
        try_bytes(&changed->state, 1, &value, "state", fsm_state_name(def, state));
    }
    try_number(&changed->lane_ticket[LANE_DRIVER], 4, "lane_ticket");
    try_number(&changed->lane_effect[LANE_HOOK], 1, "lane_effect");
    try_shape(shape_of_head(), (uint8_t *)changed, "");
}

static void test_every_field_is_odd_once(void **state)
{
    struct seam *seam = *state;
    unsigned states[MACHINE_KIND_COUNT] = {0};

    seen = calloc(SEEN_MAX, sizeof(*seen));
    changed = calloc(1, FSM_RECORD_BYTES_MAX);
    assert_non_null(seen);
    assert_non_null(changed);
    live(seam);
    at.seam = seam;
    for (size_t i = 0; i < seen_count; i++) {
        at.seen = &seen[i];
        states[seen[i].id.kind]++;
        for (size_t r = 0; r < seen[i].count; r++) {
            if (machine_id_equal(&seen[i].records[r].id, &seen[i].id))
                memcpy(changed, seen[i].records[r].record, FSM_RECORD_BYTES_MAX);
        }
        try_head();
        try_counts();
        try_shape(shape_of_record((enum machine_kind)changed->kind), (uint8_t *)changed, "");
    }
    print_message("%zu cases, %zu of them believed; %u states of plugins, %u of volumes, %u of "
                  "tasks, %u of allocs\n",
                  cases, believed, states[MACHINE_PLUGIN], states[MACHINE_VOLUME],
                  states[MACHINE_TASK], states[MACHINE_ALLOC]);
    for (size_t i = 0; i < seen_count; i++) {
        for (size_t r = 0; r < seen[i].count; r++)
            free(seen[i].records[r].record);
    }
    free(seen);
    free(changed);
    assert_int_equal(wrongs, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEAM_TEST(test_every_field_is_odd_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
