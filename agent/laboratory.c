/*
 * server/alone as simulated worlds run it: the same code with the world's ids, plans and bounds.
 */
#include "agent/laboratory.h"

#include "server/alone/alone.h"

enum {
    KILL_TIMEOUT_MAX_MS = 3600000, /* no world waits longer */
    PORT_FIRST = 20000,
    PORTS = 64, /* so few that what is given out twice is soon seen */
};

static const struct alone_address loopback = {.network = "default", .ip = "127.0.0.1"};

/* Whatever a script describes can be run. */
static int validate(void *ctx, const struct alloc_spec *alloc, const struct task_spec *task,
                    struct err *err)
{
    (void)ctx;
    (void)alloc;
    (void)task;
    (void)err;
    return 0;
}

static void *begin(const struct sim_plane_world *world)
{
    return alone_new(&(struct alone_config){
        .life = world->life,
        .ctx = world->ctx,
        .new_id = world->new_id,
        .node =
            {.known = {.id = "", .name = "", .datacenter = "dc1", .class = "", .pool = "default"},
             .region = "global",
             .room = {.cpu_mhz = UINT64_MAX, .memory_mb = UINT64_MAX, .disk_mb = UINT64_MAX},
             .core_mhz = 1000,
             .addresses = &loopback,
             .addresses_count = 1,
             .dynamic_ports = {PORT_FIRST, PORT_FIRST + PORTS - 1}},
        .allocs_kept = world->allocs_kept,
        .plans =
            {
                .kill_timeout_max_ms = KILL_TIMEOUT_MAX_MS,
                .alloc = world->plan_alloc,
                .task = world->plan_task,
                .validate = validate,
            },
    });
}

static void end(void *plane)
{
    alone_free(plane);
}

static int register_job(void *plane, const char *text, struct err *err)
{
    struct alone_evaluation evaluation;
    json_t *job = json_loads(text, 0, NULL);

    check(job != NULL);
    int code = alone_register(plane, job, &evaluation, NULL, err);
    json_decref(job);
    return code;
}

static int deregister(void *plane, const char *job_id, bool purge, struct err *err)
{
    struct alone_evaluation evaluation;

    return alone_deregister(plane, "default", job_id, purge ? ALONE_PURGE : 0, &evaluation, err);
}

static int stop_alloc(void *plane, const char *alloc, struct err *err)
{
    struct alone_evaluation evaluation;

    return alone_stop_alloc(plane, alloc, 0, &evaluation, err);
}

static void collect(void *plane)
{
    alone_collect(plane);
}

const struct sim_plane laboratory_plane = {
    .begin = begin,
    .end = end,
    .register_job = register_job,
    .deregister = deregister,
    .stop_alloc = stop_alloc,
    .collect = collect,
};
