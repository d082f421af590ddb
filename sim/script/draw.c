/*
 * A script from a seed.
 *
 * Swarm testing: each seed first draws which kinds of trouble there are at all, then how much of
 * each, so that some worlds have one kind only and many of it.  A third of the worlds have nothing
 * but crashes: there, nothing excuses a payload that is not started exactly once.
 *
 * A call takes at most one drawn argument: in which order arguments are evaluated is up to the
 * compiler, and a seed has to be the same world for all of them.
 */
#include "sim/script/started.h"
#include "sim/script/words.h"

#include "fsm/alloc.h"
#include "fsm/policy.h"
#include "fsm/task.h"

#include <string.h>

/* Who there is for things to happen to: what the script made, or what a journal holds. */
struct cast {
    size_t allocs, plugins;
    struct company {
        uint16_t tasks, claims;
    } drawn[SIM_ALLOCS_MAX];
    const struct sim_start *start; /* NULL: those above */
};

struct pen {
    struct rng rng;
    struct sim_script *script;
    struct cast cast;
    uint64_t horizon_ms;
    bool large, calm; /* calm: crashes are the only trouble */
};

static uint64_t below(struct pen *pen, uint64_t bound)
{
    return rng_below(&pen->rng, bound);
}

static bool chance(struct pen *pen, uint64_t of, uint64_t in)
{
    return rng_chance(&pen->rng, of, in);
}

static void name(char to[SIM_NAME_SIZE], const char *stem, unsigned number)
{
    (void)text_format(to, SIM_NAME_SIZE, "%s%u", stem, number); /* fits */
}

/* --- what there is --- */

static uint32_t mask(struct pen *pen)
{
    return (uint32_t)below(pen, 1u << TASK_HOOK_COUNT);
}

static void draw_lifecycle(struct pen *pen, struct sim_task *task)
{
    task->lifecycle = (uint8_t)(1 + below(pen, 3));
    task->sidecar = task->lifecycle != LIFECYCLE_POSTSTOP && chance(pen, 1, 2);
    if (!task->sidecar)
        task->runs_ms = 1 + below(pen, 2000);
}

static void draw_task(struct pen *pen, struct sim_alloc *alloc, unsigned number)
{
    struct sim_task task = sim_task_default("");

    name(task.name, "t", number);
    task.dies_ms = below(pen, 8) == 0 ? below(pen, 3000) : below(pen, 20);
    task.interval_ms = 2000 + below(pen, 60000);
    task.backoff_ms = 10 + below(pen, 3000);
    task.kill_ms = below(pen, 3000);
    task.attempts = (uint32_t)below(pen, 4);
    task.mode_delay = chance(pen, 1, 4);
    task.leader = chance(pen, 1, 8);
    if (chance(pen, 1, 4))
        task.delay_ms = 1 + below(pen, 2000);
    task.ignores_term = chance(pen, 1, 6);
    task.forks = chance(pen, 1, 6);
    if (number > 0 && chance(pen, 1, 2))
        draw_lifecycle(pen, &task);
    else if (alloc->batch || (!pen->calm && chance(pen, 1, 3)))
        task.runs_ms = 1 + below(pen, pen->horizon_ms);
    if (!pen->calm && task.runs_ms > 0 && chance(pen, 1, 3)) {
        task.exits = (int32_t)below(pen, 3);
        task.signal = chance(pen, 1, 4) ? 11 : 0;
    }
    if (chance(pen, 1, 3)) {
        for (size_t i = 0; i < COUNT_OF(task.hooks); i++)
            task.hooks[i] = mask(pen);
        task.hooks[0] |= 1u << TASK_HOOK_TASK_DIR; /* as hooks/table.c: always */
    }
    alloc->tasks[alloc->tasks_count++] = task;
}

/* As hooks/table.c: all of an alloc have it, or none. */
static void draw_network(struct pen *pen, struct sim_alloc *alloc)
{
    bool own = chance(pen, 1, 3);

    for (int t = 0; t < alloc->tasks_count; t++) {
        uint32_t *prestart = &alloc->tasks[t].hooks[0];

        *prestart =
            own ? *prestart | 1u << TASK_HOOK_NETWORK : *prestart & ~(1u << TASK_HOOK_NETWORK);
    }
    if (!own)
        return;
    alloc->hooks[0] |= 1u << ALLOC_HOOK_NETWORK;
    alloc->hooks[2] |= 1u << ALLOC_HOOK_NETWORK;
}

static void draw_alloc(struct pen *pen, unsigned number)
{
    struct sim_script *script = pen->script;
    struct sim_alloc alloc = sim_alloc_default("");
    unsigned tasks = 1 + (unsigned)below(pen, pen->large ? SIM_TASKS_MAX : 3);

    name(alloc.name, "a", number);
    alloc.batch = chance(pen, 1, 3);
    if (number > 0 && chance(pen, 1, 5))
        alloc.after = (uint8_t)(1 + below(pen, number));
    if (chance(pen, 1, 4))
        alloc.delay_ms = 1 + below(pen, 1500);
    if (alloc.batch && chance(pen, 1, 6))
        alloc.limit_ms = 1 + below(pen, pen->horizon_ms);
    if (chance(pen, 1, 3)) {
        alloc.min_healthy_ms = below(pen, 3000);
        alloc.healthy_deadline_ms = alloc.min_healthy_ms + 1 + below(pen, 20000);
    }
    if (script->server && chance(pen, 1, 3))
        alloc.stop_after_ms = 2500 + below(pen, 20000);
    for (int i = 1; i < 3 && chance(pen, 1, 3); i++)
        alloc.hooks[i] = 1u << ALLOC_HOOK_ALLOC_DIR;
    for (unsigned t = 0; t < tasks; t++)
        draw_task(pen, &alloc, t);
    draw_network(pen, &alloc);
    if (script->plugins_count > 0 && chance(pen, 2, 3))
        alloc.claims_count = (uint8_t)(1 + below(pen, SIM_VOLUMES_MAX));
    for (unsigned c = 0; c < alloc.claims_count; c++) {
        name(alloc.claims[c].name, "v", c);
        alloc.claims[c].plugin = (uint8_t)below(pen, script->plugins_count);
        if (script->plugins[alloc.claims[c].plugin].of != 0)
            alloc.claims[c].plugin = (uint8_t)(script->plugins[alloc.claims[c].plugin].of - 1);
        /* Two claims of one alloc are on two disks. */
        alloc.claims[c].disk = (uint8_t)(2 * c + below(pen, 2));
        alloc.claims[c].exclusive = chance(pen, 1, 6);
    }
    script->allocs[script->allocs_count++] = alloc;
}

/* --- what happens --- */

static void add(struct pen *pen, enum sim_action action, struct sim_whom whom, uint64_t at_ms,
                int64_t number)
{
    struct sim_script *script = pen->script;

    bool to_nobody = whom.kind == MACHINE_KIND_COUNT && sim_action_takes(action) != TAKES_JOB;

    if (script->steps_count == SIM_STEPS_MAX || to_nobody)
        return; /* there are enough, or there is nobody to whom it could happen */
    script->steps[script->steps_count++] = (struct sim_step){
        .moment = SIM_AT,
        .at_ms = at_ms,
        .action = (uint8_t)action,
        .whom = whom,
        .number = number,
    };
}

static struct company company_of(const struct pen *pen, const struct sim_whom *whom)
{
    size_t alloc = (size_t)whom->alloc;

    if (pen->cast.start == NULL)
        return pen->cast.drawn[alloc];
    return (struct company){pen->cast.start->allocs.items[alloc].tasks_count,
                            pen->cast.start->allocs.items[alloc].claims_count};
}

static struct sim_whom any_alloc(struct pen *pen)
{
    return (struct sim_whom){MACHINE_ALLOC, (int16_t)below(pen, pen->cast.allocs), -1};
}

static struct sim_whom any_task(struct pen *pen)
{
    struct sim_whom whom = any_alloc(pen);
    uint16_t count = company_of(pen, &whom).tasks;

    whom.kind = count == 0 ? MACHINE_KIND_COUNT : MACHINE_TASK;
    whom.member = (int16_t)below(pen, count);
    return whom;
}

/* A claim, if there is one; else kind MACHINE_KIND_COUNT. */
static struct sim_whom any_claim(struct pen *pen)
{
    struct sim_whom whom = any_alloc(pen);
    uint16_t count = company_of(pen, &whom).claims;

    whom.kind = count == 0 ? MACHINE_KIND_COUNT : MACHINE_VOLUME;
    whom.member = (int16_t)below(pen, count);
    return whom;
}

static struct sim_whom any_plugin(struct pen *pen)
{
    size_t count = pen->cast.plugins;

    return (struct sim_whom){count == 0 ? MACHINE_KIND_COUNT : MACHINE_PLUGIN, -1,
                             (int16_t)below(pen, count)};
}

static struct sim_whom any_machine(struct pen *pen)
{
    struct sim_whom whom = below(pen, 4) == 0   ? any_plugin(pen)
                           : below(pen, 3) == 0 ? any_claim(pen)
                           : below(pen, 2) == 0 ? any_alloc(pen)
                                                : any_task(pen);

    return whom.kind == MACHINE_KIND_COUNT ? any_task(pen) : whom;
}

/* What users ask for by the way.  A time is drawn before whom it is about, here and below: the
 * order in which a call's arguments are drawn would be the compiler's. */
static void draw_users(struct pen *pen)
{
    static const struct {
        uint8_t action;
        bool task;
    } requests[] = {{SIM_DO_RESTART, false},
                    {SIM_DO_RESTART_TASK, true},
                    {SIM_DO_SIGNAL, true},
                    {SIM_DO_REPLAY, false},
                    {SIM_DO_UNWELL, true}};

    for (uint64_t n = below(pen, 4); n > 0 && !pen->calm; n--) {
        struct sim_whom claim = any_claim(pen);
        for (size_t i = 0; i < COUNT_OF(requests); i++) {
            uint64_t at_ms = below(pen, pen->horizon_ms);
            add(pen, (enum sim_action)requests[i].action,
                requests[i].task ? any_task(pen) : any_alloc(pen), at_ms, 0);
        }
        if (claim.kind != MACHINE_KIND_COUNT)
            add(pen, SIM_DO_DETACH, claim, below(pen, pen->horizon_ms), 0);
    }
}

static void draw_wishes(struct pen *pen)
{
    uint64_t stopped_ms = 0; /* when the last one is that is */

    for (int16_t a = 0; a < pen->script->allocs_count; a++) {
        struct sim_whom whom = {MACHINE_ALLOC, a, -1};
        uint64_t at_ms = chance(pen, 1, 2) ? 0 : below(pen, pen->horizon_ms / 3);
        if (stopped_ms != 0 && chance(pen, 1, 3))
            at_ms = stopped_ms + below(pen, 50); /* it comes as the other goes */
        add(pen, SIM_DO_ASSIGN, whom, at_ms, 0);
        if (chance(pen, 1, 2)) {
            stopped_ms = at_ms + below(pen, pen->horizon_ms);
            add(pen, SIM_DO_STOP, whom, stopped_ms, 0);
            if (chance(pen, 1, 4))
                add(pen, SIM_DO_HURRY, whom, stopped_ms + below(pen, 4000), 0);
        }
        if (chance(pen, 1, 4))
            add(pen, SIM_DO_DESTROY, whom, at_ms + below(pen, pen->horizon_ms), 0);
    }
    draw_users(pen);
}

/* Of allocs that are there already: few are to end. */
static void draw_ends(struct pen *pen)
{
    static const uint8_t actions[] = {SIM_DO_STOP, SIM_DO_HURRY, SIM_DO_DESTROY};

    for (size_t i = 0; i < COUNT_OF(actions); i++) {
        for (uint64_t n = below(pen, 3); n > 0; n--) {
            uint64_t at_ms = below(pen, pen->horizon_ms);
            add(pen, (enum sim_action)actions[i], any_alloc(pen), at_ms, 0);
        }
    }
    draw_users(pen);
}

static uint64_t draw_down_ms(struct pen *pen)
{
    switch (below(pen, 4)) {
    case 0:
        return 0;
    case 1:
        return below(pen, 50);
    case 2:
        return below(pen, 3000);
    default:
        return below(pen, 60000);
    }
}

static void draw_crashes(struct pen *pen)
{
    static const struct sim_whom nobody = {0};
    uint64_t timed = below(pen, 3);

    pen->script->cut_down_ms = (uint32_t)draw_down_ms(pen);
    for (int i = 0; i < SIM_CUTS_MAX - 2 && chance(pen, 2, 3); i++)
        pen->script->cuts[i] = (uint32_t)(1 + below(pen, chance(pen, 1, 3) ? 12 : 150));
    for (uint64_t n = 0; n < timed; n++) {
        uint64_t down_ms = draw_down_ms(pen), at_ms = below(pen, pen->horizon_ms);
        enum sim_action action = chance(pen, 1, 3) ? SIM_DO_TERM : SIM_DO_CRASH;
        add(pen, action, nobody, at_ms, (int64_t)down_ms);
    }
}

static void draw_updates(struct pen *pen)
{
    for (uint64_t n = below(pen, 3); n > 0; n--) {
        uint64_t at_ms = below(pen, pen->horizon_ms);
        add(pen, SIM_DO_UPDATE, any_alloc(pen), at_ms, 0);
    }
}

/* Kinds of trouble that come at moments of their own: to whom, and the bound of their number. */
enum victim { TO_NOBODY, TO_ALLOC, TO_TASK, TO_CLAIM, TO_PLUGIN, TO_ANY };

static const struct trouble {
    uint8_t action, victim;
    int64_t from;
    uint64_t range;
} troubles[] = {
    {SIM_DO_SHIM, TO_TASK, 0, 1},          {SIM_DO_RECORD_LOST, TO_TASK, 0, 1},
    {SIM_DO_EXIT, TO_TASK, 0, 3},          {SIM_DO_PLUG, TO_PLUGIN, 0, 1},
    {SIM_DO_BUSY, TO_CLAIM, 0, 30000},     {SIM_DO_UNMOUNT, TO_CLAIM, 0, 1},
    {SIM_DO_TORN_CUT, TO_ANY, 0, 1},       {SIM_DO_TORN_ZERO, TO_ANY, 0, 1},
    {SIM_DO_TORN_FLIP, TO_ANY, 0, 1},      {SIM_DO_BOOT, TO_NOBODY, 0, 60000},
    {SIM_DO_DIR_LOST, TO_ALLOC, 0, 1},     {SIM_DO_SERVER, TO_NOBODY, 1, SIM_SERVER_COUNT - 1},
    {SIM_DO_SLEEP, TO_NOBODY, 0, 3600000}, {SIM_DO_JUMP, TO_NOBODY, -3600000, 7200000},
    {SIM_DO_DISK, TO_NOBODY, 1, 8},        {SIM_DO_STOP_PLUGIN, TO_PLUGIN, 0, 1},
    {SIM_DO_REMOVE, TO_PLUGIN, 0, 1},
};

static struct sim_whom any_victim(struct pen *pen, enum victim victim)
{
    switch (victim) {
    case TO_NOBODY:
        break;
    case TO_ALLOC:
        return any_alloc(pen);
    case TO_TASK:
        return any_task(pen);
    case TO_CLAIM:
        return any_claim(pen);
    case TO_PLUGIN:
        return any_plugin(pen);
    case TO_ANY:
        return any_machine(pen);
    }
    return (struct sim_whom){0};
}

static void draw_trouble(struct pen *pen, const struct trouble *trouble)
{
    static const struct sim_whom nobody = {0};
    struct sim_whom whom = any_victim(pen, (enum victim)trouble->victim);
    uint64_t at_ms = below(pen, pen->horizon_ms), later_ms = below(pen, pen->horizon_ms / 2);
    int64_t number = trouble->from + (int64_t)below(pen, trouble->range);

    if (whom.kind == MACHINE_KIND_COUNT)
        return;
    enum sim_action action = (enum sim_action)trouble->action;
    if (action == SIM_DO_BOOT && number % 2 != 0)
        action = SIM_DO_SHUTDOWN;
    if (action == SIM_DO_DIR_LOST)
        add(pen, SIM_DO_BOOT, nobody, at_ms, 1000);
    if (action == SIM_DO_SERVER)
        add(pen, SIM_DO_SERVER, nobody, at_ms + later_ms, SIM_SERVER_UP);
    add(pen, action, whom, at_ms, number);
}

static void draw_troubles(struct pen *pen)
{
    for (size_t i = 0; i < COUNT_OF(troubles); i++) {
        if (!chance(pen, 1, 5))
            continue;
        for (uint64_t n = 1 + below(pen, 3); n > 0; n--)
            draw_trouble(pen, &troubles[i]);
    }
    for (unsigned fault = 1; fault < SIM_FAULT_COUNT; fault++) {
        enum sim_place place = sim_fault_place(fault);
        bool drawn = place == SIM_PLACE_CALL || place == SIM_PLACE_COMMIT;
        if (drawn && chance(pen, 1, 4))
            pen->script->rates[fault] = (uint16_t)(4 + below(pen, 150));
    }
}

/* Volumes of an alloc that the copy has never heard of would stay claimed, and others wait for
 * them: those worlds are for stories. */
static void draw_older(struct pen *pen)
{
    static const struct sim_whom nobody = {0};

    if (pen->script->plugins_count > 0 || !chance(pen, 1, 3))
        return;
    uint64_t at_ms = below(pen, pen->horizon_ms), later_ms = below(pen, pen->horizon_ms / 2);
    uint64_t down_ms = draw_down_ms(pen);
    add(pen, SIM_DO_COPY, nobody, at_ms, 0);
    add(pen, SIM_DO_OLDER, nobody, at_ms + later_ms, (int64_t)down_ms);
}

static bool is_ordered(const struct sim_script *script, int plugin)
{
    for (unsigned s = 0; s < script->steps_count; s++) {
        const struct sim_step *step = &script->steps[s];
        if (step->whom.kind == MACHINE_PLUGIN && step->whom.member == plugin &&
            step->action != SIM_DO_PLUG)
            return true;
    }
    return false;
}

static bool claims(const struct sim_script *script, const struct sim_alloc *alloc, int plugin)
{
    int of = script->plugins[plugin].of;

    for (unsigned c = 0; c < alloc->claims_count; c++) {
        if (alloc->claims[c].plugin == plugin || alloc->claims[c].plugin == of - 1)
            return true;
    }
    return false;
}

/* Plugins that are tasks; of an alloc that needs none of them itself, or it would wait for ever.
 * Last, as above. */
static void draw_plugin_tasks(struct pen *pen)
{
    struct sim_script *script = pen->script;

    for (int p = 0; p < script->plugins_count; p++) {
        struct sim_whom whom = any_task(pen);
        struct sim_alloc *alloc = &script->allocs[(unsigned)whom.alloc];
        struct sim_task *task = &alloc->tasks[(unsigned)whom.member];
        bool wanted = chance(pen, 1, 2);
        if (!wanted || task->serves != 0 || is_ordered(script, p) || claims(script, alloc, p))
            continue;
        task->serves = (uint8_t)(p + 1);
        task->health_ms = chance(pen, 1, 2) ? 1000 + below(pen, 30000) : 0;
    }
}

/* Up to MOST times what some task got of HOOK is another one, each time several, in one of MODES.
 */
static void draw_others(struct pen *pen, enum task_hook hook, enum sim_action what, uint64_t most,
                        uint64_t modes)
{
    for (uint64_t n = below(pen, most + 1); n > 0; n--) {
        struct sim_whom whom = any_task(pen);
        uint32_t *hooks = pen->script->allocs[whom.alloc].tasks[whom.member].hooks;
        hooks[0] |= 1u << hook;
        hooks[1] |= 1u << hook;
        for (uint64_t times = 1 + below(pen, 5); times > 0; times--) {
            uint64_t at_ms = below(pen, pen->horizon_ms);
            add(pen, what, whom, at_ms, (int64_t)below(pen, modes));
        }
    }
}

/* What templates read changes; last, so that worlds are otherwise what they would be. */
static void draw_changes(struct pen *pen)
{
    draw_others(pen, TASK_HOOK_TEMPLATE, SIM_DO_CHANGE, 3, CHANGE_MODE_COUNT);
}

/* Tokens are renewed, likewise. */
static void draw_renewals(struct pen *pen)
{
    draw_others(pen, TASK_HOOK_IDENTITY, SIM_DO_RENEW, 2, 2 * CHANGE_SCRIPT);
}

/* And nothing can be rendered for a while. */
static void draw_unrendered(struct pen *pen)
{
    for (uint64_t n = below(pen, 3); n > 0; n--) {
        struct sim_whom whom = any_task(pen);
        uint64_t at_ms = below(pen, pen->horizon_ms), length_ms = 100 + below(pen, 20000);
        const struct sim_task *task = &pen->script->allocs[whom.alloc].tasks[whom.member];
        if ((task->hooks[0] >> TASK_HOOK_TEMPLATE & 1u) != 0)
            add(pen, SIM_DO_UNRENDERED, whom, at_ms, (int64_t)length_ms);
    }
}

/* --- jobs --- */

static struct sim_whom job_whom(uint64_t job)
{
    return (struct sim_whom){.kind = MACHINE_KIND_COUNT, .alloc = -1, .member = (int16_t)job};
}

/* A group whose restart policy a job may have. */
static void draw_group(struct pen *pen, unsigned number, bool batch)
{
    draw_alloc(pen, number);
    struct sim_alloc *alloc = &pen->script->allocs[number];
    alloc->after = 0;
    alloc->batch = batch;
    alloc->limit_ms = batch ? alloc->limit_ms : 0; /* no other job has one */
    alloc->sticky = chance(pen, 1, 2);
    alloc->claims_count = 0;
    for (unsigned t = 0; t < alloc->tasks_count; t++) {
        struct sim_task *task = &alloc->tasks[t];
        struct sim_task usual = sim_task_default("");
        task->leader = t == 0 && task->leader;
        task->lifecycle = t == 0 ? LIFECYCLE_MAIN : task->lifecycle;
        task->sidecar = t > 0 && task->sidecar;
        task->interval_ms = usual.interval_ms;
        task->backoff_ms = 1 + below(pen, 5000);
        task->attempts = 1 + (uint32_t)below(pen, 3);
    }
    pen->cast.drawn[number].tasks = alloc->tasks_count;
    pen->cast.drawn[number].claims = 0;
}

static void draw_job(struct pen *pen, uint64_t number)
{
    static const struct {
        uint8_t action;
        uint64_t range; /* of its number */
    } wishes[] = {
        {SIM_DO_REGISTER, 3}, {SIM_DO_REGISTER, 3},   {SIM_DO_COUNT, SIM_COUNT_MAX + 1},
        {SIM_DO_PURGE, 1},    {SIM_DO_DEREGISTER, 1}, {SIM_DO_REPLACE, 3},
        {SIM_DO_REPLACE, 3},  {SIM_DO_GC, 1},         {SIM_DO_TORN_JOB, 1},
        {SIM_DO_TUNE, 4},     {SIM_DO_TUNE, 4},
    };
    uint64_t at_ms = chance(pen, 1, 2) ? 0 : below(pen, pen->horizon_ms / 3);

    add(pen, SIM_DO_REGISTER, job_whom(number), at_ms, 0);
    for (uint64_t n = below(pen, 7); n > 0; n--) {
        uint64_t which = below(pen, COUNT_OF(wishes));
        at_ms = chance(pen, 1, 3) ? at_ms + below(pen, 30) : below(pen, pen->horizon_ms);
        if (pen->calm && wishes[which].action == SIM_DO_TORN_JOB)
            continue;
        add(pen, (enum sim_action)wishes[which].action, job_whom(number), at_ms,
            (int64_t)below(pen, wishes[which].range));
    }
}

/* Few allocs: each is there as often as a job wants it. */
static void draw_control(struct pen *pen)
{
    struct sim_script *script = pen->script;
    unsigned jobs = 1 + (unsigned)below(pen, SIM_JOBS_MAX), groups = 0;

    for (unsigned j = 0; j < jobs; j++) {
        struct sim_job *job = &script->jobs[script->jobs_count++];
        bool batch = chance(pen, 1, 4);
        name(job->name, "j", j);
        job->count = (uint8_t)below(pen, 4);
        job->again = (uint8_t)(chance(pen, 1, 2) ? below(pen, 4) : 0);
        for (uint64_t n = 1 + below(pen, 2); n > 0; n--) {
            draw_group(pen, groups, batch);
            job->groups |= (uint8_t)(1u << groups++);
        }
    }
    pen->cast.allocs = groups;
    script->kept = (uint8_t)below(pen, 5);
    for (unsigned j = 0; j < jobs; j++)
        draw_job(pen, j);
    draw_crashes(pen);
    if (!pen->calm)
        draw_troubles(pen);
}

/* Some that pass by and by, and not for ever. */
static void draw_checks(struct pen *pen, struct sim_alloc *alloc, struct sim_whom whom)
{
    uint64_t all;

    alloc->checks = (uint8_t)(1 + below(pen, SIM_CHECKS_MAX));
    all = ((uint64_t)1 << alloc->checks) - 1;
    for (uint64_t n = 1 + below(pen, 4); n > 0; n--) {
        uint64_t pass = chance(pen, 1, 2) ? all : below(pen, all + 1);
        add(pen, SIM_DO_CHECK, whom, below(pen, pen->horizon_ms), (int64_t)pass);
    }
}

/* What users say of the health of allocs, and of some only they. */
static void draw_health(struct pen *pen)
{
    for (int16_t a = 0; a < pen->script->allocs_count; a++) {
        struct sim_alloc *alloc = &pen->script->allocs[a];
        struct sim_whom whom = {MACHINE_ALLOC, a, -1};

        if (alloc->healthy_deadline_ms == 0)
            continue;
        alloc->manual = chance(pen, 1, 6);
        if (chance(pen, 1, 3))
            draw_checks(pen, alloc, whom);
        for (uint64_t n = below(pen, 4); n > 0; n--) {
            enum sim_action says = chance(pen, 1, 2) ? SIM_DO_HEALTHY : SIM_DO_UNHEALTHY;
            add(pen, says, whom, below(pen, pen->horizon_ms), 0);
        }
    }
}

static void draw_reconnects(struct pen *pen)
{
    for (int16_t a = 0; a < pen->script->allocs_count; a++) {
        if (chance(pen, 1, 4))
            add(pen, SIM_DO_RECONNECT, (struct sim_whom){MACHINE_ALLOC, a, -1},
                below(pen, pen->horizon_ms), 0);
    }
}

void sim_draw(uint64_t seed, enum sim_profile profile, struct sim_script *ret_script)
{
    struct pen pen = {
        .rng = rng_init(seed),
        .script = ret_script,
        .large = profile == SIM_LARGE,
    };
    struct sim_script *script = ret_script;

    memset(script, 0, sizeof(*script));
    script->seed = rng_next(&pen.rng);
    script->server = chance(&pen, 1, 2);
    script->latency = 1;
    script->batching = chance(&pen, 3, 4);
    pen.calm = chance(&pen, 1, 3);
    pen.horizon_ms = pen.large ? 5000 + below(&pen, 60000) : 500 + below(&pen, 12000);
    script->heal_ms = pen.horizon_ms + below(&pen, 3000);
    if (profile == SIM_CONTROL) {
        script->server = 0;
        draw_control(&pen);
        return;
    }

    unsigned allocs = 1 + (unsigned)below(&pen, pen.large ? SIM_ALLOCS_MAX : 2);
    unsigned plugins = (unsigned)below(&pen, pen.large ? SIM_PLUGINS_MAX + 1 : 2);
    for (unsigned p = 0; p < plugins; p++) {
        name(script->plugins[p].name, "p", p);
        script->plugins[p].stages = chance(&pen, 2, 3);
        script->plugins[p].of = p > 0 && chance(&pen, 1, 3);
        script->plugins_count++;
    }
    for (unsigned a = 0; a < allocs; a++) {
        draw_alloc(&pen, a);
        pen.cast.drawn[a].tasks = script->allocs[a].tasks_count;
        pen.cast.drawn[a].claims = script->allocs[a].claims_count;
    }
    pen.cast.allocs = allocs;
    pen.cast.plugins = plugins;
    draw_wishes(&pen);
    draw_crashes(&pen);
    if (!pen.calm)
        draw_troubles(&pen);
    if (script->server)
        draw_updates(&pen);
    if (!pen.calm)
        draw_older(&pen);
    draw_changes(&pen);
    draw_health(&pen);
    draw_plugin_tasks(&pen);
    if (!pen.calm)
        draw_unrendered(&pen);
    draw_renewals(&pen);
    if (script->server)
        draw_reconnects(&pen);
}

void sim_start_draw(const struct sim_start *start, uint64_t seed, struct sim_script *ret_script)
{
    struct pen pen = {
        .rng = rng_init(seed),
        .script = ret_script,
        .cast = {.allocs = start->allocs.count, .plugins = start->plugins.count, .start = start},
    };

    *ret_script = sim_start_script(start, SIM_AWAY_DRAWN);
    ret_script->seed = rng_next(&pen.rng);
    ret_script->latency = 1;
    ret_script->batching = chance(&pen, 3, 4);
    pen.calm = chance(&pen, 1, 3);
    pen.horizon_ms = 5000 + below(&pen, 60000);
    ret_script->heal_ms = pen.horizon_ms + below(&pen, 3000);
    if (pen.cast.allocs == 0)
        return;
    draw_ends(&pen);
    draw_crashes(&pen);
    if (!pen.calm)
        draw_troubles(&pen);
}
