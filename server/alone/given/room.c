/*
 * What allocs hold of this node: cpu, memory, disk.
 *
 * Kept while things are posted, so that two requests of one turn do not get the same room; counted
 * anew from the records when what was posted was taken back.  As in Nomad an alloc holds what its
 * group asks for until it has ended or is told to.
 */
#include "server/alone/part.h"

#include "spec/job.h"

#include <stdlib.h>

struct hold {
    char id[UUID_TEXT_SIZE];
    struct room ask;
    uint16_t *cores; /* so many as it asks for; owned */
    UT_hash_handle hh;
};

static struct hold *find(const struct alone *alone, const char *alloc)
{
    struct hold *hold;

    HASH_FIND_STR(alone->holds, alloc, hold);
    return hold;
}

const struct room *alone_held(const struct alone *alone, const char *alloc)
{
    const struct hold *hold = find(alone, alloc);

    return hold == NULL ? NULL : &hold->ask;
}

const struct room *alone_used(const struct alone *alone)
{
    return &alone->used;
}

const struct core_set *alone_cores(const struct alone *alone)
{
    return &alone->cores;
}

/* What is stored may give to two what only one can have: it is free when one of them ends. */
static void hold(struct alone *alone, const char *alloc, const struct room *ask,
                 const uint16_t *cores, size_t cores_count)
{
    struct hold *hold = calloc(1, sizeof(*hold));

    check(hold != NULL);
    check(find(alone, alloc) == NULL);
    (void)text_copy(hold->id, sizeof(hold->id), alloc); /* a UUID */
    hold->ask = *ask;
    hold->ask.cores = cores_count;
    hold->cores = calloc(cores_count + 1, sizeof(*hold->cores));
    check(hold->cores != NULL);
    for (size_t i = 0; i < cores_count; i++) {
        hold->cores[i] = cores[i];
        core_set_add(&alone->cores, cores[i]);
    }
    HASH_ADD_STR(alone->holds, id, hold);
    room_add(&alone->used, &hold->ask);
}

void alone_hold(struct alone *alone, const char *alloc, const struct room *ask,
                const struct spec_cores *cores)
{
    uint16_t ids[NODE_CORES_MAX];

    for (size_t i = 0; i < cores->count; i++)
        ids[i] = cores->items[i].id;
    hold(alone, alloc, ask, ids, cores->count);
}

static void hold_free(struct hold *hold)
{
    free(hold->cores);
    free(hold);
}

static void drop(struct alone *alone, struct hold *hold)
{
    room_drop(&alone->used, &hold->ask);
    for (size_t i = 0; i < hold->ask.cores; i++)
        core_set_drop(&alone->cores, hold->cores[i]);
    HASH_DEL(alone->holds, hold);
    hold_free(hold);
}

void alone_release(struct alone *alone, const char *alloc)
{
    struct hold *hold = find(alone, alloc);

    if (hold == NULL)
        return;
    drop(alone, hold);
    alone->room_freed = true;
}

void alone_free_room(struct alone *alone)
{
    struct hold *hold, *next;

    HASH_ITER(hh, alone->holds, hold, next)
    drop(alone, hold);
}

/* --- the disk as it is --- */

bool alone_lacks_disk(const struct alone *alone, uint64_t disk_mb)
{
    return !alone->config.disk_is_given && alone->disk.bytes_used > 0 && !alone->disk_given_up &&
           alone->kept != NULL && disk_mb > alone->disk.bytes_free >> 20;
}

void alone_want_disk(struct alone *alone, uint64_t disk_mb)
{
    if (disk_mb > alone->disk_wanted_mb)
        alone->disk_wanted_mb = disk_mb;
    if (disk_mb > 0 && alone->config.measure_disk != NULL)
        alone->config.measure_disk(alone->config.ctx);
}

/* --- what is asked for --- */

/* A task without any limit counts by what it is given: nobody knows how far it goes (as in nomad
 * v2.0.5 nomad/structs/structs.go, AllocatedMemoryResources.Add). */
static struct room ask_of_task(const struct alone *alone, const json_t *task)
{
    const json_t *resources = json_object_get(task, "Resources");
    json_int_t most_mb = json_integer_value(json_object_get(resources, "MemoryMaxMB"));
    struct room ask = {
        .cpu_mhz = job_number(resources, "CPU") +
                   job_number(resources, "Cores") * alone->config.node.core_mhz,
        .memory_mb = job_number(resources, "MemoryMB"),
    };

    ask.memory_most_mb = most_mb > 0 ? (uint64_t)most_mb : ask.memory_mb; /* below 0: no limit */
    return ask;
}

struct room alone_ask(const struct alone *alone, const json_t *group)
{
    static const char *const hooks[] = {
        [LIFECYCLE_MAIN] = "",
        [LIFECYCLE_PRESTART] = "prestart",
        [LIFECYCLE_POSTSTART] = "poststart",
        [LIFECYCLE_POSTSTOP] = "poststop",
    };
    struct room_sum sum = {0};
    const json_t *task;
    size_t t;

    json_array_foreach(json_object_get(group, "Tasks"), t, task)
    {
        const json_t *lifecycle = json_object_get(task, "Lifecycle");
        const char *hook = json_string_value(json_object_get(lifecycle, "Hook"));
        struct room of_task = ask_of_task(alone, task);
        unsigned kind = LIFECYCLE_MAIN;
        for (unsigned i = 0; i < COUNT_OF(hooks) && hook != NULL; i++)
            kind = text_equal(hooks[i], hook) ? i : kind;
        policy_ask_task(&sum, (enum spec_lifecycle)kind,
                        json_is_true(json_object_get(lifecycle, "Sidecar")), &of_task);
    }
    struct room ask =
        policy_ask(&sum, job_number(json_object_get(group, "EphemeralDisk"), "SizeMB"));
    ask.cores = jobspec_cores(group); /* each task has its own, whenever it runs */
    return ask;
}

struct spec_cores alone_pick_cores(const struct alone *alone, const json_t *group,
                                   struct spec_core items[NODE_CORES_MAX])
{
    struct spec_cores cores = {.items = items, .mhz = alone->config.node.core_mhz};
    const json_t *task;
    uint16_t next = 0;
    size_t t;

    json_array_foreach(json_object_get(group, "Tasks"), t, task)
    {
        uint64_t left = job_number(json_object_get(task, "Resources"), "Cores");

        for (; left > 0 && next < NODE_CORES_MAX; next++) {
            if (!core_set_has(&alone->config.node.cores, next) || core_set_has(&alone->cores, next))
                continue;
            items[cores.count++] = (struct spec_core){
                .task = json_string_value(json_object_get(task, "Name")), .id = next};
            left--;
        }
    }
    return cores;
}

/* Of an alloc whose job is lost, or has no such group any more: nothing is known in a hurry. */
static struct room ask_of(const struct alone *alone, const struct alloc *alloc)
{
    const struct job *job = job_find(alone, alloc->assign.namespace, alloc->assign.job_id);
    size_t number;
    const json_t *group = job == NULL ? NULL : job_group(job, alloc->assign.group, &number);

    return group == NULL ? (struct room){0} : alone_ask(alone, group);
}

/* --- counting --- */

struct counting {
    struct alone *alone;
    struct hold *before; /* what was held until now, by alloc */
};

/* ALLOC asks for ASK; which cores it has was known before, or is told by what it runs by. */
static void count_one(struct counting *counting, const char *alloc, const struct room *ask)
{
    struct alone *alone = counting->alone;
    struct hold *before = NULL;

    if (ask->cores > 0)
        HASH_FIND_STR(counting->before, alloc, before);
    if (before != NULL || ask->cores == 0) {
        hold(alone, alloc, ask, before == NULL ? NULL : before->cores,
             before == NULL ? 0 : before->ask.cores);
        return;
    }
    struct alloc_spec *spec = alone_read_spec(alone, alloc);
    uint16_t ids[NODE_CORES_MAX];
    size_t count = 0;

    for (size_t t = 0; spec != NULL && t < spec->tasks_count; t++) {
        for (uint32_t i = 0; i < spec->tasks[t].resources.cores; i++)
            ids[count++] = spec->tasks[t].resources.core_ids[i];
    }
    hold(alone, alloc, ask, ids, count);
    alloc_spec_free(spec);
}

static bool count_alloc(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct counting *counting = ctx;
    struct alone *alone = counting->alone;
    const struct alloc *alloc = alloc_of(record);

    if (alloc->ended_unix_ns != 0 || alloc->stop_wanted || posted_to_end(alone, id->text))
        return true;
    struct room ask = ask_of(alone, alloc);
    count_one(counting, id->text, &ask);
    return true;
}

void alone_count_room(struct alone *alone)
{
    struct counting counting = {.alone = alone, .before = alone->holds};
    struct hold *hold, *next;

    alone->holds = NULL;
    alone->used = (struct room){0};
    alone->cores = (struct core_set){{0}};
    core_each(life_core(alone->config.life), MACHINE_ALLOC, count_alloc, &counting);
    for (const struct job *job = alone->jobs; job != NULL; job = job->hh.next) {
        for (size_t i = 0; i < job->posted.count; i++) {
            const struct posted *posted = &job->posted.items[i];
            size_t number;
            const json_t *group = job_group(job, posted->group, &number);
            if (posted->stops || group == NULL || posted_to_end(alone, posted->id.text))
                continue;
            struct room ask = alone_ask(alone, group);
            count_one(&counting, posted->id.text, &ask);
        }
    }
    HASH_ITER(hh, counting.before, hold, next)
    {
        HASH_DEL(counting.before, hold);
        hold_free(hold);
    }
    alone->room_freed = true;
}
