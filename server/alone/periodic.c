/*
 * Periodic jobs: launched when it is time.
 *
 * When a job was launched last is in what the journal holds of it, and written in the commit that
 * registers what is launched: a crash neither loses a launch nor makes it twice.  What times were
 * missed while nobody was there to look comes to one launch.  Follows nomad v2.0.5
 * nomad/periodic.go.
 */
#include "server/alone/part.h"

#include "spec/cron.h"
#include "spec/job.h"

#include <string.h>

/* The wall clock may be set: it is looked at so often. */
enum { LOOK_AT_CLOCK_MS = 60000 };

/* The wall clock's UNIX_S in node time, or when that is to be looked at again. */
static void wait_for(struct alone *alone, int64_t unix_s)
{
    int64_t now_ns = life_unix_ns(alone->config.life);
    int64_t left_ms = LOOK_AT_CLOCK_MS;

    if (unix_s - now_ns / 1000000000 <= LOOK_AT_CLOCK_MS / 1000)
        left_ms = (unix_s * 1000000000 - now_ns + 999999) / 1000000;
    if (left_ms > LOOK_AT_CLOCK_MS)
        left_ms = LOOK_AT_CLOCK_MS;
    periodic_look_at(alone,
                     life_now_ms(alone->config.life) + (uint64_t)(left_ms < 1 ? 1 : left_ms));
}

/* --- launching --- */

static bool is_launched(const struct alone *alone, const struct job *job, int64_t at_s)
{
    json_t *made = jobspec_launch(job->json, at_s);
    bool found = made != NULL && job_find(alone, job->namespace,
                                          json_string_value(json_object_get(made, "ID"))) != NULL;

    json_decref(made);
    return found;
}

/* What is launched of JOB for AT_S; and JOB knows of it, in the same commit. */
static int launch(struct alone *alone, struct job *job, int64_t at_s,
                  struct alone_evaluation *ret_evaluation, struct err *err)
{
    json_t *made = jobspec_launch(job->json, at_s), *json;

    if (made == NULL)
        return err_set(err, ERR_LIMIT, "the id of what is launched would be too long");
    version_strip(made);
    (void)json_object_del(made, "Stop"); /* of the job that it is made of */
    int code = register_json(alone, made, NULL, NULL, "periodic-job", ret_evaluation, err);
    if (code < 0)
        return code;
    struct change change = change_begin(alone, job);
    json = json_copy(job->json);
    check(json_object_set_new(json, PERIODIC_LAUNCHED, json_integer((json_int_t)at_s)) == 0);
    change_job(alone, &change, json);
    return change_end(alone, &change, 0);
}

/* True if something that was launched of JOB has not ended. */
static bool goes_on(const struct alone *alone, const struct job *job)
{
    for (const struct job *child = alone->jobs; child != NULL; child = child->hh.next) {
        if (text_equal(child->namespace, job->namespace) &&
            text_equal(json_string_value(json_object_get(child->json, "ParentID")), job->id) &&
            (child->unsaved || !text_equal(alone_job_status(alone, &child->public), "dead")))
            return true;
    }
    return false;
}

/* JOB is not launched for the times until now. */
static void pass(struct alone *alone, struct job *job, const char *why)
{
    job->passed_s = periodic_now_s(alone);
    say(&alone->config.say, SAY_INFO, "server", "a launch is left out job=%s why=%s",
        text_value(job->id), text_value(why));
}

static void launch_now(struct alone *alone, struct job *job, int64_t at_s)
{
    struct alone_evaluation evaluation;
    struct err err = {0};
    int code = life_check_turn(alone->config.life, 0, &err);

    if (code == 0 && job->unsaved)
        code = ERR_AGAIN; /* what it says is to be decided */
    else if (code == 0 && is_launched(alone, job, at_s))
        code = err_set(&err, ERR_INVALID, "it was launched for that second");
    else if (code == 0)
        code = launch(alone, job, at_s, &evaluation, &err);
    if (code == ERR_AGAIN)
        periodic_look_at(alone, life_now_ms(alone->config.life) + LOOK_AGAIN_MS);
    else if (code < 0)
        pass(alone, job, err.text);
}

/* The first time after SINCE_S that JOB names. */
static int64_t next_launch(const struct alone *alone, const json_t *json, int64_t since_s,
                           int64_t *ret_then_s, struct err *err)
{
    struct zone *zone;
    int64_t due_s = CRON_NEVER;

    *ret_then_s = CRON_NEVER;
    if (periodic_zone(alone, json, &zone, err) < 0)
        return CRON_NEVER;
    due_s = jobspec_next_launch(json, zone, since_s);
    if (due_s != CRON_NEVER)
        *ret_then_s = jobspec_next_launch(json, zone, due_s);
    zone_free(zone);
    return due_s;
}

/* They change with a launch only: the looks in between, one a minute, read no file. */
static void know_times(struct alone *alone, struct job *job, int64_t since_s)
{
    struct err err = {0};

    if (job->times.since_s == since_s)
        return;
    job->times.due_s = next_launch(alone, job->json, since_s, &job->times.then_s, &err);
    job->times.since_s = err.code == 0 ? since_s : CRON_NEVER;
    if (err.code != 0 && !job->told)
        say(&alone->config.say, SAY_WARN, "server", "a job is not launched job=%s error=%s",
            text_value(job->id), text_value(err.text));
    job->told = err.code != 0;
}

static void look(struct alone *alone, struct job *job)
{
    struct periodic asked = {.now_s = periodic_now_s(alone), .away = job->away};
    int64_t since_s = (int64_t)job_number(job->json, PERIODIC_LAUNCHED), at_s;

    since_s = policy_launched_since(since_s < job->passed_s ? job->passed_s : since_s, asked.now_s);
    know_times(alone, job, since_s);
    asked.due_s = job->times.due_s;
    asked.then_s = job->times.then_s;
    asked.prohibits_overlap = jobspec_prohibits_overlap(job->json);
    asked.goes_on = asked.due_s <= asked.now_s && asked.prohibits_overlap && goes_on(alone, job);
    enum launching verdict = policy_launch(&asked, &at_s);
    if (verdict == LAUNCH_NOW)
        launch_now(alone, job, at_s);
    else if (verdict == LAUNCH_SKIPPED)
        pass(alone, job, "what was launched before goes on");
    if (verdict != LAUNCH_NOW)
        job->away = false;
    wait_for(alone, verdict == LAUNCH_LATER ? at_s : asked.then_s);
}

void periodic_tidy(struct alone *alone)
{
    struct job *next;

    if (alone->periodic == NULL || alone->launch_at_ms > life_now_ms(alone->config.life))
        return;
    alone->launch_at_ms = 0;
    for (struct job *job = alone->periodic; job != NULL; job = next) {
        next = job->periodic_next;
        look(alone, job);
    }
}

/* --- for users --- */

int alone_force(struct alone *alone, const char *namespace, const char *job_id,
                struct alone_evaluation *ret_evaluation, struct err *err)
{
    struct job *job = job_find(alone, namespace, job_id);

    if (job == NULL || json_object_get(job->json, "cairnPurge") != NULL)
        return err_set(err, ERR_GONE, "job not found");
    if (!jobspec_is_periodic(job->json))
        return err_set(err, ERR_INVALID, "can't force launch non-periodic job");
    if (!job->periodic)
        return err_set(err, ERR_INVALID,
                       "force launch for job \"%.127s\" failed: can't force run non-tracked job "
                       "\"%.127s\" (%.64s)",
                       job->id, job->id, job->namespace);
    int code = life_check_turn(alone->config.life, 0, err);
    if (code < 0)
        return code;
    if (is_launched(alone, job, periodic_now_s(alone)))
        return err_set(err, ERR_AGAIN, "job \"%s\" was launched this second: try again", job->id);
    return launch(alone, job, periodic_now_s(alone), ret_evaluation, err);
}

int64_t alone_next_launch(const struct alone *alone, const json_t *job)
{
    int64_t then_s;

    if (alone == NULL || !jobspec_is_launched_by_time(job) ||
        json_is_true(json_object_get(job, "Stop")))
        return CRON_NEVER;
    return next_launch(alone, job, periodic_now_s(alone), &then_s, NULL);
}
