/*
 * What there is in a world, and who is who.
 *
 * Allocs, tasks, claims and plugins never become more once a world has begun, so all arrays are cut
 * from one piece of memory when it begins, as large as that world needs and kept for the next one.
 * Machines are found by a table of their ids.
 */
#include "sim/world/world.h"

#include <stdlib.h>
#include <string.h>

enum {
    NOBODY = 0xFF, /* each byte of a free place among the names */
    NAMES_MIN = 32,
    ATTEMPTS_MIN = 1024,
    ATTEMPTS_OF_TASK = 16,
    CALLS_MIN = 128,
    CALLS_OF_MACHINE = 2, /* late ones included */
    REQUESTS_MIN = 256,
    REQUESTS_OF_ALLOC = 4,
};

/* --- memory --- */

/* Cuts COUNT items of SIZE bytes off the piece; without one it only counts. */
static void *cut(unsigned char *piece, size_t *at, size_t count, size_t size)
{
    size_t begin = (*at + 15) / 16 * 16;

    *at = begin + count * size;
    return piece == NULL ? NULL : piece + begin;
}

/* Arrays of states first: only they have to be zeroes.  Returns how many bytes those are. */
static size_t lay_out(struct sim *sim, unsigned char *piece, size_t *ret_bytes)
{
    size_t at = 0;

    sim->allocs = cut(piece, &at, (size_t)sim->allocs_count, sizeof(*sim->allocs));
    sim->tasks = cut(piece, &at, (size_t)sim->tasks_count, sizeof(*sim->tasks));
    sim->claims = cut(piece, &at, (size_t)sim->claims_count, sizeof(*sim->claims));
    sim->plugins = cut(piece, &at, (size_t)sim->plugins_count, sizeof(*sim->plugins));
    sim->disks = cut(piece, &at, (size_t)sim->disks_count, sizeof(*sim->disks));
    size_t states = at;
    sim->names.items = cut(piece, &at, sim->names.max, sizeof(*sim->names.items));
    sim->attempts.ending = cut(piece, &at, (size_t)sim->tasks_count, sizeof(*sim->attempts.ending));
    sim->attempts.items = cut(piece, &at, sim->attempts.max, sizeof(*sim->attempts.items));
    sim->calls.items = cut(piece, &at, sim->calls.max, sizeof(*sim->calls.items));
    sim->control.requests =
        cut(piece, &at, sim->control.requests_max, sizeof(*sim->control.requests));
    *ret_bytes = at;
    return states;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void make_room(struct sim *sim)
{
    size_t allocs = (size_t)sim->allocs_count, tasks = (size_t)sim->tasks_count, bytes;
    size_t machines = allocs + tasks + (size_t)sim->claims_count + (size_t)sim->plugins_count;

    sim->names.max = NAMES_MIN;
    while (sim->names.max < 2 * machines)
        sim->names.max *= 2;
    sim->attempts.max = larger(ATTEMPTS_MIN, ATTEMPTS_OF_TASK * tasks);
    sim->calls.max = larger(CALLS_MIN, CALLS_OF_MACHINE * machines);
    sim->control.requests_max = (uint32_t)larger(REQUESTS_MIN, REQUESTS_OF_ALLOC * allocs);
    (void)lay_out(sim, NULL, &bytes); /* to learn how much it takes */
    if (bytes > sim->room_bytes) {
        free(sim->room);
        sim->room = malloc(bytes);
        check(sim->room != NULL);
        sim->room_bytes = bytes;
    }
    memset(sim->room, 0, lay_out(sim, sim->room, &bytes));
    memset(sim->names.items, NOBODY, sim->names.max * sizeof(*sim->names.items));
}

/* --- who is who --- */

static uint64_t digest(const struct machine_id *id)
{
    return hash_bytes(id->kind, id->text, strlen(id->text));
}

static void enter_name(struct sim *sim, enum machine_kind kind, int alloc, int member)
{
    struct sim_whom whom = {(uint8_t)kind, (int16_t)alloc, (int16_t)member};
    size_t at = digest(sim_id(sim, &whom)) & (sim->names.max - 1);

    while (sim->names.items[at].kind != NOBODY)
        at = (at + 1) & (sim->names.max - 1);
    sim->names.items[at] = whom;
}

struct sim_whom sim_find(const struct sim *sim, const struct machine_id *id)
{
    size_t at = digest(id) & (sim->names.max - 1);

    for (; sim->names.items[at].kind != NOBODY; at = (at + 1) & (sim->names.max - 1)) {
        const struct sim_whom *whom = &sim->names.items[at];
        if (whom->kind == id->kind && text_equal(sim_id(sim, whom)->text, id->text))
            return *whom;
    }
    return (struct sim_whom){.kind = MACHINE_KIND_COUNT, .alloc = -1, .member = -1};
}

bool sim_is_same(const struct sim_whom *a, const struct sim_whom *b)
{
    return a->kind == b->kind && a->alloc == b->alloc && a->member == b->member;
}

const struct machine_id *sim_id(const struct sim *sim, const struct sim_whom *whom)
{
    switch ((enum machine_kind)whom->kind) {
    case MACHINE_PLUGIN:
        return &sim_plugin_of(sim, whom)->id;
    case MACHINE_ALLOC:
        return &sim_alloc_of(sim, whom)->id;
    case MACHINE_TASK:
        return &sim_task_of(sim, whom)->id;
    case MACHINE_VOLUME:
        return &sim_claim_of(sim, whom)->id;
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("a machine that is not in the script");
}

const char *sim_name(const struct sim *sim, const struct sim_whom *whom)
{
    const struct machine_id *id = sim_id(sim, whom);

    return whom->kind == MACHINE_PLUGIN ? sim_plugin_of(sim, whom)->name : id->text;
}

const struct machine *sim_record(const struct sim *sim, const struct sim_whom *whom)
{
    const struct machine *record =
        sim->core == NULL ? NULL : core_find(sim->core, sim_id(sim, whom));

    return record == NULL || fsm_is_final(record) ? NULL : record;
}

/* --- from a script --- */

static void count_script(struct sim *sim, const struct sim_script *script)
{
    sim->allocs_count = script->allocs_count;
    sim->plugins_count = script->plugins_count;
    sim->disks_count = script->plugins_count * SIM_DISKS_MAX;
    for (int a = 0; a < sim->allocs_count; a++) {
        sim->tasks_count += script->allocs[a].tasks_count;
        sim->claims_count += script->allocs[a].claims_count;
    }
    if (script->jobs_count == 0)
        return;
    sim->allocs_count += SIM_PLACED_MAX;
    sim->tasks_count += SIM_PLACED_MAX * SIM_TASKS_MAX;
}

static void plan_members(struct sim_alloc_state *alloc, const char *name,
                         const struct sim_alloc *plan)
{
    for (int t = 0; t < plan->tasks_count; t++) {
        struct sim_task_state *task = &alloc->tasks[t];
        task->id = machine_id_join(MACHINE_TASK, name, plan->tasks[t].name);
        task->plan = &plan->tasks[t];
        task->newest = -1;
    }
    for (int c = 0; c < plan->claims_count; c++) {
        const struct sim_claim *from = &plan->claims[c];
        struct sim_claim_state *claim = &alloc->claims[c];
        claim->id = machine_id_join(MACHINE_VOLUME, name, from->name);
        claim->plugin = from->plugin;
        claim->disk = (uint16_t)(from->plugin * SIM_DISKS_MAX + from->disk);
        claim->exclusive = from->exclusive;
    }
}

static void plan_script(struct sim *sim, const struct sim_script *script)
{
    struct sim_task_state *tasks = sim->tasks;
    struct sim_claim_state *claims = sim->claims;

    for (int a = 0; a < script->allocs_count; a++) {
        const struct sim_alloc *plan = &script->allocs[a];
        struct sim_alloc_state *alloc = &sim->allocs[a];
        alloc->id = machine_id_make(MACHINE_ALLOC, plan->name);
        alloc->plan = plan;
        alloc->after = plan->after;
        alloc->job = alloc->group = -1;
        alloc->tasks = tasks;
        alloc->claims = claims;
        tasks += alloc->tasks_count = plan->tasks_count;
        claims += alloc->claims_count = plan->claims_count;
        plan_members(alloc, plan->name, plan);
    }
    for (int a = script->allocs_count; a < sim->allocs_count; a++) {
        sim->allocs[a].plan = &script->allocs[0];
        sim->allocs[a].job = sim->allocs[a].group = -1;
        sim->allocs[a].tasks = tasks;
        tasks += SIM_TASKS_MAX;
    }
    for (int p = 0; p < sim->plugins_count; p++) {
        const struct sim_plugin *plan = &script->plugins[p];
        struct sim_whom whom = {MACHINE_PLUGIN, -1, (int16_t)p}, task;
        sim->plugins[p].id = sim_whom_id(script, &whom);
        sim->plugins[p].name = plan->name;
        if (sim_plugin_task(script, p, &task))
            sim->plugins[p].task = &sim->allocs[task.alloc].tasks[task.member];
        sim->plugins[p].serves = (int16_t)(plan->of != 0 ? plan->of - 1 : p);
        sim->plugins[p].stages = plan->stages;
    }
    for (int d = 0; d < sim->disks_count; d++) {
        sim->disks[d].plugin = (uint16_t)(d / SIM_DISKS_MAX);
        sim->disks[d].number = (uint16_t)(d % SIM_DISKS_MAX);
    }
}

/* --- from a journal --- */

static void count_start(struct sim *sim, const struct sim_start *start)
{
    sim->allocs_count = (int)start->allocs.count;
    sim->tasks_count = (int)start->tasks.count;
    sim->claims_count = (int)start->claims.count;
    sim->plugins_count = (int)start->plugins.count;
    sim->disks_count = (int)start->disks.count;
}

static void plan_start_alloc(struct sim *sim, const struct sim_started_alloc *from,
                             struct sim_alloc_state *alloc)
{
    alloc->id = from->id;
    alloc->plan = &from->plan;
    alloc->after = from->after;
    alloc->specified = from->specified;
    alloc->spec = from->spec;
    alloc->spec_length = from->spec_length;
    alloc->tasks = &sim->tasks[from->tasks];
    alloc->claims = &sim->claims[from->claims];
    alloc->tasks_count = from->tasks_count;
    alloc->claims_count = from->claims_count;
}

/* The first of the instances up to the one at NUMBER that serve the same plugin. */
static int16_t first_of(const struct sim *sim, int number)
{
    const struct plugin *past = sim->plugins[number].past;

    for (int p = 0; p < number && past != NULL; p++) {
        const struct plugin *earlier = sim->plugins[p].past;
        if (earlier != NULL && text_equal(earlier->define.plugin, past->define.plugin))
            return (int16_t)p;
    }
    return (int16_t)number;
}

static void plan_start(struct sim *sim, const struct sim_start *start)
{
    for (int a = 0; a < sim->allocs_count; a++)
        plan_start_alloc(sim, &start->allocs.items[a], &sim->allocs[a]);
    for (int t = 0; t < sim->tasks_count; t++) {
        const struct machine *record = sim_past_record(start->tasks.items[t].kept);
        sim->tasks[t].id = start->tasks.items[t].id;
        sim->tasks[t].plan = &start->tasks.items[t].plan;
        sim->tasks[t].past = record == NULL ? NULL : task_of(record);
        sim->tasks[t].newest = -1;
    }
    for (int c = 0; c < sim->claims_count; c++) {
        sim->claims[c].id = start->claims.items[c].id;
        sim->claims[c].plugin = start->claims.items[c].plugin;
        sim->claims[c].disk = start->claims.items[c].disk;
    }
    for (int p = 0; p < sim->plugins_count; p++) {
        const struct machine *record = sim_past_record(start->plugins.items[p].kept);
        sim->plugins[p].id = start->plugins.items[p].id;
        sim->plugins[p].name = machine_id_name(&sim->plugins[p].id);
        sim->plugins[p].stages = start->plugins.items[p].stages;
        sim->plugins[p].past = record == NULL ? NULL : plugin_of(record);
        sim->plugins[p].serves = first_of(sim, p);
    }
    for (int d = 0; d < sim->disks_count; d++) {
        sim->disks[d].plugin = start->disks.items[d].plugin;
        sim->disks[d].past = &start->disks.items[d].define;
    }
}

/* A place for what the control plane may still place has no name. */
static void enter_names(struct sim *sim)
{
    for (int a = 0; a < sim->allocs_count; a++) {
        if (sim->allocs[a].id.text[0] == '\0')
            continue;
        enter_name(sim, MACHINE_ALLOC, a, -1);
        for (int t = 0; t < sim->allocs[a].tasks_count; t++)
            enter_name(sim, MACHINE_TASK, a, t);
        for (int c = 0; c < sim->allocs[a].claims_count; c++)
            enter_name(sim, MACHINE_VOLUME, a, c);
    }
    for (int p = 0; p < sim->plugins_count; p++)
        enter_name(sim, MACHINE_PLUGIN, -1, p);
}

void sim_plan(struct sim *sim)
{
    if (sim->start != NULL)
        count_start(sim, sim->start);
    else
        count_script(sim, sim->script);
    make_room(sim);
    if (sim->start != NULL)
        plan_start(sim, sim->start);
    else
        plan_script(sim, sim->script);
    enter_names(sim);
}

/* --- by the control plane --- */

struct sim_alloc_state *sim_plan_placed(struct sim *sim, const char *id, int group)
{
    const struct sim_script *script = sim->script;
    int a = script->allocs_count;

    while (a < sim->allocs_count && sim->allocs[a].id.text[0] != '\0')
        a++;
    check(a < sim->allocs_count); /* a world in which so many are placed does not come to rest */
    struct sim_alloc_state *alloc = &sim->allocs[a];
    alloc->id = machine_id_make(MACHINE_ALLOC, id);
    alloc->plan = &script->allocs[group];
    alloc->group = (int16_t)group;
    alloc->tasks_count = alloc->plan->tasks_count;
    plan_members(alloc, id, alloc->plan);
    enter_name(sim, MACHINE_ALLOC, a, -1);
    for (int t = 0; t < alloc->tasks_count; t++)
        enter_name(sim, MACHINE_TASK, a, t);
    return alloc;
}

void sim_plan_forget(struct sim *sim, struct sim_alloc_state *alloc)
{
    struct sim_task_state *tasks = alloc->tasks;

    memset(tasks, 0, SIM_TASKS_MAX * sizeof(*tasks));
    *alloc = (struct sim_alloc_state){
        .plan = &sim->script->allocs[0],
        .tasks = tasks,
        .job = -1,
        .group = -1,
    };
    memset(sim->names.items, NOBODY, sim->names.max * sizeof(*sim->names.items));
    enter_names(sim);
}

bool sim_has_network(const struct sim_alloc_state *alloc)
{
    const uint32_t *hooks = alloc->plan->hooks;
    bool has = ((hooks[0] & hooks[2]) >> ALLOC_HOOK_NETWORK & 1u) != 0;

    for (int t = 0; t < alloc->tasks_count && has; t++)
        has = (alloc->tasks[t].plan->hooks[0] >> TASK_HOOK_NETWORK & 1u) != 0;
    return has;
}

struct sim_whom sim_role(const struct sim *sim, const struct sim_whom *whom)
{
    struct sim_whom role = *whom;

    if (whom->kind != MACHINE_KIND_COUNT && whom->alloc >= 0 && sim->script->jobs_count > 0 &&
        sim->allocs[whom->alloc].group >= 0)
        role.alloc = sim->allocs[whom->alloc].group;
    return role;
}

struct sim_whom sim_actor(const struct sim *sim, const struct sim_whom *role)
{
    struct sim_whom actor = *role;

    if (role->kind == MACHINE_KIND_COUNT || role->alloc < 0 || sim->script->jobs_count == 0)
        return actor;
    for (int a = sim->script->allocs_count; a < sim->allocs_count; a++) {
        if (sim->allocs[a].group != role->alloc || !sim->allocs[a].specified ||
            sim->allocs[a].ended)
            continue;
        actor.alloc = (int16_t)a;
        return actor;
    }
    actor.kind = MACHINE_KIND_COUNT;
    return actor;
}
