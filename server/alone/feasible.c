/*
 * What may be placed on this node: datacenters, drivers, constraints, room, in the order in which
 * Nomad asks (v1.1.2 scheduler/stack.go), so that the same reason is named.
 */
#include "server/alone/part.h"

#include "base/hash.h"
#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

/* --- what is not placed --- */

/* Adds one alloc of the group that is number G, whose lack is WHY: WHAT (moved). */
static void refuse(struct refusal *refusal, const struct reconcile_group *group, size_t g,
                   uint32_t index, const char *why, json_t *what)
{
    json_t *last = json_array_get(refusal->failed, json_array_size(refusal->failed) - 1);
    json_int_t place = (json_int_t)(g * JOB_COUNT_MAX + index);

    check(json_array_append_new(refusal->queue, json_integer(place)) == 0);
    if (last == NULL ||
        !text_equal(json_string_value(json_object_get(last, "Group")), group->name)) {
        last = json_pack("{s:s, s:i, s:s, s:O}", "Group", group->name, "Count", 0, "Why", why,
                         "What", what);
        check(json_array_append_new(refusal->failed, last) == 0);
    }
    json_t *count = json_object_get(last, "Count");
    check(json_integer_set(count, json_integer_value(count) + 1) == 0);
    json_decref(what);
}

/* --- datacenters and constraints --- */

bool alone_in_datacenter(const struct alone *alone, const json_t *job)
{
    const json_t *datacenters = json_object_get(job, "Datacenters");
    json_t *name;
    size_t i;

    json_array_foreach(datacenters, i, name)
    {
        if (policy_matches(json_string_value(name), alone->config.node.known.datacenter))
            return true;
    }
    return json_array_size(datacenters) == 0;
}

/* True if each task of GROUP has its driver here. */
static bool has_drivers(const struct alone *alone, const json_t *group)
{
    json_t *task;
    size_t t;

    json_array_foreach(json_object_get(group, "Tasks"), t, task)
    {
        const char *driver = json_string_value(json_object_get(task, "Driver"));

        if (alone->config.has_driver != NULL && driver != NULL &&
            !alone->config.has_driver(alone->config.ctx, driver))
            return false;
    }
    return true;
}

/* The node seldom changes while the daemon runs: each job is looked at once, until it does. */
static void look_at_constraints(const struct alone *alone, struct job *job)
{
    json_t *group;
    size_t g;

    job->unmet = json_array();
    json_array_foreach(json_object_get(job->json, "TaskGroups"), g, group)
    {
        json_t *unmet = has_drivers(alone, group)
                            ? constraint_unmet(&alone->config.node.known, job->json, group)
                            : json_string("missing drivers");
        check(json_array_append_new(job->unmet, unmet == NULL ? json_null() : unmet) == 0);
    }
}

void alone_node_changed(struct alone *alone)
{
    if (alone == NULL)
        return;
    for (struct job *job = alone->jobs; job != NULL; job = job->hh.next) {
        json_decref(job->unmet);
        job->unmet = NULL;
        if (job->queued)
            alone_look_later(alone, job, life_now_ms(alone->config.life));
    }
}

const char *alone_unmet(const struct alone *alone, struct job *job, size_t group)
{
    if (job->unmet == NULL)
        look_at_constraints(alone, job);
    return json_string_value(json_array_get(job->unmet, group));
}

/* A volume that the alloc INDEX of GROUP, number G of the job of GATHERING, wants and that is not
 * there, or not to be had: in Nomad's words, and which; a new reference, or NULL. */
static json_t *volumes_missing(const struct alone *alone, const struct gathering *gathering,
                               const struct places *places, const json_t *group, size_t g,
                               uint32_t index)
{
    const struct hosted_place place = {alone, gathering, places, g, index};
    json_t *asked = json_object_get(group, "Volumes");
    struct spec_volume volumes[SPEC_VOLUMES_MAX];
    char sources[SPEC_VOLUMES_MAX][SPEC_SOURCE_SIZE];
    size_t count;

    (void)jobspec_volumes(group, index, volumes, sources, &count); /* of a job that was checked */
    for (size_t v = 0; v < count; v++) {
        json_t *missing =
            volumes[v].type == VOLUME_CSI
                ? claim_missing(alone, gathering->job->namespace, gathering, &volumes[v])
                : hosted_missing(&place, json_object_get(asked, volumes[v].name), &volumes[v]);
        if (missing != NULL)
            return missing;
    }
    return NULL;
}

/* What the allocs that are here, or will be, leave to those that come. */
struct left {
    struct room used;
    json_t *held;   /* devices; owned */
    size_t here;    /* allocs of the job */
    size_t *groups; /* of each of its groups */
};

/* Without what is told to end by this very change. */
static struct left left_by(struct alone *alone, const struct gathering *gathering,
                           const struct places *places)
{
    struct left left = {.used = alone->used,
                        .held = grants_held(alone),
                        .groups = calloc(places->count + 1, sizeof(*left.groups))};

    check(left.groups != NULL);
    for (size_t a = 0; a < gathering->count; a++) {
        const struct reconcile_alloc *alloc = &gathering->allocs[a];
        const struct room *held = alloc->stop ? alone_held(alone, gathering->ids[a].text) : NULL;

        if (held != NULL)
            room_drop(&left.used, held);
        if (!alloc->live || alloc->stop)
            continue;
        left.here++;
        for (size_t g = 0; g < places->count; g++)
            left.groups[g] += text_equal(places->groups[g].name, alloc->group);
    }
    return left;
}

/* What there is for the allocs of one group. */
struct offer {
    struct room ask;
    const char *unmet;   /* a constraint that the node does not fulfil, or NULL */
    json_t *missing;     /* a network that it has not, or NULL; owned */
    size_t beside_job;   /* so many of the job may be here */
    size_t beside_group; /* so many of the group */
};

/* A network that GROUP wants and the node has not, in Nomad's words: a new reference, or NULL. */
static json_t *network_missing(const struct alone *alone, const json_t *group)
{
    const json_t *network = json_array_get(json_object_get(group, "Networks"), 0);
    const char *mode = json_string_value(json_object_get(network, "Mode"));

    if (mode != NULL && alone->config.has_network != NULL &&
        !alone->config.has_network(alone->config.ctx, mode))
        return json_string("missing network");
    return ports_missing(alone, group);
}

static struct offer offer_of(const struct alone *alone, struct job *job, const json_t *group,
                             size_t g)
{
    const struct constraint_node *node = &alone->config.node.known;

    return (struct offer){
        .ask = alone_ask(alone, group),
        .unmet = alone_unmet(alone, job, g),
        .missing = network_missing(alone, group),
        .beside_job = constraint_room(node, json_object_get(job->json, "Constraints")),
        .beside_group = constraint_room(node, json_object_get(group, "Constraints")),
    };
}

/* Why one more of GROUP would be one too many: a new reference. */
static json_t *crowd(const struct alone *alone, const struct job *job, const json_t *group,
                     const struct left *left, size_t g)
{
    const struct constraint_node *node = &alone->config.node.known;
    json_t *why = constraint_crowded(node, json_object_get(job->json, "Constraints"), left->here);

    return why != NULL
               ? why
               : constraint_crowded(node, json_object_get(group, "Constraints"), left->groups[g]);
}

/* The ports of the alloc INDEX of the group that is number G. */
static bool find_ports(struct alone *alone, const struct gathering *gathering,
                       struct places *places, size_t g, uint32_t index, char why[PORTS_WHY_SIZE])
{
    const struct job *job = gathering->job;
    uint64_t seed =
        hash_bytes((uint64_t)life_unix_ns(alone->config.life), job->id, strlen(job->id));
    struct port_ask ask = {
        .group = json_array_get(json_object_get(job->json, "TaskGroups"), g),
        .index = index,
        .gathering = gathering,
        .seed = hash_u64(seed, g * JOB_COUNT_MAX + index),
    };

    return ports_offer(alone, &ask, &places->ports[g][index], why);
}

/* Why one is refused that lacks nothing but what ended allocs may leave to it. */
static const char want_of_disk[] = "want of disk";

/* Why the alloc INDEX of the group that is number G, for which there is OFFER, cannot be placed: a
 * new reference, and RET_WHY; NULL: it can, and its ports are found. */
static json_t *refusal_of(struct alone *alone, const struct gathering *gathering,
                          struct places *places, size_t g, uint32_t index,
                          const struct offer *offer, const struct left *left, const char **ret_why)
{
    const struct job *job = gathering->job;
    const json_t *json = json_array_get(json_object_get(job->json, "TaskGroups"), g);
    json_t *datacenters = json_object_get(job->json, "Datacenters");
    const char *lack = policy_exhausted(&alone->config.node.room, &left->used, &offer->ask);
    char why[PORTS_WHY_SIZE];

    *ret_why = "datacenter";
    if (!alone_in_datacenter(alone, job->json) || !alone_is_eligible(alone))
        return json_incref(datacenters);
    *ret_why = "constraint";
    if (offer->unmet != NULL)
        return json_string(offer->unmet);
    json_t *missing = volumes_missing(alone, gathering, places, json, g, index);
    if (missing != NULL)
        return missing;
    if (offer->missing != NULL)
        return json_incref(offer->missing);
    if (left->here >= offer->beside_job || left->groups[g] >= offer->beside_group)
        return crowd(alone, job, json, left, g);
    *ret_why = "exhausted";
    if (!find_ports(alone, gathering, places, g, index, why))
        return json_string(why);
    if (lack == NULL && alone_lacks_disk(alone, offer->ask.disk_mb)) {
        *ret_why = want_of_disk;
        lack = "disk";
    }
    json_t *lacking =
        lack != NULL ? json_string(lack) : grants_lack(alone, json, left->held, ret_why);
    if (lacking != NULL)
        ports_return(alone, &places->ports[g][index]);
    return lacking;
}

/* What of the group that is number G, for which there is OFFER, may be placed. */
static void choose(struct alone *alone, const struct gathering *gathering, struct places *places,
                   size_t g, const struct offer *offer, struct left *left, struct refusal *refusal)
{
    struct reconcile_group *group = &places->groups[g];

    for (uint32_t i = 0; i < group->count; i++) {
        const char *why;

        if (!group->place[i])
            continue;
        json_t *what = refusal_of(alone, gathering, places, g, i, offer, left, &why);
        group->place[i] = what == NULL;
        if (what != NULL) {
            refuse(refusal, group, g, i, why == want_of_disk ? "exhausted" : why, what);
            if (why == want_of_disk && offer->ask.disk_mb > refusal->disk_mb)
                refusal->disk_mb = offer->ask.disk_mb;
            continue;
        }
        room_add(&left->used, &offer->ask);
        left->here++;
        left->groups[g]++;
    }
}

void alone_choose(struct alone *alone, const struct gathering *gathering, struct places *places,
                  struct refusal *ret_refusal)
{
    struct job *job = gathering->job;
    const json_t *list = json_object_get(job->json, "TaskGroups");
    struct left left = left_by(alone, gathering, places);

    *ret_refusal = (struct refusal){.queue = json_array(), .failed = json_array()};
    for (size_t g = 0; g < places->count; g++) {
        struct offer offer = offer_of(alone, job, json_array_get(list, g), g);

        choose(alone, gathering, places, g, &offer, &left, ret_refusal);
        json_decref(offer.missing);
    }
    json_decref(left.held);
    free(left.groups);
}
