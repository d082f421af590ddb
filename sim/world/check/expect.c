/*
 * What a story expects, and whether it came.
 *
 * While a script with expectations runs, what happens is kept in mind as facts; when the healed
 * world has settled they are counted and put in order, and the rest is asked of journal, server and
 * world as they are.  A story whose steps or fates never came about does not tell what it says:
 * that is a failure, too.
 */
#include "sim/world/check/check.h"
#include "sim/world/world.h"

#include "sim/script/words.h"

#include <string.h>

/* --- what is kept in mind --- */

static bool is_same(const struct sim_fact *a, const struct sim_fact *b)
{
    return a->kind == b->kind && a->detail == b->detail && a->whom.kind == b->whom.kind &&
           a->whom.alloc == b->whom.alloc && a->whom.member == b->whom.member;
}

static int64_t count(const struct sim *sim, const struct sim_fact *fact, uint32_t since)
{
    int64_t found = 0;

    for (size_t i = 0; i < sim->told.facts_count; i++)
        found += sim->told.facts[i].incarnation >= since && is_same(&sim->told.facts[i].fact, fact);
    return found;
}

/* Which fact was the first of its kind; SIM_FACTS_MAX: none was. */
static size_t first(const struct sim *sim, const struct sim_fact *fact)
{
    for (size_t i = 0; i < sim->told.facts_count; i++) {
        if (is_same(&sim->told.facts[i].fact, fact))
            return i;
    }
    return SIM_FACTS_MAX;
}

/* --- at the end --- */

struct line {
    char text[SIM_LINE_BYTES];
};

static void append(void *ctx, const char *text)
{
    struct line *line = ctx;

    (void)text_append(line->text, sizeof(line->text), text); /* no longer than what was read */
}

static void fail(struct sim *sim, struct line *line, const char *what)
{
    line->text[strcspn(line->text, "\n")] = '\0';
    sim_violate(sim, 0, "\"%s\": %s", line->text, what);
}

static void judge_count(const struct sim *sim, const struct sim_expect *expect, char *ret_why,
                        size_t size)
{
    int64_t found = count(sim, &expect->fact, expect->since);
    bool holds = expect->relation == SIM_AT_MOST    ? found <= expect->number
                 : expect->relation == SIM_AT_LEAST ? found >= expect->number
                                                    : found == expect->number;

    if (!holds)
        (void)text_format(ret_why, size, "it was %lld", (long long)found); /* fits */
}

/* Neither comes in a run that was cut short before it: then there is no order to break. */
static void judge_order(const struct sim *sim, const struct sim_expect *expect, char *ret_why,
                        size_t size)
{
    size_t one = first(sim, &expect->fact), two = first(sim, &expect->then);

    if (two == SIM_FACTS_MAX && !expect->always)
        (void)text_copy(ret_why, size, "the second never came"); /* fits */
    else if (one == SIM_FACTS_MAX && (two != SIM_FACTS_MAX || !expect->always))
        (void)text_copy(ret_why, size, "the first never came"); /* fits */
    else if (two < one)
        (void)text_copy(ret_why, size, "the second came first"); /* fits */
}

static void judge_state(const struct sim *sim, const struct sim_expect *expect, char *ret_why,
                        size_t size)
{
    const struct sim_whom *whom = &expect->fact.whom;
    const struct machine *record = sim_record(sim, whom);

    if (record == NULL ? expect->number >= 0 : record->state != expect->number)
        (void)text_format(
            ret_why, size, "it is %s",
            record == NULL ? "absent" : fsm_state_name(fsm_definition(whom->kind), record->state));
}

static void judge_exit(const struct sim *sim, const struct sim_expect *expect, char *ret_why,
                       size_t size)
{
    const struct machine *record = sim_record(sim, &expect->fact.whom);
    const struct task *task = record == NULL ? NULL : task_of(record);

    if (task == NULL || !task->exit_seen)
        (void)text_copy(ret_why, size, "there is none"); /* fits */
    else if (!task->exit.known && expect->number >= 0)
        (void)text_copy(ret_why, size, "it is unknown"); /* fits */
    else if (task->exit.known && task->exit.code != expect->number)
        (void)text_format(ret_why, size, "it is %d", (int)task->exit.code); /* fits */
}

static void judge_status(const struct sim *sim, const struct sim_expect *expect, char *ret_why,
                         size_t size)
{
    const struct sim_alloc_state *state = &sim->allocs[(unsigned)expect->fact.whom.alloc];
    const struct alloc *alloc = core_alloc(sim->core, state->id.text);
    int64_t status = state->reported_status;

    if (!sim->script->server)
        status = alloc == NULL ? -1 : alloc->client_status;
    if (status != expect->number)
        (void)text_format(ret_why, size, "it is %s",
                          status < 0 ? "absent" : sim_status_words[status]); /* fits */
}

static void judge_health(const struct sim *sim, const struct sim_expect *expect, char *ret_why,
                         size_t size)
{
    const struct machine *record = sim_record(sim, &expect->fact.whom);

    if (record == NULL)
        (void)text_copy(ret_why, size, "it is absent"); /* fits */
    else if (alloc_of(record)->health != expect->number)
        (void)text_format(ret_why, size, "it is %s",
                          sim_health_words[alloc_of(record)->health]); /* fits */
}

static bool is_alive(const struct sim *sim, const struct sim_whom *whom)
{
    int32_t at = sim->allocs[(unsigned)whom->alloc].tasks[(unsigned)whom->member].newest;
    bool alive = false;

    for (; at >= 0; at = sim->attempts.items[at].next)
        alive |= sim_attempt_lives(&sim->attempts.items[at]);
    return alive;
}

static void judge_yes(struct sim *sim, const struct sim_expect *expect, char *ret_why, size_t size)
{
    const struct sim_whom *whom = &expect->fact.whom;
    bool is = false;

    if (expect->question == SIM_ASKS_ALIVE) {
        is = is_alive(sim, whom);
    } else {
        const struct sim_claim_state *claim = sim_claim_of(sim, whom);
        is = expect->question == SIM_ASKS_MOUNTED  ? claim->mounted
             : expect->question == SIM_ASKS_STAGED ? sim_disk_of(sim, whom)->staged
                                                   : claim->held;
    }
    if (is != (expect->number != 0))
        (void)text_format(ret_why, size, "it is %s", is ? "yes" : "no"); /* fits */
}

static void judge_job(const struct sim *sim, const struct sim_expect *expect, char *ret_why,
                      size_t size)
{
    int job = expect->fact.whom.member;
    int64_t found = expect->question == SIM_ASKS_LIVE   ? (int64_t)sim_job_live(sim, job)
                    : expect->question == SIM_ASKS_KEPT ? (int64_t)sim_job_kept(sim, job)
                                                        : sim_job_version(sim, job);

    if (found != expect->number)
        (void)text_format(ret_why, size, "it is %lld", (long long)found); /* fits */
}

static void judge(struct sim *sim, const struct sim_expect *expect)
{
    struct line line = {.text = ""};
    char why[64] = "";

    switch ((enum sim_question)expect->question) {
    case SIM_ASKS_COUNT:
        judge_count(sim, expect, why, sizeof(why));
        break;
    case SIM_ASKS_ORDER:
        judge_order(sim, expect, why, sizeof(why));
        break;
    case SIM_ASKS_STATE:
        judge_state(sim, expect, why, sizeof(why));
        break;
    case SIM_ASKS_EXIT:
        judge_exit(sim, expect, why, sizeof(why));
        break;
    case SIM_ASKS_STATUS:
        judge_status(sim, expect, why, sizeof(why));
        break;
    case SIM_ASKS_HEALTH:
        judge_health(sim, expect, why, sizeof(why));
        break;
    case SIM_ASKS_ALIVE:
    case SIM_ASKS_MOUNTED:
    case SIM_ASKS_STAGED:
    case SIM_ASKS_CLAIMED:
        judge_yes(sim, expect, why, sizeof(why));
        break;
    case SIM_ASKS_LIVE:
    case SIM_ASKS_KEPT:
    case SIM_ASKS_JOB:
        judge_job(sim, expect, why, sizeof(why));
        break;
    case SIM_QUESTION_COUNT:
        unreachable("question");
    }
    if (why[0] == '\0')
        return;
    sim_expect_print(sim->script, expect, append, &line);
    fail(sim, &line, why);
}

/* What the story says happens has happened. */
static void judge_telling(struct sim *sim)
{
    struct line line = {.text = ""};

    for (unsigned i = 0; i < sim->script->steps_count; i++) {
        if (sim->told.stepped[i])
            continue;
        sim_step_print(sim->script, &sim->script->steps[i], append, &line);
        fail(sim, &line, "it never happened");
        return;
    }
    for (unsigned i = 0; i < sim->script->fates_count; i++) {
        if (sim->told.struck[i])
            continue;
        sim_fate_print(sim->script, &sim->script->fates[i], append, &line);
        fail(sim, &line, "it struck nothing");
        return;
    }
}

void sim_judge(struct sim *sim)
{
    const struct sim_script *script = sim->script;

    for (unsigned i = 0; i < script->expects_count && !sim->over; i++) {
        if (script->expects[i].always || !script->varied)
            judge(sim, &script->expects[i]);
    }
    if (script->expects_count > 0 && !script->varied && !sim->over)
        judge_telling(sim);
}
