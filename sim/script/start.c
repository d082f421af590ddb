/*
 * Loading a journal for worlds to begin from: what the records name becomes what there is.
 *
 * An alloc is there if it has a record, a specification, or a member that says whose it is; a
 * member, if it has a record, or its alloc's record or specification counts on it.  What the world
 * needs to know beyond that (how long a payload runs, how it dies) is made up, always the same way.
 */
#include "sim/script/started.h"

#include "base/list.h"
#include "core/identity.h"
#include "fsm/policy.h"
#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

enum {
    MEMBERS_MAX = 4096, /* of one alloc, known or lost */
    RUNS_MS_MIN = 200,  /* payloads that end by themselves */
    RUNS_MS_RANGE = 3000,
};

static int order(const void *a, const void *b)
{
    const struct machine_id *one = a, *other = b;

    return one->kind != other->kind ? (one->kind < other->kind ? -1 : 1)
                                    : strcmp(one->text, other->text);
}

/* The ids of one kind that something names. */
struct ids {
    struct machine_id *items;
    size_t count, size;
};

static void name_id(struct ids *ids, struct machine_id id)
{
    *list_more(ids) = id;
}

static void sort_ids(struct ids *ids)
{
    size_t kept = 0;

    if (ids->count > 0)
        qsort(ids->items, ids->count, sizeof(*ids->items), order);
    for (size_t i = 0; i < ids->count; i++) {
        if (kept == 0 || !machine_id_equal(&ids->items[kept - 1], &ids->items[i]))
            ids->items[kept++] = ids->items[i];
    }
    ids->count = kept;
}

/* --- reading --- */

struct loading {
    struct sim_start *start;
    struct ids allocs, tasks, claims, plugins;
};

static struct sim_past *keep(struct sim_start *start, const struct machine_id *id)
{
    struct sim_past *kept = list_more(&start->kept);

    *kept = (struct sim_past){.id = *id};
    return kept;
}

static bool take_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct loading *loading = ctx;
    struct sim_past *kept = keep(loading->start, id);

    kept->size = fsm_record_size(record);
    kept->record = malloc(kept->size);
    check(kept->record != NULL);
    memcpy(kept->record, record, kept->size);
    return true;
}

static void take_damaged(void *ctx, const char *table, const char *key, const void *bytes,
                         size_t length, const char *reason)
{
    struct loading *loading = ctx;
    struct machine_id id;

    (void)table; /* only records are walked */
    (void)bytes; /* worlds put them into quarantine unread */
    (void)length;
    (void)reason;
    if (journal_id_of_key(key, &id))
        (void)keep(loading->start, &id);
}

/* A member that a record or specification speaks of; nobody can have one with a longer name. */
static void name_member(struct loading *loading, enum machine_kind kind, const char *alloc,
                        const char *name)
{
    if (strlen(alloc) + 1 + strlen(name) < MACHINE_ID_SIZE)
        name_id(kind == MACHINE_TASK ? &loading->tasks : &loading->claims,
                machine_id_join(kind, alloc, name));
}

static void take_spec(struct loading *loading, const struct machine_id *id, const char *text,
                      size_t length)
{
    struct alloc_spec *spec;
    struct err err;

    if (jobspec_decode_alloc(text, length, &spec, &err) < 0)
        return; /* as the daemon: it says nothing about a lost record */
    for (size_t i = 0; i < spec->tasks_count; i++)
        name_member(loading, MACHINE_TASK, id->text, spec->tasks[i].name);
    alloc_spec_free(spec);
}

static bool name_specified(void *ctx, const char *key, const void *bytes, size_t length)
{
    struct loading *loading = ctx;
    struct machine_id id = {.kind = MACHINE_ALLOC};

    if (!text_copy(id.text, sizeof(id.text), key + strlen("alloc/")))
        return true; /* no alloc can be called so */
    name_id(&loading->allocs, id);
    take_spec(loading, &id, bytes, length);
    return true;
}

/* --- what the records name --- */

static void name_members(struct loading *loading, const char *id, const struct alloc *alloc)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        name_member(loading, member->kind == MEMBER_TASK ? MACHINE_TASK : MACHINE_VOLUME, id,
                    member->name);
    }
}

/* The first machine that serves PLUGIN, or one that may come to. */
static struct machine_id plugin_id(const struct sim_start *start, const char *plugin)
{
    for (size_t i = 0; i < start->kept.count; i++) {
        const struct sim_past *kept = &start->kept.items[i];
        if (kept->id.kind == MACHINE_PLUGIN && kept->record != NULL &&
            text_equal(plugin_of(kept->record)->define.plugin, plugin))
            return kept->id;
    }
    return machine_id_join(MACHINE_PLUGIN, "csi", plugin);
}

static void name_kept(struct loading *loading, const struct sim_past *kept)
{
    const struct machine *record = kept->record;

    switch ((enum machine_kind)kept->id.kind) {
    case MACHINE_PLUGIN:
        name_id(&loading->plugins, kept->id);
        return;
    case MACHINE_VOLUME:
        name_id(&loading->claims, kept->id);
        if (record != NULL)
            name_id(&loading->plugins, plugin_id(loading->start, volume_of(record)->define.plugin));
        break;
    case MACHINE_TASK:
        name_id(&loading->tasks, kept->id);
        break;
    case MACHINE_ALLOC:
        name_id(&loading->allocs, kept->id);
        if (record != NULL)
            name_members(loading, kept->id.text, alloc_of(record));
        return;
    case MACHINE_KIND_COUNT:
        unreachable("machine kind");
    }
    name_id(&loading->allocs, machine_id_owner(&kept->id));
}

static const struct sim_past *find_kept(const struct sim_start *start, const struct machine_id *id)
{
    /* The id is the first member of what is kept. */
    return start->kept.count == 0 ? NULL
                                  : bsearch(id, start->kept.items, start->kept.count,
                                            sizeof(*start->kept.items), order);
}

/* --- what there is --- */

static struct sim_task task_plan(const struct machine_id *id, const struct machine *record)
{
    struct sim_task plan = sim_task_default("");

    if (record == NULL)
        return plan;
    const struct task_define *define = &task_of(record)->define;
    plan.interval_ms = define->restart_interval_ms;
    plan.backoff_ms = define->restart_delay_ms;
    plan.kill_ms = define->kill_timeout_ms;
    plan.delay_ms = define->shutdown_delay_ms;
    plan.attempts = define->restart_attempts;
    plan.hooks[0] = define->hooks_prestart;
    plan.hooks[1] = define->hooks_poststart;
    plan.hooks[2] = define->hooks_prekill;
    plan.hooks[3] = define->hooks_exited;
    plan.hooks[4] = define->hooks_stop;
    plan.lifecycle = define->lifecycle;
    plan.sidecar = define->sidecar;
    plan.leader = define->leader;
    plan.mode_delay = define->restart_mode_delay;
    if (!define->restart_on_success)
        plan.runs_ms =
            RUNS_MS_MIN + hash_bytes(1, id->text, strlen(id->text)) % (uint64_t)RUNS_MS_RANGE;
    return plan;
}

static struct sim_alloc alloc_plan(const struct machine *record)
{
    struct sim_alloc plan = sim_alloc_default("");

    if (record == NULL)
        return plan;
    const struct alloc_assign *assign = &alloc_of(record)->assign;
    plan.batch = assign->batch;
    plan.delay_ms = assign->shutdown_delay_ms;
    plan.limit_ms = assign->max_run_ms;
    plan.min_healthy_ms = assign->min_healthy_ms;
    plan.healthy_deadline_ms = assign->watched ? assign->healthy_deadline_ms : 0;
    plan.manual = assign->manual;
    while (plan.checks < SIM_CHECKS_MAX && (assign->checks >> plan.checks) != 0)
        plan.checks++;
    plan.stop_after_ms = assign->stop_after_ms;
    plan.sticky = assign->disk_from[0] != '\0';
    plan.hooks[0] = assign->hooks_prerun;
    plan.hooks[1] = assign->hooks_prekill;
    plan.hooks[2] = assign->hooks_postrun;
    plan.hooks[3] = assign->hooks_destroy;
    return plan;
}

static size_t find_id(const struct ids *ids, const struct machine_id *id)
{
    const struct machine_id *found =
        ids->count == 0 ? NULL : bsearch(id, ids->items, ids->count, sizeof(*ids->items), order);

    return found == NULL ? SIZE_MAX : (size_t)(found - ids->items);
}

/* The disk that a claim is on; one of its own if nobody knows. */
static uint16_t disk_of(struct sim_start *start, const struct ids *plugins,
                        const struct machine *record)
{
    const struct volume *volume = record == NULL ? NULL : volume_of(record);
    struct machine_id plugin = {0};

    for (size_t i = 0; i < start->disks.count && volume != NULL; i++) {
        struct volume other = {.define = start->disks.items[i].define};
        if (volume_is_same(&other, volume))
            return (uint16_t)i;
    }
    struct sim_started_disk *disk = list_more(&start->disks);
    *disk = (struct sim_started_disk){0};
    if (volume != NULL) {
        disk->define = volume->define;
        plugin = plugin_id(start, volume->define.plugin);
    }
    size_t at = find_id(plugins, &plugin);
    disk->plugin = at == SIZE_MAX ? 0 : (uint16_t)at;
    return (uint16_t)(start->disks.count - 1);
}

static bool is_of(const struct machine_id *member, const struct machine_id *alloc)
{
    size_t length = strlen(alloc->text);

    return strncmp(member->text, alloc->text, length) == 0 && member->text[length] == '/';
}

/* Members stand together: their ids begin with that of their alloc. */
static size_t first_of(const struct ids *ids, const struct machine_id *alloc, uint16_t *ret_count)
{
    size_t low = 0, high = ids->count, count = 0;
    char begin[MACHINE_ID_SIZE + 1];

    (void)text_format(begin, sizeof(begin), "%s/", alloc->text); /* one byte more */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(ids->items[middle].text, begin) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + count < ids->count && is_of(&ids->items[low + count], alloc))
        count++;
    *ret_count = (uint16_t)count;
    return low;
}

static void place_allocs(struct loading *loading)
{
    struct sim_start *start = loading->start;

    for (size_t a = 0; a < loading->allocs.count; a++) {
        struct sim_started_alloc *alloc = list_more(&start->allocs);
        *alloc = (struct sim_started_alloc){.id = loading->allocs.items[a]};
        alloc->kept = find_kept(start, &alloc->id);
        alloc->plan = alloc_plan(sim_past_record(alloc->kept));
        alloc->tasks = first_of(&loading->tasks, &alloc->id, &alloc->tasks_count);
        alloc->claims = first_of(&loading->claims, &alloc->id, &alloc->claims_count);
        const struct machine *record = sim_past_record(alloc->kept);
        if (record == NULL)
            continue;
        const struct alloc_assign *assign = &alloc_of(record)->assign;
        const char *after = assign->disk_from[0] != '\0' ? assign->disk_from : assign->previous;
        if (after[0] == '\0')
            continue;
        struct machine_id previous = machine_id_make(MACHINE_ALLOC, after);
        size_t at = find_id(&loading->allocs, &previous);
        alloc->after = at == SIZE_MAX ? 0 : (uint16_t)(at + 1);
    }
}

static void place_members(struct loading *loading)
{
    struct sim_start *start = loading->start;

    for (size_t t = 0; t < loading->tasks.count; t++) {
        struct sim_started_task *task = list_more(&start->tasks);
        *task = (struct sim_started_task){.id = loading->tasks.items[t]};
        task->kept = find_kept(start, &task->id);
        task->plan = task_plan(&task->id, sim_past_record(task->kept));
    }
    for (size_t c = 0; c < loading->claims.count; c++) {
        struct sim_started_claim *claim = list_more(&start->claims);
        *claim = (struct sim_started_claim){.id = loading->claims.items[c]};
        claim->kept = find_kept(start, &claim->id);
        claim->disk = disk_of(start, &loading->plugins, sim_past_record(claim->kept));
        claim->plugin = start->disks.items[claim->disk].plugin;
    }
}

static void place_plugins(struct loading *loading)
{
    struct sim_start *start = loading->start;

    for (size_t p = 0; p < loading->plugins.count; p++) {
        struct sim_started_plugin *plugin = list_more(&start->plugins);
        *plugin = (struct sim_started_plugin){.id = loading->plugins.items[p]};
        plugin->kept = find_kept(start, &plugin->id);
        const struct machine *record = sim_past_record(plugin->kept);
        plugin->stages = record != NULL && plugin_of(record)->identity.staging;
    }
    /* One that has not identified itself yet may have staged all the same. */
    for (size_t c = 0; c < start->claims.count; c++) {
        const struct machine *record = sim_past_record(start->claims.items[c].kept);
        if (record != NULL && volume_of(record)->staged)
            start->plugins.items[start->claims.items[c].plugin].stages = true;
    }
}

static int place_all(struct loading *loading, struct err *err)
{
    struct sim_start *start = loading->start;

    if (start->kept.count > 0)
        qsort(start->kept.items, start->kept.count, sizeof(*start->kept.items), order);
    for (size_t i = 0; i < start->kept.count; i++)
        name_kept(loading, &start->kept.items[i]);
    sort_ids(&loading->allocs);
    sort_ids(&loading->tasks);
    sort_ids(&loading->claims);
    sort_ids(&loading->plugins);
    if (loading->allocs.count > INT16_MAX || loading->claims.count > INT16_MAX ||
        loading->plugins.count > INT16_MAX)
        return err_set(err, ERR_LIMIT, "more than %d allocs, volumes or plugins", INT16_MAX);
    place_allocs(loading);
    for (size_t a = 0; a < start->allocs.count; a++) {
        if (start->allocs.items[a].tasks_count > MEMBERS_MAX ||
            start->allocs.items[a].claims_count > MEMBERS_MAX)
            return err_set(err, ERR_LIMIT, "alloc %s has more than %d members",
                           start->allocs.items[a].id.text, MEMBERS_MAX);
    }
    place_members(loading);
    place_plugins(loading);
    return 0;
}

/* --- the node's own --- */

static int read_node(struct sim_start *start, struct journal *journal, struct err *err)
{
    struct identity identity = {0};
    struct store store = store_of_journal(journal);
    char *text;
    size_t length;
    int code = identity_recall(&identity, &store, &(struct say){0}, &start->last, err);

    if (code < 0 && code != ERR_GONE)
        return code;
    start->known = code == 0;
    start->turn = identity.last_turn;
    start->clock_offset_ms = identity.clock_offset_ms;
    (void)text_copy(start->node_id, sizeof(start->node_id), identity.id); /* same sizes */
    (void)text_copy(start->secret, sizeof(start->secret), identity.secret);
    (void)text_copy(start->boot_id, sizeof(start->boot_id), identity.boot_id);
    uint64_t next = journal_next_sequence(journal);
    start->next_sequence = next == 0 ? 1 : next;
    code = journal_meta_read(journal, "server_index", &text, &length, err);
    if (code < 0)
        return code == ERR_GONE ? 0 : code;
    start->server = true;
    if (length == sizeof(start->server_index))
        memcpy(&start->server_index, text, length);
    free(text);
    return 0;
}

static int read_specs(struct sim_start *start, struct journal *journal, struct err *err)
{
    char key[JOURNAL_KEY_SIZE];
    int code = 0;

    for (size_t a = 0; a < start->allocs.count && code == 0; a++) {
        struct sim_started_alloc *alloc = &start->allocs.items[a];
        (void)text_format(key, sizeof(key), "alloc/%s", alloc->id.text); /* fits */
        code = journal_spec_read(journal, key, &alloc->spec, &alloc->spec_length, err);
        alloc->specified = code != ERR_GONE;
        if (code == ERR_GONE || code == ERR_CORRUPT)
            code = 0;
    }
    return code;
}

static int load_all(struct loading *loading, struct journal *journal, struct err *err)
{
    int code = read_node(loading->start, journal, err);

    for (int kind = 0; kind < MACHINE_KIND_COUNT && code == 0; kind++)
        code = journal_each_record(journal, (enum machine_kind)kind, take_record, take_damaged,
                                   loading, err);
    if (code == 0)
        code = journal_each_spec(journal, "alloc/", name_specified, loading, err);
    if (code == ERR_CORRUPT)
        code = 0; /* specifications that cannot be read: those that can were told */
    if (code == 0)
        code = place_all(loading, err);
    return code < 0 ? code : read_specs(loading->start, journal, err);
}

int sim_start_load(const char *path, struct sim_start **ret_start, struct err *err)
{
    char place[JOURNAL_PATH_SIZE];
    struct journal *journal;
    struct sim_start *start = calloc(1, sizeof(*start));
    struct loading loading = {.start = start};

    check(start != NULL);
    int code = journal_locate(path, place, err);
    if (code == 0)
        code = journal_open(place, JOURNAL_READ, &journal, err);
    if (code == 0) {
        code = journal_freeze(journal, err); /* its daemon may be at work */
        if (code == 0)
            code = load_all(&loading, journal, err);
        journal_thaw(journal);
        journal_close(journal);
    }
    free(loading.allocs.items);
    free(loading.tasks.items);
    free(loading.claims.items);
    free(loading.plugins.items);
    if (code < 0)
        sim_start_free(start);
    else
        *ret_start = start;
    return code;
}

void sim_start_free(struct sim_start *start)
{
    if (start == NULL)
        return;
    for (size_t i = 0; i < start->kept.count; i++)
        free(start->kept.items[i].record);
    for (size_t a = 0; a < start->allocs.count; a++)
        free(start->allocs.items[a].spec);
    free(start->kept.items);
    free(start->allocs.items);
    free(start->tasks.items);
    free(start->claims.items);
    free(start->plugins.items);
    free(start->disks.items);
    free(start);
}
