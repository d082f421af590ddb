/* Which jobs are launched at times, and what their times are meant in: periodic.c launches them. */
#include "server/alone/part.h"

#include "spec/cron.h"
#include "spec/job.h"

#include <stdlib.h>

#include <utlist.h>

int64_t periodic_now_s(const struct alone *alone)
{
    return life_unix_ns(alone->config.life) / 1000000000;
}

int periodic_zone(const struct alone *alone, const json_t *json, struct zone **ret_zone,
                  struct err *err)
{
    const char *name = jobspec_time_zone(json);
    char *bytes = NULL;
    size_t length = 0;

    *ret_zone = NULL;
    if (zone_is_utc(name))
        return 0;
    int code = alone->config.read_zone == NULL
                   ? err_set(err, ERR_GONE, "there are no time zones here")
                   : alone->config.read_zone(alone->config.ctx, name, &bytes, &length, err);
    if (code == 0)
        code = zone_parse(bytes, length, ret_zone, err);
    free(bytes);
    return code < 0 ? err_wrap(err, "time zone \"%.63s\"", name) : 0;
}

int periodic_check(const struct alone *alone, const json_t *json, struct err *err)
{
    struct err why = {0};
    struct zone *zone;

    if (!jobspec_is_launched_by_time(json))
        return 0;
    if (periodic_zone(alone, json, &zone, &why) < 0)
        return err_set(err, ERR_INVALID, "%s", why.text);
    zone_free(zone);
    return 0;
}

void periodic_stamp(const struct alone *alone, json_t *json)
{
    if (jobspec_is_launched_by_time(json))
        check(json_object_set_new(json, PERIODIC_LAUNCHED,
                                  json_integer((json_int_t)periodic_now_s(alone))) == 0);
}

/* --- which are looked at --- */

void periodic_note(struct alone *alone, struct job *job)
{
    bool launched = jobspec_is_launched_by_time(job->json) && !job->public.stop;

    if (launched && !job->periodic)
        DL_APPEND2(alone->periodic, job, periodic_prev, periodic_next);
    if (!launched && job->periodic)
        DL_DELETE2(alone->periodic, job, periodic_prev, periodic_next);
    job->periodic = launched;
    job->times.since_s = CRON_NEVER;
    if (launched)
        alone->launch_at_ms = 1; /* the next tidy finds out */
}

void periodic_forget(struct alone *alone, struct job *job)
{
    if (job->periodic)
        DL_DELETE2(alone->periodic, job, periodic_prev, periodic_next);
    job->periodic = false;
}

void periodic_resume(struct alone *alone)
{
    for (struct job *job = alone->periodic; job != NULL; job = job->periodic_next)
        job->away = true;
}

uint64_t periodic_deadline_ms(const struct alone *alone)
{
    return alone->periodic == NULL ? 0 : alone->launch_at_ms;
}

void periodic_look_at(struct alone *alone, uint64_t at_ms)
{
    if (alone->launch_at_ms == 0 || at_ms < alone->launch_at_ms)
        alone->launch_at_ms = at_ms;
}
