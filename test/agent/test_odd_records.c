/*
 * A whole node finds odd things in its journal: sealed records, jobs and specifications with values
 * that nobody's tables write.  It is started four times, and each time every list and every detail
 * is asked for over HTTP.  Nothing ends it, what is beside them runs on untouched, and all of it
 * can be purged.
 *
 * Some of all cases are tried, each chosen by its own name, so that they are the same when records
 * have got other fields; `test_odd_records all` tries each and takes minutes.
 */
#include "test/agent/nodes.h"

#include "core/attempt.h"
#include "inspect/fields.h"
#include "inspect/inspect.h"

enum { ALLOCS = 16, ROUNDS = 2, STARTS = 4, CASES_MAX = 4096, ONE_OF = 48 };

static bool exhaustive;

/* --- asking for all there is --- */

static void ask_any(struct nodes *nodes, const char *path)
{
    nodes_ask(nodes, 0, "GET", path, "");
    if (nodes->status != 200 && nodes->status != 404)
        fail_msg("%s: %d %s", path, nodes->status, nodes->body);
}

/* Everything of each id in the list at PATH, under the routes, which NULL ends. */
static void ask_each(struct nodes *nodes, const char *list, const char *const *routes)
{
    char path[512];
    json_t *items, *item;
    size_t i;

    ask_any(nodes, list);
    assert_int_equal(nodes->status, 200);
    items = json_loads(nodes->body, 0, NULL);
    if (items == NULL)
        fail_msg("%s is no JSON: %s", list, nodes->body);
    json_array_foreach(items, i, item)
    {
        const char *id = json_string_value(json_object_get(item, "ID"));
        for (const char *const *route = routes; *route != NULL; route++) {
            const char *hole = strchr(*route, '*');
            if (text_format(path, sizeof(path), "%.*s%s%s", (int)(hole - *route), *route, id,
                            hole + 1))
                ask_any(nodes, path);
        }
    }
    json_decref(items);
}

static void read_all(struct nodes *nodes)
{
    static const char *const lists[] = {
        "/v1/allocations?task_states=true&resources=true",
        "/v1/evaluations",
        "/v1/namespaces",
        "/v1/metrics",
        "/v1/agent/self",
        "/v1/client/stats",
    };
    static const char *const jobs[] = {"/v1/job/*",          "/v1/job/*/allocations",
                                       "/v1/job/*/summary",  "/v1/job/*/evaluations",
                                       "/v1/job/*/versions", NULL};
    static const char *const allocs[] = {"/v1/allocation/*", "/v1/client/allocation/*/stats",
                                         "/v1/client/fs/ls/*", NULL};
    static const char *const rest[] = {"/v1/node/*", "/v1/node/*/allocations", NULL};
    static const char *const evals[] = {"/v1/evaluation/*", NULL};

    for (size_t i = 0; i < COUNT_OF(lists); i++)
        ask_any(nodes, lists[i]);
    ask_each(nodes, "/v1/jobs", jobs);
    ask_each(nodes, "/v1/allocations", allocs);
    ask_each(nodes, "/v1/nodes", rest);
    ask_each(nodes, "/v1/evaluations", evals);
    nodes_ask(nodes, 0, "PUT", "/v1/search", "{\"Prefix\": \"\", \"Context\": \"all\"}");
    assert_int_equal(nodes->status, 200);
}

/* --- the neighbour --- */

static const struct task *neighbour(struct nodes *nodes, char ret_alloc[UUID_TEXT_SIZE])
{
    static struct machine_id id;
    json_t *allocs, *first;

    nodes_ask(nodes, 0, "GET", "/v1/job/sleeper/allocations", "");
    allocs = json_loads(nodes->body, 0, NULL);
    first = json_array_get(allocs, 0);
    assert_int_equal(json_array_size(allocs), 1);
    id = machine_id_join(MACHINE_TASK, json_string_value(json_object_get(first, "ID")), "t");
    (void)text_copy(ret_alloc, UUID_TEXT_SIZE, json_string_value(json_object_get(first, "ID")));
    json_decref(allocs);
    const struct machine *record = core_find(nodes->node[0].parts->core, &id);
    return record == NULL ? NULL : task_of(record);
}

static char neighbour_id[UUID_TEXT_SIZE];

static bool neighbour_runs(struct nodes *nodes)
{
    const struct task *task = core_task(nodes->node[0].parts->core, neighbour_id, "t");

    return task != NULL && task->machine.state == T_RUNNING;
}

/* --- four starts --- */

static void start_and_read(struct nodes *nodes, const struct task *before)
{
    for (int i = 0; i < STARTS; i++) {
        node_up(nodes, 0);
        nodes_run_until(nodes, neighbour_runs);
        read_all(nodes);
        const struct task *after = core_task(nodes->node[0].parts->core, neighbour_id, "t");
        assert_int_equal(after->process.payload_pid, before->process.payload_pid);
        assert_int_equal(after->process.payload_ticks, before->process.payload_ticks);
        assert_int_equal(after->restarts, 0);
        assert_int_equal(after->machine.generation, before->machine.generation);
        if (i < STARTS - 1)
            node_down(nodes, 0);
    }
}

static bool none_is_left(struct nodes *nodes)
{
    return core_count(nodes->node[0].parts->core, MACHINE_ALLOC) == 0 &&
           core_count(nodes->node[0].parts->core, MACHINE_TASK) == 0 &&
           core_count(nodes->node[0].parts->core, MACHINE_VOLUME) == 0;
}

/* By name, which may be one that no address can have. */
static bool purge_job(void *ctx, const struct alone_job *job)
{
    struct alone *alone = ctx;
    struct alone_evaluation evaluation;
    struct err err = {0};

    if (alone_deregister(alone, job->namespace, job->id, ALONE_PURGE, &evaluation, &err) != 0)
        fail_msg("%s", err.text);
    return true;
}

/* What is of no job is removed by itself. */
static bool destroy_alloc(void *ctx, const struct machine_id *id, const struct machine *record)
{
    const struct request request = {.text = "of no job"};

    if (alloc_of(record)->assign.job_id[0] != '\0')
        return true;
    core_tell(ctx, id, AE_STOP, &request);
    core_tell(ctx, id, AE_DESTROY, NULL);
    return true;
}

static void purge_all(struct nodes *nodes)
{
    struct parts *parts = nodes->node[0].parts;

    alone_each(parts->alone, purge_job, parts->alone);
    core_each(parts->core, MACHINE_ALLOC, destroy_alloc, parts->core);
    nodes_run_until(nodes, none_is_left);
}

/* --- odd records --- */

static void register_odd(struct nodes *nodes, const char *id, const char *type, const char *run,
                         const char *argument)
{
    char body[1024];

    assert_true(text_format(
        body, sizeof(body),
        "{\"Job\": {\"ID\": \"%s\", \"Name\": \"%s\", \"Type\": \"%s\", \"Datacenters\": [\"dc1\"],"
        " \"TaskGroups\": [{\"Name\": \"g\", \"Count\": %d, \"EphemeralDisk\": {\"SizeMB\": 110},"
        " \"ReschedulePolicy\": {\"Attempts\": 0, \"Unlimited\": false}, \"Tasks\": [{\"Name\":"
        " \"t\", \"Driver\": \"raw_exec\", \"Resources\": {\"CPU\": 1, \"MemoryMB\": 10},"
        " \"Config\": {\"command\": \"%s\", \"args\": [\"%s\"]}}]}]}}",
        id, id, type, ALLOCS / 2, run, argument));
    ask_api(nodes, 0, "PUT", "/v1/jobs", body);
}

struct settled {
    size_t running, dead;
};

static bool count_settled(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct settled *settled = ctx;

    (void)id;
    settled->running += record->state == T_RUNNING;
    settled->dead += record->state == T_DEAD;
    return true;
}

static bool all_are_settled(struct nodes *nodes)
{
    struct settled settled = {0};

    core_each(nodes->node[0].parts->core, MACHINE_TASK, count_settled, &settled);
    return settled.running == ALLOCS / 2 + 1 && settled.dead == ALLOCS / 2;
}

/* One field of a kind's record, and what it is to be. */
struct odd {
    enum machine_kind kind;
    const struct field *field;
    uint32_t offset; /* of the struct that has the field */
    uint64_t number;
    const char *text;
};

static struct odd odds[CASES_MAX];
static size_t odds_count;

static void add_odd(enum machine_kind kind, const struct field *field, uint32_t offset,
                    uint64_t number, const char *text)
{
    assert_true(odds_count < CASES_MAX);
    odds[odds_count++] = (struct odd){kind, field, offset, number, text};
}

static void add_odds(enum machine_kind kind, const struct shape *shape, uint32_t offset)
{
    static const uint64_t numbers[] = {
        0, 1, 7, 255, 1u << 31, 1ull << 53, (1ull << 53) + 1, 1ull << 63, UINT64_MAX};
    static const char *const texts[] = {"", "x", "..", "a/b", "\xff\xfe", "\x1b[31m", "<b>&\"'"};

    for (size_t i = 0; i < shape->fields_count; i++) {
        const struct field *field = &shape->fields[i];
        bool waits = text_ends_with(field->name, "_ms"); /* nobody waits for years here */
        if (field->kind == VALUE_PAD)
            continue;
        for (size_t k = 0; field->kind != VALUE_TEXT && k < COUNT_OF(numbers); k++) {
            if (!waits || k < 4 || k > 5)
                add_odd(kind, field, offset, numbers[k], NULL);
        }
        for (size_t k = 0; field->kind == VALUE_TEXT && k < COUNT_OF(texts); k++)
            add_odd(kind, field, offset, 0, texts[k]);
    }
    for (size_t i = 0; i < shape->parts_count; i++) {
        const struct part *part = &shape->parts[i];
        if (part->shape != NULL) /* the first of each list */
            add_odds(kind, part->shape, offset + part->offset);
    }
}

static void spoil(const struct odd *odd, struct machine *record)
{
    static const uint8_t sizes[] = {
        [VALUE_U64] = 8, [VALUE_I64] = 8, [VALUE_U32] = 4, [VALUE_I32] = 4, [VALUE_U8] = 1};
    uint8_t *at = (uint8_t *)record + odd->offset + odd->field->offset;

    if (odd->text != NULL)
        (void)text_copy((char *)at, odd->field->size, odd->text); /* short */
    else
        memcpy(at, &odd->number, sizes[odd->field->kind]);
}

/* The records of allocs that are not the neighbour's. */
struct found {
    struct journal_record items[2 * ALLOCS];
    size_t count;
};

static bool find_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct found *found = ctx;

    if (text_starts_with(id->text, neighbour_id))
        return true;
    assert_in_range(found->count, 0, COUNT_OF(found->items) - 1);
    struct machine *copy = calloc(1, FSM_RECORD_BYTES_MAX);
    assert_non_null(copy);
    memcpy(copy, record, fsm_record_size(record));
    found->items[found->count++] = (struct journal_record){.id = *id, .record = copy};
    return true;
}

static struct journal *open_stored(struct nodes *nodes)
{
    char path[PATH_SIZE];
    struct journal *journal;
    struct err err = {0};

    assert_int_equal(path_join(path, nodes->node[0].config.state_dir, "journal"), 0);
    if (journal_open(path, JOURNAL_WRITE, &journal, &err) != 0)
        fail_msg("%s", err.text);
    return journal;
}

/* Which case it was, when one of thousands fails. */
static void tell(const struct odd *odd, const struct machine_id *id)
{
    print_message("%s %s: %s = %s %llx\n", machine_kind_name(odd->kind), id->text, odd->field->name,
                  odd->text == NULL ? "" : odd->text, (unsigned long long)odd->number);
}

static void encode(void *record)
{
    size_t length;
    void *bytes;

    journal_encode_record(record, &bytes, &length);
    free(bytes);
}

/* False of a task with events beyond the end of their list. */
static bool ends_its_lists(const struct machine *record)
{
    static const struct task_event none[TASK_EVENTS_MAX];
    const struct task *task = record->kind == MACHINE_TASK ? task_of(record) : NULL;

    return task == NULL ||
           memcmp(&task->events[task->events_count], none,
                  (size_t)(TASK_EVENTS_MAX - task->events_count) * sizeof(task->events[0])) == 0;
}

/* Some values have no form in a journal at all: fields beyond a list's, texts without an end.  The
 * encoder is left with what it has allocated where it finds one. */
static bool can_be_written(struct machine *record)
{
    char why[ERR_TEXT_SIZE];

    return fsm_broken(record) == NULL && ends_its_lists(record) &&
           core_attempt(encode, record, why);
}

/* Whether the case is tried: by what it is, not by where it stands among the others. */
static bool is_drawn(const struct odd *odd)
{
    uint64_t hash = hash_u64(odd->kind, odd->number);

    hash = hash_bytes(hash, odd->field->name, strlen(odd->field->name));
    if (odd->text != NULL)
        hash = hash_bytes(hash, odd->text, strlen(odd->text));
    return exhaustive || hash % ONE_OF == 0;
}

/* Makes each record of KIND odd in another way, from the case *AT on. */
static size_t write_odd(struct journal *journal, enum machine_kind kind, size_t *at)
{
    struct found found = {.count = 0};
    struct err err = {0};
    size_t written = 0;

    assert_int_equal(journal_each_record(journal, kind, find_record, NULL, &found, &err), 0);
    for (size_t i = 0; i < found.count; i++) {
        struct machine *record = (struct machine *)(uintptr_t)found.items[i].record;
        bool odd = false;
        for (; !odd && *at < odds_count; (*at)++) {
            struct machine *whole = calloc(1, FSM_RECORD_BYTES_MAX);
            assert_non_null(whole);
            memcpy(whole, record, FSM_RECORD_BYTES_MAX);
            if (odds[*at].kind == kind && is_drawn(&odds[*at]))
                spoil(&odds[*at], record);
            odd = memcmp(whole, record, FSM_RECORD_BYTES_MAX) != 0 && can_be_written(record);
            if (!odd)
                memcpy(record, whole, FSM_RECORD_BYTES_MAX);
            free(whole);
        }
        struct journal_batch batch = {.records = &found.items[i], .records_count = 1};
        if (odd) {
            tell(&odds[*at - 1], &found.items[i].id);
            assert_int_equal(journal_commit(journal, &batch, &err), 0);
        }
        written += odd;
        free(record);
    }
    return written;
}

static void find_odds(void)
{
    static const enum machine_kind kinds[] = {MACHINE_ALLOC, MACHINE_TASK};

    odds_count = 0;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        add_odds(kinds[i], shape_of_head(), 0);
        add_odds(kinds[i], shape_of_record(kinds[i]), 0);
    }
}

static void try_round(struct nodes *nodes, size_t at[MACHINE_KIND_COUNT])
{
    struct task before;

    node_up(nodes, 0);
    register_sleeper(nodes, 0);
    register_odd(nodes, "live", "service", "/bin/sleep", "1000");
    register_odd(nodes, "over", "batch", "/bin/true", "");
    nodes_run_until(nodes, all_are_settled);
    before = *neighbour(nodes, neighbour_id);
    node_down(nodes, 0);
    struct journal *journal = open_stored(nodes);
    size_t written = write_odd(journal, MACHINE_ALLOC, &at[MACHINE_ALLOC]);
    written += write_odd(journal, MACHINE_TASK, &at[MACHINE_TASK]);
    journal_close(journal);
    print_message("%zu odd records\n", written);
    start_and_read(nodes, &before);
    purge_all(nodes);
    node_down(nodes, 0);
}

static void test_odd_records_cost_their_allocs(void **state)
{
    struct nodes *nodes = *state;
    size_t at[MACHINE_KIND_COUNT] = {0};

    nodes_need_root();
    find_odds();
    for (int i = 0; exhaustive || i < ROUNDS; i++) {
        if (at[MACHINE_ALLOC] >= odds_count && at[MACHINE_TASK] >= odds_count)
            break;
        try_round(nodes, at);
    }
}

/* Of names and ids that are sound, and that nothing outside was ever called by. */
static void write_odd_ids(struct journal *journal)
{
    static const char *const allocs[] = {"abc", "0", "-", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    static const char *const tasks[] = {"t", "a b", "\xc3\xa4", "-x"};
    struct found found = {.count = 0};
    struct err err = {0};

    assert_int_equal(journal_each_record(journal, MACHINE_ALLOC, find_record, NULL, &found, &err),
                     0);
    assert_int_equal(journal_each_record(journal, MACHINE_TASK, find_record, NULL, &found, &err),
                     0);
    for (size_t i = 0; i < found.count; i++) {
        struct journal_record *item = &found.items[i];
        size_t number = i / 2 % COUNT_OF(allocs);
        struct journal_batch batch = {.records = item, .records_count = 1};
        item->id = item->id.kind == MACHINE_ALLOC
                       ? machine_id_make(MACHINE_ALLOC, allocs[number])
                       : machine_id_join(MACHINE_TASK, allocs[number], tasks[number]);
        struct alloc *alloc = (struct alloc *)(uintptr_t)item->record;
        if (item->id.kind == MACHINE_ALLOC)
            (void)text_copy(alloc->assign.members[0].name, SPEC_NAME_SIZE, tasks[number]);
        assert_int_equal(journal_commit(journal, &batch, &err), 0);
        free(alloc);
    }
}

/* A node that is down: a job runs, one is over, and beside them the neighbour's task, as it is. */
static struct task leave_three_jobs(struct nodes *nodes)
{
    nodes_need_root();
    node_up(nodes, 0);
    register_sleeper(nodes, 0);
    register_odd(nodes, "live", "service", "/bin/sleep", "1000");
    register_odd(nodes, "over", "batch", "/bin/true", "");
    nodes_run_until(nodes, all_are_settled);
    struct task before = *neighbour(nodes, neighbour_id);
    node_down(nodes, 0);
    return before;
}

static void test_odd_ids_cost_their_allocs(void **state)
{
    struct nodes *nodes = *state;
    struct task before = leave_three_jobs(nodes);

    struct journal *journal = open_stored(nodes);
    write_odd_ids(journal);
    journal_close(journal);
    start_and_read(nodes, &before);
    purge_all(nodes);
}

/* --- odd jobs and specifications --- */

static const char *const odd_jobs[][2] = {
    {"ID", "\"x\""},
    {"Namespace", "null"},
    {"Namespace", "\"a/b\""},
    {"Type", "null"},
    {"Type", "7"},
    {"Version", "-1"},
    {"Version", "9223372036854775807"},
    {"CreateIndex", "-9223372036854775808"},
    {"JobModifyIndex", "9223372036854775807"},
    {"SubmitTime", "-9223372036854775808"},
    {"SubmitTime", "\"x\""},
    {"Name", "{}"},
    {"Priority", "[]"},
    {"Stop", "\"x\""},
    {"Datacenters", "[7]"},
    {"Datacenters", "{}"},
    {"Meta", "[]"},
    {"Update", "7"},
    {"Constraints", "7"},
    {"Constraints", "[7]"},
    {"Constraints", "[{}]"},
    {"Constraints", "[{\"LTarget\": 7, \"RTarget\": [], \"Operand\": {}}]"},
    {"Constraints", "[{\"LTarget\": \"${attr.\", \"RTarget\": \"(\", \"Operand\": \"regexp\"}]"},
    {"Constraints", "[{\"Operand\": \"distinct_hosts\", \"RTarget\": 7}]"},
    {"TaskGroups", "null"},
    {"TaskGroups", "{}"},
    {"TaskGroups", "[7]"},
    {"TaskGroups", "[{}]"},
    {"TaskGroups", "[{\"Name\": \"g\", \"Count\": -1}]"},
    {"TaskGroups", "[{\"Name\": \"g\", \"Count\": 4294967295}]"},
    {"TaskGroups", "[{\"Name\": \"g\", \"Count\": 1}]"},
    {"TaskGroups", "[{\"Name\": \"g\", \"Count\": 1, \"Tasks\": [7]}]"},
    {"TaskGroups", "[{\"Name\": \"g\", \"Count\": 1, \"Tasks\": [{}]}]"},
    {"TaskGroups", "[{\"Name\": \"g\"}, {\"Name\": \"g\"}]"},
    {"TaskGroups",
     "[{\"Name\": \"g\", \"Count\": 1, \"Tasks\": [{\"Name\": \"t\", \"Driver\": \"raw_exec\", "
     "\"KillTimeout\": 9223372036854775807, \"Config\": {\"command\": \"/bin/true\"}}]}]"},
    {"TaskGroups",
     "[{\"Name\": \"g\", \"Count\": 1, \"RestartPolicy\": {\"Interval\": 9223372036854775807, "
     "\"Attempts\": 4294967295, \"Mode\": \"fail\"}, \"Tasks\": [{\"Name\": \"t\", \"Driver\": "
     "\"raw_exec\", \"Config\": {\"command\": \"/bin/true\"}}]}]"},
    {"TaskGroups",
     "[{\"Name\": \"g\", \"Count\": 1, \"ReschedulePolicy\": {\"Delay\": -1}, \"Tasks\": []}]"},
    {"TaskGroups", "[{\"Name\": \"g\", \"Count\": 1, \"Volumes\": [7], \"Tasks\": []}]"},
    {"TaskGroups", "[{\"Name\": \"g\", \"Count\": 1, \"Tasks\": [], \"Volumes\": {\"v\": "
                   "{\"Type\": \"host\", \"Source\": \"../x\"}}}]"},
    {"cairnQueued", "[\"x\"]"},
    {"cairnQueued", "[-9223372036854775808, 9223372036854775807]"},
    {"cairnPurge", "7"},
    {"cairnDeployment", "7"},
    {"cairnDeployment", "{\"Status\": \"running\"}"},
    {"cairnDeployment",
     "{\"ID\": \"6b86a1f4-9a5c-4d3c-8a8e-0f8b7a3f0c11\", \"Status\": \"running\", "
     "\"StatusDescription\": \"\", \"CreateTime\": -1, \"TaskGroups\": {}}"},
    {"cairnDeployment",
     "{\"ID\": \"6b86a1f4-9a5c-4d3c-8a8e-0f8b7a3f0c11\", \"Status\": \"running\", "
     "\"StatusDescription\": \"\", \"TaskGroups\": {\"g\": 7}}"},
};

static void store_text(struct journal *journal, const char *key, const char *text)
{
    struct journal_blob blob = {.bytes = text, .length = strlen(text)};
    struct journal_batch batch = {.specs = &blob, .specs_count = 1};
    struct err err = {0};

    assert_true(text_copy(blob.key, sizeof(blob.key), key));
    assert_int_equal(journal_commit(journal, &batch, &err), 0);
}

static char *read_stored(struct journal *journal, const char *key)
{
    struct err err = {0};
    size_t length;
    char *text;

    if (journal_spec_read(journal, key, &text, &length, &err) != 0)
        fail_msg("%s", err.text);
    return text;
}

/* The job of the neighbour again and again, under other names, odd in one field each. */
static void write_odd_jobs(struct journal *journal)
{
    char *text = read_stored(journal, "job/default/sleeper"), key[64];

    for (size_t i = 0; i < COUNT_OF(odd_jobs); i++) {
        json_t *job = json_loads(text, 0, NULL);
        json_t *value = json_loads(odd_jobs[i][1], JSON_DECODE_ANY, NULL);
        assert_non_null(value);
        (void)text_format(key, sizeof(key), "job/default/odd-%zu", i); /* fits */
        (void)json_object_set_new(job, "ID", json_string(key + strlen("job/default/")));
        (void)json_object_set_new(job, odd_jobs[i][0], value);
        char *odd = json_dumps(job, JSON_COMPACT);
        store_text(journal, key, odd);
        free(odd);
        json_decref(job);
    }
    store_text(journal, "job/default/list", "[]");
    store_text(journal, "job/default/deep", "{\"ID\":[[[[[[{}]]]]]]}");
    store_text(journal, "job/", "{}");
    store_text(journal, "other/x", "x");
    free(text);
}

static void test_odd_jobs_cost_themselves(void **state)
{
    struct nodes *nodes = *state;
    struct task before;

    nodes_need_root();
    node_up(nodes, 0);
    register_sleeper(nodes, 0);
    nodes_run_until(nodes, first_runs);
    before = *neighbour(nodes, neighbour_id);
    node_down(nodes, 0);
    struct journal *journal = open_stored(nodes);
    write_odd_jobs(journal);
    journal_close(journal);
    start_and_read(nodes, &before);
    ask_api(nodes, 0, "PUT", "/v1/system/gc", "");
    purge_all(nodes);
}

/* --- what is brought in from another journal --- */

/* Contradicts what its alloc was told: tasks have failed, a job counts to less than nothing. */
static void change_line(json_t *line)
{
    json_t *entry = json_object_get(line, "entry");
    const char *id = json_string_value(json_object_get(entry, "id"));
    const char *kind = json_string_value(json_object_get(entry, "kind"));
    const char *key = json_string_value(json_object_get(line, "key"));
    const char *table = json_string_value(json_object_get(line, "table"));
    bool stored = table != NULL && text_equal(table, "state");

    if (stored && text_equal(kind, "task") && !text_starts_with(id, neighbour_id))
        (void)json_object_set_new(json_object_get(entry, "record"), "failed", json_integer(1));
    if (key != NULL && text_equal(key, "job/default/over"))
        (void)json_object_set_new(
            line, "text",
            json_string("{\"ID\":\"over\",\"Namespace\":\"default\",\"Type\":\"batch\","
                        "\"TaskGroups\":[{\"Name\":\"g\",\"Count\":-1}]}"));
}

static void change_lines(const char *from, const char *to)
{
    FILE *read = fopen(from, "re"), *written = fopen(to, "we");
    char *text = NULL;
    size_t size = 0;

    assert_non_null(read);
    assert_non_null(written);
    while (getline(&text, &size, read) > 0) {
        json_t *line = json_loads(text, 0, NULL);
        assert_non_null(line);
        change_line(line);
        assert_int_equal(json_dumpf(line, written, JSON_COMPACT), 0);
        (void)fputc('\n', written);
        json_decref(line);
    }
    free(text);
    assert_int_equal(fclose(read), 0);
    assert_int_equal(fclose(written), 0);
}

/* Replaces the stopped node's journal by an import of its changed export. */
static void import_changed(struct nodes *nodes)
{
    const struct inspect_options options = {.out = fopen("/dev/null", "we")};
    char journal[PATH_SIZE], lines[PATH_SIZE], changed[PATH_SIZE];
    const char *state_dir = nodes->node[0].config.state_dir;
    struct inspect *inspect;
    struct err err = {0};
    uint64_t entries;

    assert_int_equal(path_join(journal, state_dir, "journal"), 0);
    assert_int_equal(path_join(lines, state_dir, "lines"), 0);
    assert_int_equal(path_join(changed, state_dir, "changed"), 0);
    assert_int_equal(inspect_open(journal, &options, &inspect, &err), 0);
    assert_int_equal(inspect_export(inspect, lines, false, &err), 0);
    inspect_close(inspect);
    assert_int_equal(fclose(options.out), 0);
    change_lines(lines, changed);
    assert_int_equal(tree_remove(AT_FDCWD, journal, &err), 0);
    if (inspect_import(changed, journal, &entries, &err) != 0)
        fail_msg("%s", err.text);
    assert_true(entries > 0);
}

/* An import refuses what no table could have written, by its line (test/inspect/test_transfer.c);
 * what only contradicts is found by the next start. */
static void test_imported_contradictions_cost_their_allocs(void **state)
{
    struct nodes *nodes = *state;
    struct task before = leave_three_jobs(nodes);

    import_changed(nodes);
    start_and_read(nodes, &before);
    nodes_ask(nodes, 0, "GET", "/v1/job/live/summary", "");
    assert_non_null(strstr(nodes->body, "\"Running\":0"));
    purge_all(nodes);
}

/* --- another's specification --- */

static bool sleeper_is_gone(struct nodes *nodes)
{
    return core_alloc(nodes->node[0].parts->core, neighbour_id) == NULL;
}

/* What an alloc is removed by must not name another one's directory. */
static void test_specification_of_another_alloc_clears_nothing_of_it(void **state)
{
    struct nodes *nodes = *state;
    char key[64], other[UUID_TEXT_SIZE], kept[PATH_SIZE];

    nodes_need_root();
    node_up(nodes, 0);
    register_odd(nodes, "live", "service", "/bin/sleep", "1000");
    nodes_ask(nodes, 0, "GET", "/v1/allocations", "");
    json_t *allocs = json_loads(nodes->body, 0, NULL);
    (void)text_copy(other, sizeof(other),
                    json_string_value(json_object_get(json_array_get(allocs, 0), "ID")));
    json_decref(allocs);
    register_sleeper(nodes, 0);
    (void)neighbour(nodes, neighbour_id);
    nodes_run_until(nodes, neighbour_runs);
    assert_int_equal(path_join(kept, nodes->node[0].config.alloc_dir, other), 0);
    node_down(nodes, 0);
    struct journal *journal = open_stored(nodes);
    (void)text_format(key, sizeof(key), "alloc/%s", other); /* fits */
    char *text = read_stored(journal, key);
    (void)text_format(key, sizeof(key), "alloc/%s", neighbour_id); /* fits */
    store_text(journal, key, text);
    free(text);
    journal_close(journal);
    node_up(nodes, 0);
    ask_any(nodes, "/v1/allocations?task_states=true&resources=true");
    purge_sleeper(nodes, 0);
    nodes_run_until(nodes, sleeper_is_gone);
    assert_int_equal(access(kept, F_OK), 0);
    purge_all(nodes);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, nodes_make, nodes_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_odd_records_cost_their_allocs),
        TEST(test_odd_ids_cost_their_allocs),
        TEST(test_odd_jobs_cost_themselves),
        TEST(test_imported_contradictions_cost_their_allocs),
        TEST(test_specification_of_another_alloc_clears_nothing_of_it),
    };

    exhaustive = argc > 1 && text_equal(argv[1], "all");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
