/*
 * What this node takes of what callers ask for (fsm/limits.h).
 *
 * What the turn under way has accepted counts as there, or two requests of one turn would pass
 * where one of them fits.  A journal may have brought more than is taken here: then nothing is
 * placed until there is room again.
 */
#include "server/alone/part.h"

/* WANTED more of WHAT, of which the node HAS some. */
static int check_bound(const char *what, const char *with, size_t has, size_t wanted, size_t max,
                       struct err *err)
{
    if (wanted == 0 || (has <= max && wanted <= max - has))
        return 0;
    return err_set(
        err, ERR_LIMIT,
        "there is no room for %zu more %s: the node has %zu of at most %zu, %s with them", wanted,
        what, has, max, with);
}

static int check_restriction(const struct alone *alone, struct err *err)
{
    const char *why = life_restriction(alone->config.life);

    return why == NULL ? 0 : err_set(err, ERR_AGAIN, "nothing new is started: %s", why);
}

int alone_check_job(const struct alone *alone, const struct job *job, size_t bytes, struct err *err)
{
    size_t jobs = HASH_COUNT(alone->jobs), more = job == NULL ? 1 : 0;
    size_t others_bytes = alone->jobs_bytes - (job == NULL ? 0 : job->bytes);
    int code = job == NULL ? check_restriction(alone, err) : 0;

    if (code == 0)
        code = check_bound("jobs", "stopped ones", jobs, more, NODE_JOBS_MAX, err);
    if (code == 0)
        code = check_bound("bytes of jobs", "those of stopped ones", others_bytes, bytes,
                           NODE_JOBS_BYTES_MAX, err);
    return code;
}

int alone_take(struct alone *alone, const struct demand *demand, struct err *err)
{
    const struct core *core = life_core(alone->config.life);
    struct demand *taken = &alone->taken;
    size_t allocs = core_count(core, MACHINE_ALLOC) + taken->allocs;
    size_t tasks = core_count(core, MACHINE_TASK) + core_count(core, MACHINE_VOLUME) + taken->tasks;
    int code = demand->allocs > 0 ? check_restriction(alone, err) : 0;

    if (code == 0)
        code = check_bound("allocs", "ended ones", allocs, demand->allocs, NODE_ALLOCS_MAX, err);
    if (code == 0)
        code = check_bound("tasks", "those of ended allocs", tasks, demand->tasks, NODE_MEMBERS_MAX,
                           err);
    if (code == 0)
        code = life_check_turn(alone->config.life, demand->stops + demand->allocs + demand->tasks,
                               err);
    if (code < 0)
        return code;
    taken->allocs += demand->allocs;
    taken->tasks += demand->tasks;
    return 0;
}

int alone_take_spec(struct alone *alone, size_t bytes, struct err *err)
{
    if (bytes > TURN_SPECS_BYTES_MAX - alone->taken.specs_bytes)
        return err_set(err, ERR_LIMIT,
                       "the specifications of all allocs that are placed at once have more than "
                       "%d MiB",
                       TURN_SPECS_BYTES_MAX >> 20);
    alone->taken.specs_bytes += bytes;
    return 0;
}
