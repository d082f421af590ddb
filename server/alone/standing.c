/*
 * Whether allocs may be placed on this node, and what an operator has said about it.
 *
 * Kept as one JSON text under "node/scheduling" in the journal's `spec` table, so that a node that
 * is drained when the daemon dies goes on being drained.  Names, words and events are Nomad's
 * (v2.0.5 nomad/node_endpoint.go, nomad/state updateNodeDrainImpl).
 */
#include "server/alone/part.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 10 }; /* as many as Nomad keeps of a node */

static const char key[] = "node/scheduling";

/* --- what is said --- */

static json_t *nothing_said(void)
{
    json_t *json = json_pack("{s:s, s:n, s:n, s:[]}", "Eligibility", "eligible", "Drain",
                             "LastDrain", "Events");

    check(json != NULL);
    return json;
}

/* What the next commit decides, if it is posted. */
static const json_t *newest(const struct alone *alone)
{
    return alone->standing.next != NULL ? alone->standing.next : alone->standing.json;
}

static bool says_eligible(const json_t *json)
{
    return text_equal(json_string_value(json_object_get(json, "Eligibility")), "eligible");
}

static bool says_drained(const json_t *json)
{
    return json_is_object(json_object_get(json, "Drain"));
}

const json_t *alone_standing(const struct alone *alone)
{
    return alone->standing.json;
}

bool alone_is_eligible(const struct alone *alone)
{
    return says_eligible(newest(alone));
}

const json_t *standing_drain(const struct alone *alone)
{
    const json_t *json = alone->standing.json;

    return alone->standing.next == NULL && says_drained(json) ? json_object_get(json, "Drain")
                                                              : NULL;
}

/* --- as it is stored --- */

/* OBJECT has a number of 0 or more under each of NAMES. */
static bool has_numbers(const json_t *object, const char *const *names)
{
    bool has = json_is_object(object);

    for (; has && *names != NULL; names++) {
        const json_t *number = json_object_get(object, *names);
        has = json_is_integer(number) && json_integer_value(number) >= 0;
    }
    return has;
}

static bool is_past(const json_t *last)
{
    static const char *const times[] = {"StartedAt", "UpdatedAt", NULL};

    return json_is_null(last) ||
           (has_numbers(last, times) && json_is_string(json_object_get(last, "Status")) &&
            json_is_object(json_object_get(last, "Meta")));
}

static const char *fault_of(const json_t *json)
{
    static const char *const times[] = {"StartedAt", "ForceAt", "ForceMs", NULL};
    const json_t *drain = json_object_get(json, "Drain"), *events = json_object_get(json, "Events");
    const char *eligibility = json_string_value(json_object_get(json, "Eligibility"));
    static const char *const event_times[] = {"Time", NULL};
    const json_t *event;
    size_t i;

    if (eligibility == NULL || (!says_eligible(json) && !text_equal(eligibility, "ineligible")))
        return "neither eligible nor ineligible";
    if (!json_is_null(drain) &&
        (!has_numbers(drain, times) || !json_is_integer(json_object_get(drain, "Deadline")) ||
         !json_is_boolean(json_object_get(drain, "IgnoreSystemJobs")) || says_eligible(json)))
        return "a drain that is none";
    if (!is_past(json_object_get(json, "LastDrain")) || !json_is_array(events))
        return "what is said of drains makes no sense";
    json_array_foreach(events, i, event)
    {
        if (!has_numbers(event, event_times) ||
            !json_is_string(json_object_get(event, "Subsystem")) ||
            !json_is_string(json_object_get(event, "Message")) ||
            !json_is_object(json_object_get(event, "Details")))
            return "an event that is none";
    }
    return NULL;
}

int alone_load_standing(struct alone *alone, struct err *err)
{
    char *text;
    size_t length;
    int code = life_read_spec(alone->config.life, key, &text, &length, err);

    alone->standing.json = NULL;
    if (code == 0) {
        alone->standing.json = json_loadb(text, length, 0, NULL);
        free(text);
    }
    const char *fault = code == 0 ? fault_of(alone->standing.json) : NULL;
    if (code != 0 || fault != NULL) {
        json_decref(alone->standing.json);
        alone->standing.json = nothing_said();
    }
    if (fault != NULL) {
        say(&alone->config.say, SAY_ERROR, "server",
            "whether the node is drained cannot be read; it is eligible, say it again why=%s",
            text_value(fault));
        code = life_spec_aside(alone->config.life, key, fault, err);
    }
    return code == ERR_GONE ? 0 : code;
}

void alone_free_standing(struct alone *alone)
{
    json_decref(alone->standing.json);
    json_decref(alone->standing.next);
    alone->standing = (struct standing){0};
}

/* Deployments go on, and what waits is placed, where it may be again. */
static void look_at_all(struct alone *alone)
{
    for (struct job *job = alone->jobs; job != NULL; job = job->hh.next)
        alone_note_look(alone, job);
}

static void decided(void *ctx, int code, const struct err *err)
{
    struct alone *alone = ctx;
    struct standing *standing = &alone->standing;
    struct life_subject everything = {.kind = LIFE_EVERYTHING};

    (void)err; /* whoever asked gets it too */
    if (standing->next == NULL)
        return; /* by one that was asked for before it, in the same turn */
    if (code == 0) {
        json_decref(standing->json);
        standing->json = standing->next;
        life_changed(alone->config.life, &everything); /* by a commit of its own, perhaps */
    } else {
        json_decref(standing->next);
    }
    standing->next = NULL;
    standing->drain_at_ms = life_now_ms(alone->config.life) + (code == 0 ? 0 : LOOK_AGAIN_MS);
    if (alone_is_eligible(alone))
        look_at_all(alone);
}

/* JSON (moved) is said from the next commit on. */
static void post(struct alone *alone, json_t *json)
{
    struct core *core = life_core(alone->config.life);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);

    check(text != NULL);
    json_decref(alone->standing.next);
    alone->standing.next = json;
    core_propose(core, true);
    core_spec(core, key, text, strlen(text));
    core_propose(core, false);
    free(text);
    life_after_commit(alone->config.life, decided, alone);
}

/* --- what changes --- */

static json_t *change(const struct alone *alone)
{
    json_t *json = json_deep_copy(newest(alone));

    check(json != NULL);
    return json;
}

static void put(json_t *object, const char *name, json_t *value)
{
    check(json_object_set_new(object, name, value) == 0);
}

/* DETAILS are moved. */
static void note(struct alone *alone, json_t *json, const char *subsystem, const char *message,
                 json_t *details)
{
    json_t *events = json_object_get(json, "Events");

    check(json_array_append_new(events,
                                json_pack("{s:I, s:s, s:s, s:o}", "Time",
                                          (json_int_t)life_unix_ns(alone->config.life), "Subsystem",
                                          subsystem, "Message", message, "Details", details)) == 0);
    while (json_array_size(events) > EVENTS_MAX)
        check(json_array_remove(events, 0) == 0);
    say(&alone->config.say, SAY_INFO, "server", "%s", message);
}

int alone_set_eligible(struct alone *alone, bool eligible, struct err *err)
{
    if (eligible && says_drained(newest(alone)))
        return err_set(
            err, ERR_INVALID,
            "can not set node's scheduling eligibility to eligible while it is draining");
    int code = life_check_turn(alone->config.life, 0, err);
    if (code < 0 || alone_is_eligible(alone) == eligible)
        return code;
    json_t *json = change(alone);
    put(json, "Eligibility", json_string(eligible ? "eligible" : "ineligible"));
    note(alone, json, "Cluster",
         eligible ? "Node marked as eligible for scheduling"
                  : "Node marked as ineligible for scheduling",
         json_object());
    post(alone, json);
    return 0;
}

/* The drain that is under way is STATUS by now; the META (may be NULL) of before stays where there
 * is none. */
static void note_last(struct alone *alone, json_t *json, const char *status, const json_t *meta)
{
    json_t *last = json_object_get(json, "LastDrain");

    if (json_is_null(last)) {
        last = json_pack("{s:I, s:{}}", "StartedAt", (json_int_t)life_unix_ns(alone->config.life),
                         "Meta");
        put(json, "LastDrain", last);
    }
    put(last, "UpdatedAt", json_integer((json_int_t)life_unix_ns(alone->config.life)));
    put(last, "Status", json_string(status));
    if (json_object_size(meta) > 0)
        put(last, "Meta", json_deep_copy(meta));
}

int alone_drain(struct alone *alone, const struct alone_drain *drain, struct err *err)
{
    bool was = says_drained(newest(alone)), limited = drain->deadline_ns > 0;
    uint64_t now_ms = life_now_ms(alone->config.life);
    int64_t now_ns = life_unix_ns(alone->config.life);
    int code = life_check_turn(alone->config.life, 0, err);

    if (code < 0)
        return code;
    if (drain->deadline_ns > (int64_t)DURATION_MS_MAX * 1000000)
        return err_set(err, ERR_INVALID, "a drain has a deadline of at most %llu s",
                       (unsigned long long)(DURATION_MS_MAX / 1000));
    json_t *json = change(alone);
    const json_t *before = json_object_get(json, "Drain");
    json_int_t started = was ? json_integer_value(json_object_get(before, "StartedAt")) : now_ns;
    put(json, "Drain",
        json_pack("{s:I, s:b, s:I, s:I, s:I}", "Deadline", (json_int_t)drain->deadline_ns,
                  "IgnoreSystemJobs", drain->ignore_system, "StartedAt", started, "ForceAt",
                  (json_int_t)(limited ? now_ns + drain->deadline_ns : 0), "ForceMs",
                  (json_int_t)(limited ? now_ms + (uint64_t)drain->deadline_ns / 1000000 : 0)));
    put(json, "Eligibility", json_string("ineligible"));
    if (!was)
        put(json, "LastDrain", json_null());
    note_last(alone, json, "draining", drain->meta);
    note(alone, json, "Drain", was ? "Node drain strategy updated" : "Node drain strategy set",
         json_object());
    post(alone, json);
    return 0;
}

int alone_end_drain(struct alone *alone, bool mark_eligible, const json_t *meta, struct err *err)
{
    bool was = says_drained(newest(alone));
    int code = life_check_turn(alone->config.life, 0, err);

    if (code < 0 || (!was && (!mark_eligible || alone_is_eligible(alone))))
        return code;
    json_t *json = change(alone);
    put(json, "Drain", json_null());
    if (mark_eligible)
        put(json, "Eligibility", json_string("eligible"));
    if (was) {
        note_last(alone, json, "canceled", meta);
        note(alone, json, "Drain", "Node drain disabled", json_object());
    }
    post(alone, json);
    return 0;
}

void standing_drained(struct alone *alone, bool late)
{
    json_t *json = change(alone);

    put(json, "Drain", json_null());
    note_last(alone, json, "complete", NULL);
    note(alone, json, "Drain", "Node drain complete",
         late ? json_pack("{s:s}", "deadline_reached", "true") : json_object());
    post(alone, json);
}
