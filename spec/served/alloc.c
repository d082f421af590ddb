/*
 * What a server sends of an alloc, as what an alloc of cairn runs by.
 *
 * The job is read by the tables of all jobs (job.c), what was given beside it is put where
 * the control plane of this node would put it (given.c), and the text is written and read again by
 * those who do it for that one, too: a served alloc and one of this node's own that ask for the
 * same are the same text.
 */
#include "spec/served.h"

#include "spec/json.h"
#include "spec/names.h"
#include "spec/served/part.h"

#include <stdlib.h>
#include <string.h>

static uint64_t index_of(const json_t *alloc, const char *field)
{
    json_int_t index = json_integer_value(json_object_get(alloc, field));

    return index < 0 ? 0 : (uint64_t)index;
}

/* --- what else is said --- */

static enum served_health health_of(const json_t *status)
{
    const json_t *healthy = json_object_get(status, "Healthy");

    return json_is_true(healthy)    ? SERVED_HEALTHY
           : json_is_false(healthy) ? SERVED_UNHEALTHY
                                    : SERVED_HEALTH_UNKNOWN;
}

/* Newer servers have it in a block of its own. */
static int64_t stop_after(const json_t *group)
{
    const json_t *block = json_object_get(group, "Disconnect");
    const json_t *newer = json_object_get(block, "StopOnClientAfter");
    const json_t *older = json_object_get(group, "StopAfterClientDisconnect");
    const json_t *after = json_is_integer(newer) ? newer : older;

    return json_is_integer(after) && json_integer_value(after) >= 0 ? json_integer_value(after)
                                                                    : -1;
}

static void peek_status(const json_t *alloc, struct served_alloc *to)
{
    static const char *const terminal[] = {"complete", "failed", "lost"};
    const json_t *transition = json_object_get(alloc, "DesiredTransition");

    to->desired_status = text_of(alloc, "DesiredStatus");
    to->desired_description = text_of(alloc, "DesiredDescription");
    to->desired = text_equal(to->desired_status, "stop")    ? SERVED_STOP
                  : text_equal(to->desired_status, "evict") ? SERVED_EVICT
                                                            : SERVED_RUN;
    to->client_status = text_of(alloc, "ClientStatus");
    for (size_t i = 0; i < COUNT_OF(terminal); i++)
        to->client_terminal |= text_equal(to->client_status, terminal[i]);
    to->client_unknown = text_equal(to->client_status, "unknown");
    to->no_shutdown_delay = json_is_true(json_object_get(transition, "NoShutdownDelay"));
    to->migrate = json_is_true(json_object_get(transition, "Migrate"));
}

int served_alloc_peek(const json_t *alloc, struct served_alloc *ret_alloc, struct err *err)
{
    const json_t *status = json_object_get(alloc, "DeploymentStatus");
    const json_t *job = json_object_get(alloc, "Job");
    const json_t *group = jobspec_group(job, text_of(alloc, "TaskGroup"));
    const json_t *tasks = json_object_get(group, "Tasks");
    const json_t *preempted = json_object_get(alloc, "PreemptedAllocations");
    bool has_id = uuid_is_valid(text_of(alloc, "ID"));

    *ret_alloc = (struct served_alloc){
        .id = has_id ? text_of(alloc, "ID") : "",
        .name = text_of(alloc, "Name"),
        .namespace = text_of(alloc, "Namespace"),
        .job_id = text_of(alloc, "JobID"),
        .group = text_of(alloc, "TaskGroup"),
        .node_id = text_of(alloc, "NodeID"),
        .eval_id = text_of(alloc, "EvalID"),
        .tasks = json_is_array(tasks) ? tasks : NULL,
        .previous_id = text_of(alloc, "PreviousAllocation"),
        .preempted = json_is_array(preempted) ? preempted : NULL,
        .deployment_id = text_of(alloc, "DeploymentID"),
        .health = health_of(status),
        .canary = json_is_true(json_object_get(status, "Canary")),
        .stop_after_lost_ns = stop_after(group),
        .create_index = index_of(alloc, "CreateIndex"),
        .modify_index = index_of(alloc, "AllocModifyIndex"),
    };
    peek_status(alloc, ret_alloc);
    return has_id ? 0 : err_set(err, ERR_CORRUPT, "what the server sent is no alloc: it has no id");
}

/* --- what it runs by --- */

/* Which of its group NAME says that it is: what stands in the last brackets. */
static bool read_index(const char *name, uint32_t *ret_index)
{
    const char *bracket = strrchr(name, '[');
    uint64_t index;
    char digits[12];
    size_t length = bracket == NULL ? 0 : strlen(bracket + 1);

    if (length < 2 || length > sizeof(digits) || bracket[length] != ']')
        return false;
    memcpy(digits, bracket + 1, length - 1);
    digits[length - 1] = '\0';
    if (!text_to_u64(digits, &index) || index > INT32_MAX)
        return false;
    *ret_index = (uint32_t)index;
    return true;
}

/* The newest events of the tracker, owned by the caller; they borrow from it. */
static struct spec_rescheduled *read_history(const json_t *alloc, size_t *ret_count)
{
    const json_t *tracker = json_object_get(alloc, "RescheduleTracker");
    const json_t *events = json_object_get(tracker, "Events");
    size_t all = json_array_size(events), count = 0;
    struct spec_rescheduled *list = calloc(SPEC_RESCHEDULED_MAX, sizeof(*list));

    check(list != NULL);
    for (size_t i = all > SPEC_RESCHEDULED_MAX ? all - SPEC_RESCHEDULED_MAX : 0; i < all; i++) {
        const json_t *event = json_array_get(events, i);
        json_int_t delay = json_integer_value(json_object_get(event, "Delay"));

        if (!uuid_is_valid(text_of(event, "PrevAllocID")))
            continue; /* nobody could look it up */
        list[count++] = (struct spec_rescheduled){
            .unix_ns = json_integer_value(json_object_get(event, "RescheduleTime")),
            .delay_ns = delay < 0 ? 0 : (uint64_t)delay,
            .alloc_id = text_of(event, "PrevAllocID"),
        };
    }
    *ret_count = count;
    return list;
}

/* One alloc of a server on its way to its text; all of it is borrowed. */
struct placing {
    const struct served_node *node;
    const struct served_alloc *served;
    const json_t *alloc; /* as the server sent it */
    const json_t *given; /* what it gave it */
    const json_t *group; /* of its job, as it was read */
    struct jobspec_placement placement;
    struct spec_port ports[SPEC_PORTS_MAX];
    struct spec_volume volumes[SPEC_VOLUMES_MAX];
    char sources[SPEC_VOLUMES_MAX][SPEC_SOURCE_SIZE];
};

static json_t *plugin_of(const struct served_node *node, const char *volume)
{
    for (size_t i = 0; i < node->plugins.count; i++) {
        if (text_equal(node->plugins.items[i].key, volume))
            return json_string(node->plugins.items[i].value);
    }
    return json_null();
}

/* As jobspec_add_plugins, but for what is not known of them yet. */
static int put_plugins(struct placing *placing, json_t *value, struct err *err)
{
    size_t count;

    if (!jobspec_volumes(placing->group, placing->placement.index, placing->volumes,
                         placing->sources, &count))
        return err_set(err, ERR_CORRUPT, "the volumes of the group are damaged");
    for (size_t i = 0; i < count; i++) {
        const char *name = placing->volumes[i].name;

        if (placing->volumes[i].type == VOLUME_CSI)
            check(json_object_set_new(jobspec_member(value, "VolumePlugins", json_object), name,
                                      plugin_of(placing->node, name)) == 0);
    }
    return 0;
}

static int find_ports(struct placing *placing, struct err *err)
{
    struct spec_ports *ports = &placing->placement.ports;

    ports->items = placing->ports;
    if (!jobspec_ports(placing->group, placing->ports, &ports->count))
        return err_set(err, ERR_CORRUPT, "the networks of the group are damaged");
    return jobspec_take_ports(placing->given, ports, err);
}

static void put_preempted(const struct served_alloc *served, json_t *value)
{
    json_t *ids = json_array(), *id;
    size_t i;

    check(ids != NULL);
    json_array_foreach(served->preempted, i, id)
    {
        if (json_is_string(id) && uuid_is_valid(json_string_value(id)) &&
            json_array_size(ids) < SPEC_PREEMPTED_MAX)
            check(json_array_append(ids, id) == 0);
    }
    if (json_array_size(ids) > 0)
        check(json_object_set(value, "PreemptedAllocations", ids) == 0);
    json_decref(ids);
}

/* What no placement of this node says. */
static void put_rest(const struct placing *placing, json_t *value)
{
    const struct served_alloc *served = placing->served;
    /* The update block as it was sent: what was read of it is for nobody. */
    const json_t *sent = jobspec_group(json_object_get(placing->alloc, "Job"), served->group);

    jobspec_put_deployment(value, sent, served->deployment_id);
    jobspec_add_given_cores(value, placing->given);
    put_preempted(served, value);
    jobspec_add_given_devices(value, placing->given);
    if (served->canary)
        check(json_object_set_new(value, "Canary", json_true()) == 0);
    if (served->stop_after_lost_ns >= 0)
        check(json_object_set_new(value, "StopAfterLost",
                                  json_integer((json_int_t)served->stop_after_lost_ns)) == 0);
    if (served->modify_index > served->create_index)
        check(json_object_set_new(value, "ModifyIndex",
                                  json_integer((json_int_t)served->modify_index)) == 0);
}

static int find_place(struct placing *placing, struct err *err)
{
    const struct served_alloc *served = placing->served;
    struct jobspec_placement *placement = &placing->placement;

    placement->group = served->group;
    placement->alloc_id = served->id;
    placement->eval_id = uuid_is_valid(served->eval_id) ? served->eval_id : "";
    placement->datacenter = placing->node->datacenter;
    placement->create_time_unix_ns =
        json_integer_value(json_object_get(placing->alloc, "CreateTime"));
    placement->create_index = served->create_index;
    placement->previous_id = served->previous_id;
    if (!read_index(served->name, &placement->index))
        return err_set(err, ERR_CORRUPT, "the name of the alloc, \"%.100s\", has no index",
                       served->name);
    return find_ports(placing, err);
}

/* PLACING as a new reference, with JOB that was read of it. */
static int make_value(struct placing *placing, const json_t *job, json_t **ret_value,
                      struct err *err)
{
    struct spec_rescheduled *history =
        read_history(placing->alloc, &placing->placement.rescheduled_count);
    int code = find_place(placing, err);

    placing->placement.rescheduled = history;
    if (code == 0)
        code = jobspec_alloc_value(job, &placing->placement, ret_value, err);
    if (code == 0)
        code = put_plugins(placing, *ret_value, err);
    if (code == 0)
        put_rest(placing, *ret_value);
    if (code == 0)
        code = jobspec_put_identities(*ret_value, placing->group, placing->alloc, err);
    free(history);
    return code;
}

int served_alloc_read(const json_t *alloc, const struct served_node *node,
                      struct served_alloc *ret_alloc, char **ret_text, size_t *ret_length,
                      struct alloc_spec **ret_spec, struct err *err)
{
    int code = served_alloc_peek(alloc, ret_alloc, err);

    if (code != 0)
        return code;
    struct placing *placing = calloc(1, sizeof(*placing));
    json_t *given = jobspec_given(alloc), *job = NULL, *value = NULL;
    check(placing != NULL);
    placing->node = node;
    placing->served = ret_alloc;
    placing->alloc = alloc;
    placing->given = given;
    code = jobspec_read_served(alloc, given, &job, err);
    if (code == 0) {
        placing->group = jobspec_group(job, ret_alloc->group);
        code = make_value(placing, job, &value, err);
    }
    if (code == 0)
        code = jobspec_write_alloc(value, ret_text, ret_length, ret_spec, err);
    json_decref(value);
    json_decref(job);
    json_decref(given);
    free(placing);
    return code;
}

bool served_alloc_in_place(const char *before, size_t before_length, const char *after,
                           size_t after_length)
{
    json_t *was = jobspec_alloc_essence(before, before_length);
    json_t *is = jobspec_alloc_essence(after, after_length);
    bool same = was != NULL && is != NULL && json_equal(was, is);

    json_decref(was);
    json_decref(is);
    return same;
}
