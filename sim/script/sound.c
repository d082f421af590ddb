/*
 * A script as a whole: what is said in two lines and cannot both be meant.
 *
 * A world that is told contradictions breaks some invariant sooner or later, and blames what is
 * right.  So they are refused where they are read, by their lines.  What one line says by itself is
 * read.c's.
 */
#include "sim/script/words.h"

#include "fsm/task.h"

#include <string.h>

enum { STARTS_MAX = 512, WAITED_MS_MAX = 3600 * 1000 };

/* --- allocs and tasks --- */

/* A step ends the task T of alloc A, or puts an end to the waiting for it. */
static bool is_ended(const struct sim_script *script, int a, int t)
{
    bool poststop = script->allocs[a].tasks[t].lifecycle == LIFECYCLE_POSTSTOP;

    for (unsigned s = 0; s < script->steps_count; s++) {
        const struct sim_step *step = &script->steps[s];
        bool exits = step->action == SIM_DO_EXIT && step->whom.member == t;
        bool goes = poststop && step->action == SIM_DO_DESTROY;
        bool is_lost = poststop && step->moment != SIM_AT &&
                       (step->action == SIM_DO_TORN_CUT || step->action == SIM_DO_TORN_ZERO ||
                        step->action == SIM_DO_TORN_FLIP);
        if (step->whom.alloc == a && (exits || goes || is_lost))
            return true;
    }
    return false;
}

/* What comes behind TASK begins only when it has ended by itself. */
static bool is_waited_for(const struct sim_task *task)
{
    return task->lifecycle == LIFECYCLE_POSTSTOP ||
           (task->lifecycle == LIFECYCLE_PRESTART && !task->sidecar);
}

static int check_tasks(const struct sim_script *script, int a, const struct sim_lines *lines,
                       struct err *err)
{
    const struct sim_alloc *alloc = &script->allocs[a];

    if (alloc->tasks_count == 0)
        return err_set(err, ERR_INVALID, "line %d: alloc %s has no task", lines->allocs[a],
                       alloc->name);
    for (int t = 0; t < alloc->tasks_count; t++) {
        const struct sim_task *task = &alloc->tasks[t];
        if (alloc->tasks_count > 1 && task->runs_ms == 0 && is_waited_for(task) &&
            !is_ended(script, a, t))
            return err_set(err, ERR_INVALID,
                           "line %d: the end of task %s/%s is waited for, and it runs until it is "
                           "told to stop: say how long it runs",
                           lines->tasks[a][t], alloc->name, task->name);
        if (alloc->tasks_count > 1 && task->runs_ms > WAITED_MS_MAX && is_waited_for(task) &&
            !is_ended(script, a, t))
            return err_set(err, ERR_INVALID,
                           "line %d: the end of task %s/%s is waited for, and it runs for %llu: no "
                           "world waits for more than %d",
                           lines->tasks[a][t], alloc->name, task->name,
                           (unsigned long long)task->runs_ms, WAITED_MS_MAX);
    }
    return 0;
}

/* A plugin that is a task comes and goes with it. */
static int check_served(const struct sim_script *script, const struct sim_lines *lines,
                        struct err *err)
{
    for (unsigned s = 0; s < script->steps_count; s++) {
        const struct sim_step *step = &script->steps[s];
        struct sim_whom task;
        if ((step->action == SIM_DO_STOP_PLUGIN || step->action == SIM_DO_REMOVE ||
             step->action == SIM_DO_INSTALL) &&
            sim_plugin_task(script, step->whom.member, &task))
            return err_set(err, ERR_INVALID,
                           "line %d: plugin %s is a task: stop or assign its alloc",
                           lines->steps[s], script->plugins[(unsigned)step->whom.member].name);
    }
    return 0;
}

/* How often a task starts by itself until the world is healed. */
static uint64_t starts_of(const struct sim_script *script, const struct sim_task *task)
{
    uint64_t interval_ms = task->interval_ms == 0 ? 1 : task->interval_ms;
    uint64_t by_policy = (script->heal_ms / interval_ms + 1) * ((uint64_t)task->attempts + 1);
    uint64_t by_time = script->heal_ms / (task->runs_ms + task->backoff_ms + 1) + 1;

    if (task->runs_ms == 0 || task->attempts == 0)
        return 1;
    return by_policy < by_time ? by_policy : by_time;
}

static int check_starts(const struct sim_script *script, const struct sim_lines *lines,
                        struct err *err)
{
    uint64_t starts = 0;

    for (unsigned a = 0; a < script->allocs_count; a++) {
        const struct sim_alloc *alloc = &script->allocs[a];
        for (unsigned t = 0; t < alloc->tasks_count; t++) {
            starts += starts_of(script, &alloc->tasks[t]);
            if (starts > STARTS_MAX)
                return err_set(err, ERR_INVALID,
                               "line %d: with task %s/%s there are up to %llu starts until the "
                               "world is healed, %d are kept in mind",
                               lines->tasks[a][t], alloc->name, alloc->tasks[t].name,
                               (unsigned long long)starts, STARTS_MAX);
        }
    }
    return 0;
}

/* --- jobs --- */

static int check_jobs(const struct sim_script *script, const struct sim_lines *lines,
                      struct err *err)
{
    unsigned placed = 0;

    for (unsigned j = 0; j < script->jobs_count; j++) {
        const struct sim_job *job = &script->jobs[j];
        if (script->server)
            return err_set(err, ERR_INVALID,
                           "line %d: job %s is for a node that stands alone, and the mode is "
                           "server",
                           lines->jobs[j], job->name);
        placed |= job->groups;
    }
    for (unsigned a = 0; a < script->allocs_count && script->jobs_count > 0; a++) {
        if ((placed >> a & 1u) == 0)
            return err_set(err, ERR_INVALID, "line %d: there are jobs, and alloc %s is of none",
                           lines->allocs[a], script->allocs[a].name);
        if (script->allocs[a].claims_count > 0)
            return err_set(err, ERR_INVALID,
                           "line %d: alloc %s is of a job and has claims, which jobs cannot have",
                           lines->allocs[a], script->allocs[a].name);
        if (script->allocs[a].after != 0)
            return err_set(err, ERR_INVALID,
                           "line %d: alloc %s is of a job, which decides what it comes after",
                           lines->allocs[a], script->allocs[a].name);
    }
    return 0;
}

/* --- steps --- */

static bool is_boot(const struct sim_step *step)
{
    return step->action == SIM_DO_BOOT || step->action == SIM_DO_SHUTDOWN;
}

/* The host is down, or comes up just then. */
static bool is_rebooting(const struct sim_script *script, uint64_t at_ms)
{
    for (unsigned s = 0; s < script->steps_count; s++) {
        const struct sim_step *step = &script->steps[s];
        if (is_boot(step) &&
            (step->moment != SIM_AT ||
             (step->at_ms <= at_ms && at_ms <= step->at_ms + (uint64_t)step->number)))
            return true;
    }
    return false;
}

/* Why STEP cannot be there, or NULL. */
static const char *misplaced(const struct sim_script *script, const struct sim_step *step)
{
    bool wish = step->action == SIM_DO_ASSIGN || step->action == SIM_DO_UPDATE ||
                step->action == SIM_DO_STOP || step->action == SIM_DO_HURRY ||
                step->action == SIM_DO_DESTROY;

    if (wish && script->jobs_count > 0)
        return "there are jobs, which decide that";
    if (step->action == SIM_DO_OLDER && script->jobs_count > 0)
        return "there are jobs, and an older copy is put back only where there are none";
    if (step->action == SIM_DO_DIR_LOST && step->moment == SIM_AT &&
        !is_rebooting(script, step->at_ms))
        return "directories are lost with a reboot, and there is none then";
    return NULL;
}

static bool is_fault(const struct sim_step *step)
{
    return step->action == SIM_DO_CRASH || step->action == SIM_DO_TERM ||
           step->action == SIM_DO_OLDER || is_boot(step);
}

static int check_steps(const struct sim_script *script, const struct sim_lines *lines,
                       struct err *err)
{
    char what[SIM_LINE_BYTES];

    for (unsigned s = 0; s < script->steps_count; s++) {
        const struct sim_step *step = &script->steps[s];
        const char *why = misplaced(script, step);
        bool late = script->expects_count > 0 && step->moment == SIM_AT && is_fault(step) &&
                    step->at_ms > script->heal_ms;
        if (why == NULL && !late)
            continue;
        sim_step_what(script, step, what, sizeof(what));
        if (why != NULL)
            return err_set(err, ERR_INVALID, "line %d: %s: %s", lines->steps[s], what, why);
        return err_set(err, ERR_INVALID,
                       "line %d: %s is at %llu, and the world is healed from %llu on",
                       lines->steps[s], what, (unsigned long long)step->at_ms,
                       (unsigned long long)script->heal_ms);
    }
    return 0;
}

/* --- expectations --- */

static bool is_same_whom(const struct sim_whom *a, const struct sim_whom *b)
{
    return a->kind == b->kind && a->alloc == b->alloc && a->member == b->member;
}

static bool is_same_fact(const struct sim_fact *a, const struct sim_fact *b)
{
    return a->kind == b->kind && a->detail == b->detail && is_same_whom(&a->whom, &b->whom);
}

/* No number is what both want. */
static bool exclude(const struct sim_expect *a, const struct sim_expect *b)
{
    if (a->relation == SIM_EXACTLY && b->relation == SIM_EXACTLY)
        return a->number != b->number;
    if (a->relation != SIM_AT_LEAST && b->relation == SIM_AT_LEAST)
        return a->number < b->number;
    if (a->relation == SIM_AT_LEAST && b->relation != SIM_AT_LEAST)
        return b->number < a->number;
    if (a->relation == SIM_EXACTLY)
        return b->relation == SIM_AT_MOST && a->number > b->number;
    return b->relation == SIM_EXACTLY && a->relation == SIM_AT_MOST && b->number > a->number;
}

static bool contradict(const struct sim_expect *a, const struct sim_expect *b)
{
    if (a->question != b->question)
        return false;
    if (a->question == SIM_ASKS_COUNT)
        return is_same_fact(&a->fact, &b->fact) && a->since == b->since && exclude(a, b);
    if (a->question == SIM_ASKS_ORDER)
        return !a->always && is_same_fact(&a->fact, &b->then) && is_same_fact(&a->then, &b->fact) &&
               !is_same_fact(&a->fact, &a->then);
    return is_same_whom(&a->fact.whom, &b->fact.whom) && a->number != b->number;
}

static void take_line(void *ctx, const char *text)
{
    (void)text_append(ctx, SIM_LINE_BYTES, text); /* no longer than what was read */
}

static int check_expects(const struct sim_script *script, const struct sim_lines *lines,
                         struct err *err)
{
    for (unsigned i = 0; i < script->expects_count; i++) {
        for (unsigned k = 0; k < i; k++) {
            char one[SIM_LINE_BYTES] = "", other[SIM_LINE_BYTES] = "";
            if (!contradict(&script->expects[k], &script->expects[i]))
                continue;
            sim_expect_print(script, &script->expects[i], take_line, one);
            sim_expect_print(script, &script->expects[k], take_line, other);
            return err_set(err, ERR_INVALID,
                           "line %d: \"%.*s\" cannot be beside \"%.*s\" of line "
                           "%d",
                           lines->expects[i], (int)strcspn(one, "\n"), one,
                           (int)strcspn(other, "\n"), other, lines->expects[k]);
        }
    }
    return 0;
}

int sim_script_sound(const struct sim_script *script, const struct sim_lines *lines,
                     struct err *err)
{
    int code = 0;

    for (int a = 0; a < script->allocs_count && code == 0; a++)
        code = check_tasks(script, a, lines, err);
    if (code == 0)
        code = check_jobs(script, lines, err);
    if (code == 0)
        code = check_starts(script, lines, err);
    if (code == 0)
        code = check_served(script, lines, err);
    if (code == 0)
        code = check_steps(script, lines, err);
    if (code == 0)
        code = check_expects(script, lines, err);
    return code;
}
