/*
 * Nothing that a job says is read and then forgotten: each row of the tables is tried in a job, and
 * an alloc must run by it, the control plane place by it, a warning name it, or a problem refuse
 * it.
 */
#include "spec/schema/work.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct jobspec_problems problems;

/* What the control plane acts on, and where; a row of FATE_PLACE that is not here is a promise that
 * nobody keeps. */
static const struct {
    const char *block, *field, *where;
} placed_by[] = {
    {"job", "Priority", "server/alone/: who waits for room, the first is placed first"},
    {"job", "Datacenters", "fsm/policy: is this node's among them"},
    {"job", "NodePool", "server/alone/register.c: there is one pool"},
    {"job", "Constraints", "server/alone/feasible.c"},
    {"job", "Reschedule", "spec/job/check.c: each group has its own of it"},
    {"group", "Count", "fsm/policy/reconcile.c"},
    {"group", "RestartPolicy", "spec/job/check.c: each task has its own of it"},
    {"group", "Constraints", "server/alone/feasible.c"},
    {"group", "ReschedulePolicy", "fsm/policy/reschedule.c"},
    {"task", "Constraints", "server/alone/feasible.c"},
    {"constraint", "LTarget", "spec/constraint.c"},
    {"constraint", "Operand", "spec/constraint.c"},
    {"constraint", "RTarget", "spec/constraint.c"},
    {"reschedule", "Attempts", "fsm/policy/reschedule.c"},
    {"reschedule", "Interval", "fsm/policy/reschedule.c"},
    {"reschedule", "Delay", "fsm/policy/reschedule.c"},
    {"reschedule", "DelayFunction", "fsm/policy/reschedule.c"},
    {"reschedule", "MaxDelay", "fsm/policy/reschedule.c"},
    {"reschedule", "Unlimited", "fsm/policy/reschedule.c"},
    {"job", "ParameterizedJob", "server/alone/dispatch.c"},
    {"parameterized", "Payload", "spec/blocks/dispatch.c, of whoever dispatches"},
    {"parameterized", "MetaRequired", "spec/blocks/dispatch.c, of whoever dispatches"},
    {"parameterized", "MetaOptional", "spec/blocks/dispatch.c, of whoever dispatches"},
    {"job", "Periodic", "server/alone/periodic.c"},
    {"periodic", "Enabled", "server/alone/periodic.c: which are launched"},
    {"periodic", "Spec", "server/alone/periodic.c: when"},
    {"periodic", "Specs", "server/alone/periodic.c: when"},
    {"periodic", "SpecType", "spec/blocks/periodic.c: there is one"},
    {"periodic", "ProhibitOverlap", "fsm/policy/periodic.c"},
    {"periodic", "TimeZone", "server/alone/periodic.c: when"},
    {"group", "Scaling", "server/alone/scaling/"},
    {"scaling", "Min", "server/alone/scaling/"},
    {"scaling", "Max", "server/alone/scaling/"},
    {"scaling", "Enabled", "agent/api/jobs/scaling.c: whoever scales reads it"},
    {"scaling", "Type", "spec/blocks/scaling.c: there is one"},
    {"scaling", "Policy", "agent/api/jobs/scaling.c: whoever scales reads it"},
    {"update", "MaxParallel", "server/alone/rollout/rollout.c"},
    {"update", "HealthCheck", "fsm/alloc/health.c, of what the alloc was placed with"},
    {"update", "MinHealthyTime", "fsm/alloc/health.c, of what the alloc was placed with"},
    {"update", "HealthyDeadline", "fsm/alloc/health.c, of what the alloc was placed with"},
    {"update", "ProgressDeadline", "server/alone/rollout/rollout.c"},
    {"update", "AutoRevert", "server/alone/rollout/rollout.c"},
    {"update", "AutoPromote", "server/alone/rollout/rollout.c"},
    {"update", "Canary", "server/alone/rollout/rollout.c"},
    {"service", "TaskName", "spec/blocks/services.c: each check has its own of it"},
    {"service", "OnUpdate", "spec/blocks/services.c: each check has its own of it"},
    {"service", "CheckRestart", "spec/blocks/services.c: each check has its own of it"},
    {"service", "Cluster", "spec/blocks/connect.c: there is one"},
    {"group", "Consul", "spec/blocks/connect.c: there is one"},
    {"consul", "Cluster", "spec/blocks/connect.c: there is one"},
    {"connect", "SidecarTask", "spec/blocks/connect.c: it goes into the task"},
    {"sidecar_task", NULL, "spec/blocks/connect.c: it goes into the task"},
};

static bool is_placed_by(const char *block, const char *field)
{
    for (size_t i = 0; i < COUNT_OF(placed_by); i++) {
        if (text_equal(placed_by[i].block, block) &&
            (placed_by[i].field == NULL || text_equal(placed_by[i].field, field)))
            return true;
    }
    return false;
}

/* --- a job that says one thing more --- */

static json_t *plain_job(void)
{
    json_t *job = json_pack("{s:s, s:[{s:s, s:[{s:s, s:s}]}]}", "ID", "j", "TaskGroups", "Name",
                            "g", "Tasks", "Name", "t", "Driver", "raw_exec");

    assert_non_null(job);
    return job;
}

/* Values other than defaults, where not any will do. */
static json_t *sample_of(const struct jobspec_schema *schema, const struct jobspec_field *field)
{
    static const struct {
        const char *field, *value;
    } texts[] = {
        {"KillSignal", "SIGHUP"},
        {"Mode", "delay"},
        {"Hook", "poststop"},
        {"Type", "batch"},
        {"Operand", "not"},
        {"LTarget", "${attr.cpu.arch}"},
        {"DelayFunction", "fibonacci"},
        {"Reconcile", "keep_original"},
        {"AccessMode", "single-node-writer"},
        {"PropagationMode", "bidirectional"},
        {"SELinuxLabel", "z"},
        {"Volume", "v"},
        {"GetterSource", "http://sample/"},
        {"GetterMode", "file"},
        {"Perms", "0600"},
        {"ChangeMode", "noop"},
        {"MountDir", "/sample"},
        {"StagePublishBaseDir", "/sample"},
        {"HealthCheck", "manual"},
        {"Spec", "@daily"},
        {"SpecType", "cron"},
        {"TimeZone", "Europe/Berlin"},
        {"Provider", "nomad"},
        {"PortLabel", "p"},
        {"AddressMode", "host"},
        {"OnUpdate", "ignore"},
        {"TaskName", "t"},
        {"Path", "/sample"},
        {"Method", "PUT"},
        {"Protocol", "https"},
        {"InitialStatus", "warning"},
        {"Cluster", "default"},
        {"Kind", "connect-native:web"},
        {"ListenerPort", "p"},
    };

    switch (field->kind) {
    case KIND_TEXT:
        if (text_equal(schema->name, "network") && text_equal(field->json, "Mode"))
            return json_string("host");
        if (text_equal(schema->name, "mesh_gateway"))
            return json_string("local");
        if (schema == &jobspec_expose_path && text_equal(field->json, "Protocol"))
            return json_string("http2");
        if (schema == &jobspec_volume && text_equal(field->json, "Type"))
            return json_string("host");
        if (schema == &jobspec_volume && text_equal(field->json, "AttachmentMode"))
            return json_string("block-device");
        if (text_equal(schema->name, "csi_plugin") && text_equal(field->json, "Type"))
            return json_string("monolith");
        if (schema == &jobspec_service_check && text_equal(field->json, "Type"))
            return json_string("tcp");
        if (text_equal(schema->name, "parameterized"))
            return json_string("required");
        if (schema == &jobspec_scaling)
            return json_string("horizontal");
        for (size_t i = 0; i < COUNT_OF(texts); i++) {
            if (text_equal(texts[i].field, field->json))
                return json_string(texts[i].value);
        }
        return json_string("sample");
    case KIND_WHOLE:
        return json_integer(schema == &jobspec_disk || schema == &jobspec_resources ? 777 : 7);
    case KIND_DURATION:
        if (text_equal(field->json, "HealthyDeadline"))
            return json_integer(INT64_C(77000000000));
        if (text_equal(field->json, "ProgressDeadline"))
            return json_integer(INT64_C(777000000000));
        if (text_equal(field->json, "MaxDelay"))
            return json_integer(INT64_C(7777000000000));
        return json_integer(text_equal(field->json, "Interval") ? INT64_C(777777000000000)
                                                                : INT64_C(7000000000));
    case KIND_BOOL:
        return json_boolean(!text_equal(field->json, "Unlimited"));
    case KIND_TEXTS:
        return json_pack("[s]", text_equal(schema->name, "periodic") ? "@daily" : "sample");
    case KIND_MAP:
    case KIND_CONFIG:
        return json_pack("{s:s}", "sample", "value");
    case KIND_LISTS:
        return json_pack("{s:[s]}", "sample", "value");
    case KIND_ANY:
        return json_string("sample");
    case KIND_BLOCK:
    case KIND_BLOCKS:
    case KIND_NAMED:
    case KIND_OPERAND:
    case KIND_TASK:
        break;
    }
    fail_msg("no value of its own");
    return NULL;
}

struct path {
    const struct jobspec_field *blocks[8];
    size_t length;
};

/* A volume of which everything is acted on. */
static json_t *claim(void)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "Type", "csi", "Source", "s", "AccessMode",
                     "multi-node-multi-writer", "AttachmentMode", "file-system");
}

/* A check, and a service that may have it. */
static json_t *check_of_service(void)
{
    return json_pack("{s:s, s:s, s:I, s:I}", "Type", "http", "Path", "/", "Interval",
                     (json_int_t)5000000000, "Timeout", (json_int_t)2000000000);
}

static json_t *service(void)
{
    return json_pack("{s:s, s:s}", "Provider", "consul", "PortLabel", "p");
}

static bool leads_by(const struct path *path, const char *block)
{
    for (size_t i = 0; i < path->length; i++) {
        if (text_equal(path->blocks[i]->json, block))
            return true;
    }
    return false;
}

static bool is_of_service(const struct path *path)
{
    return leads_by(path, "Services");
}

/* Only services of groups are in the mesh (test_connect.c), whose tasks have no ports of theirs. */
static bool is_of_none(const struct path *path)
{
    return leads_by(path, "Connect") && (leads_by(path, "Tasks") || leads_by(path, "Networks"));
}

/* An upstream, and a path that is exposed. */
static json_t *upstream(void)
{
    return json_pack("{s:s, s:i}", "DestinationName", "db", "LocalBindPort", 5000);
}

static json_t *exposed(void)
{
    return json_pack("{s:s, s:i, s:s}", "Path", "/", "LocalPathPort", 80, "ListenerPort", "p");
}

/* What else the group of RAW must say for PATH. */
static void surround(const struct path *path, json_t *raw)
{
    json_t *group = json_array_get(json_object_get(raw, "TaskGroups"), 0);

    if (is_of_service(path))
        assert_int_equal(
            json_object_set_new(group, "Networks",
                                json_pack("[{s:s, s:[{s:s}]}]", "Mode",
                                          leads_by(path, "Connect") ? "bridge" : "host",
                                          "DynamicPorts", "Label", "p")),
            0);
}

/* What else must be said beside FIELD. */
static void complete(const struct path *path, const struct jobspec_schema *schema,
                     const struct jobspec_field *field, json_t *object)
{
    const char *within = path->length == 0 ? "" : path->blocks[path->length - 1]->json;
    json_t *rest = NULL;

    if (text_equal(within, "DynamicPorts") && text_equal(field->json, "Value"))
        (void)json_object_clear(object); /* only job files say it there: test_job.c */
    if (schema == &jobspec_port)
        rest = json_pack("{s:s, s:i}", "Label", "p", "Value",
                         text_equal(within, "ReservedPorts") ? 8080 : 0);

    if (schema == &jobspec_volume)
        rest = strstr(field->json, "Mode") != NULL
                   ? claim()
                   : json_pack("{s:s, s:s}", "Type", "host", "Source", "s");
    if (text_equal(schema->name, "periodic") && strstr(field->json, "Specs") == NULL)
        rest = json_pack("{s:s}", "Spec", "@hourly");
    if (text_equal(schema->name, "csi_plugin"))
        rest = json_pack("{s:s, s:s}", "ID", "hp", "Type", "node");
    if (text_equal(schema->name, "action"))
        rest = json_pack("{s:s, s:s}", "Name", "flush", "Command", "/bin/true");
    if (text_equal(schema->name, "artifact"))
        rest = json_pack("{s:s}", "GetterSource", "https://sample/file");
    if (text_equal(schema->name, "template") && !text_equal(field->json, "SourcePath"))
        rest = json_pack("{s:s, s:s}", "EmbeddedTmpl", "x", "DestPath", "local/x");
    if (text_equal(field->json, "SourcePath"))
        rest = json_pack("{s:s}", "DestPath", "local/x");
    if (schema == &jobspec_volume_mount)
        rest = json_pack("{s:s, s:s}", "Volume", "v", "Destination", "/srv");
    if (schema == &jobspec_constraint)
        rest = json_pack("{s:s, s:s, s:s}", "LTarget", "${attr.kernel.name}", "Operand",
                         "!=", "RTarget", "plan9");
    if (schema == &jobspec_lifecycle)
        rest = json_pack("{s:s}", "Hook", "prestart");
    if (schema == &jobspec_reschedule)
        rest = json_pack("{s:i, s:I, s:b}", "Attempts", 3, "Interval", (json_int_t)36000000000000,
                         "Unlimited", 0);
    if (text_equal(schema->name, "scaling"))
        rest = json_pack("{s:i}", "Max", 9);
    if (schema == &jobspec_update && text_equal(field->json, "AutoPromote"))
        rest = json_pack("{s:i}", "Canary", 1);
    if (schema == &jobspec_network && text_equal(field->json, "Hostname"))
        rest = json_pack("{s:s}", "Mode", "none");
    if (schema == &jobspec_connect && !text_equal(field->json, "Native"))
        rest = json_pack("{s:{}}", "SidecarService");
    if (schema == &jobspec_upstream)
        rest = upstream();
    if (text_equal(field->json, "LocalBindSocketPath"))
        (void)json_object_del(rest, "LocalBindPort"); /* one or the other */
    if (schema == &jobspec_expose_path)
        rest = exposed();
    if (schema == &jobspec_service)
        rest = service();
    if (schema == &jobspec_service_check)
        rest = check_of_service();
    if (schema == &jobspec_resources && text_equal(field->json, "Cores"))
        rest = json_pack("{s:i}", "CPU", 0);
    bool of_device =
        path->length > 1 && text_equal(path->blocks[path->length - 2]->json, "Devices");
    if (of_device && text_equal(field->json, "LTarget")) /* it has names of its own */
        assert_int_equal(json_object_set_new(object, "LTarget", json_string("${device.type}")), 0);
    if (of_device)
        rest = json_pack("{s:s, s:s}", "LTarget", "${device.model}", "RTarget", "x");
    if (rest != NULL)
        assert_int_equal(json_object_update_missing(object, rest), 0);
    json_decref(rest);
}

/* The object that PATH leads to in JOB, made on the way. */
static json_t *reach(json_t *job, const struct path *path)
{
    json_t *object = job;

    for (size_t i = 0; i < path->length; i++) {
        const struct jobspec_field *block = path->blocks[i];
        json_t *next = json_object_get(object, block->json);

        if (next == NULL) {
            bool whole = text_equal(block->json, "Templates") && i + 1 < path->length;

            if (text_equal(block->json, "Services"))
                next = json_pack("[o]", i + 1 < path->length ? service() : json_object());
            else if (text_equal(block->json, "Connect") && i + 1 < path->length)
                next = json_pack("{s:{}}", "SidecarService");
            else if (text_equal(block->json, "Upstreams") && i + 1 < path->length)
                next = json_pack("[o]", upstream());
            else if (text_equal(block->json, "Devices"))
                next = json_pack("[{s:s}]", "Name", "gpu");
            else if (text_equal(block->json, "Checks"))
                next = json_pack("[o]", i + 1 < path->length ? check_of_service() : json_object());
            else
                next = whole ? json_pack("[{s:s, s:s}]", "EmbeddedTmpl", "x", "DestPath", "local/x")
                       : block->kind == KIND_BLOCKS ? json_pack("[{}]")
                       : block->kind == KIND_NAMED  ? i + 1 < path->length
                                                          ? json_pack("{s:o}", "v", claim())
                                                          : json_pack("{s:{}}", "v")
                                                    : json_object();
            assert_int_equal(json_object_set_new(object, block->json, next), 0);
        }
        object = block->kind == KIND_BLOCKS  ? json_array_get(next, 0)
                 : block->kind == KIND_NAMED ? json_object_get(next, "v")
                                             : next;
    }
    return object;
}

/* --- what becomes of it --- */

static const char *known_as(const struct jobspec_field *field)
{
    return field->hcl != NULL ? field->hcl : field->json;
}

static void assert_warned(const struct path *path, const struct jobspec_field *field,
                          const json_t *job)
{
    char *warnings = jobspec_warnings(job);
    const struct jobspec_field *told = field;

    for (size_t i = path->length; i > 0; i--) {
        if (path->blocks[i - 1]->fate == FATE_KEPT)
            told = path->blocks[i - 1];
    }
    assert_non_null(told->advice);
    if (strstr(warnings, known_as(told)) == NULL || strstr(warnings, told->advice) == NULL)
        fail_msg("no warning names %s (%s): %s", known_as(told), field->json, warnings);
    free(warnings);
}

static void assert_fate(const struct path *path, const struct jobspec_schema *schema,
                        const struct jobspec_field *field, json_t *base, json_t *job)
{
    char *warnings = job == NULL ? NULL : jobspec_warnings(job);

    if (field->fate == FATE_SERVED) { /* how allocs run by it: test_served.c */
        const char *block = path->length > 0 ? path->blocks[path->length - 1]->json : "";

        if (job != NULL || (strstr(problems.items[0], field->json) == NULL &&
                            strstr(problems.items[0], block) == NULL))
            fail_msg("%s of a %s is not refused by name", field->json, schema->name);
        return;
    }
    if (field->fate == FATE_REFUSED) {
        const struct jobspec_field *in = path->length > 0 ? path->blocks[path->length - 1] : field;
        const char *name = in->fate == FATE_SERVED ? in->json : field->json;

        if (job != NULL || strstr(problems.items[0], name) == NULL)
            fail_msg("%s of a %s is not refused by name", field->json, schema->name);
        return;
    }
    if (job == NULL)
        fail_msg("%s of a %s: %s", field->json, schema->name, problems.items[0]);
    if (field->fate == FATE_SERVER && !json_equal(base, job))
        fail_msg("%s of a %s is taken from outside", field->json, schema->name);
    if (field->fate == FATE_RUN && jobspec_group_equal(base, job, "g"))
        fail_msg("no alloc runs by %s of a %s", field->json, schema->name);
    if (field->fate == FATE_PLACE && json_equal(base, job))
        fail_msg("%s of a %s is dropped", field->json, schema->name);
    if (field->fate == FATE_PLACE && !is_placed_by(schema->name, field->json))
        fail_msg("nobody says where %s of a %s is acted on", field->json, schema->name);
    if (field->fate == FATE_KEPT || field->advice != NULL)
        assert_warned(path, field, job);
    else if (warnings[0] != '\0')
        fail_msg("%s of a %s is acted on, and yet warned of: %s", field->json, schema->name,
                 warnings);
    free(warnings);
}

static json_t *read_job(json_t *raw)
{
    json_t *job = NULL;

    (void)jobspec_from_json("job", raw, &job, &problems); /* NULL says so */
    return job;
}

/* A service has none of it. */
static bool is_of_batch(const struct jobspec_schema *schema, const struct jobspec_field *field)
{
    return text_equal(field->json, "MaxRunDuration") || text_equal(schema->name, "parameterized") ||
           text_equal(schema->name, "periodic");
}

/* The task of the group of RAW offers "web", and all of it in the mesh. */
static void offer_natively(json_t *raw)
{
    json_t *group = json_array_get(json_object_get(raw, "TaskGroups"), 0);

    assert_int_equal(
        json_object_set_new(group, "Services",
                            json_pack("[{s:s, s:{s:b}}]", "Name", "web", "Connect", "Native", 1)),
        0);
}

static void try_field(const struct path *path, const struct jobspec_schema *schema,
                      const struct jobspec_field *field)
{
    bool of_batch = is_of_batch(schema, field);
    json_t *raw = plain_job(), *base_raw = plain_job();

    if (text_equal(field->json, "Kind") && schema == &jobspec_task)
        offer_natively(raw);
    if (of_batch) {
        assert_int_equal(json_object_set_new(raw, "Type", json_string("batch")), 0);
        assert_int_equal(json_object_set_new(base_raw, "Type", json_string("batch")), 0);
    }
    if (schema == &jobspec_volume_mount) {
        json_t *group = json_array_get(json_object_get(raw, "TaskGroups"), 0);

        assert_int_equal(
            json_object_set_new(group, "Volumes",
                                json_pack("{s:{s:s, s:s}}", "v", "Type", "host", "Source", "s")),
            0);
    }
    if (field->fate == FATE_SERVER) /* without it the rest is the same */
        complete(path, schema, field, reach(base_raw, path));
    surround(path, raw);
    surround(path, base_raw);
    json_t *base = read_job(base_raw);
    json_t *object = reach(raw, path);

    assert_non_null(base);
    assert_int_equal(json_object_set_new(object, field->json, sample_of(schema, field)), 0);
    complete(path, schema, field, object);
    json_t *job = read_job(raw);
    assert_fate(path, schema, field, base, job);
    json_decref(job);
    json_decref(base);
    json_decref(raw);
    json_decref(base_raw);
}

typedef void try_one(const struct path *path, const struct jobspec_schema *schema,
                     const struct jobspec_field *field);

static size_t try_schema(struct path *path, const struct jobspec_schema *schema, try_one *try)
{
    size_t tried = 0;

    for (size_t i = 0; i < schema->count; i++) {
        const struct jobspec_field *field = &schema->fields[i];

        if (field->json == NULL)
            continue; /* an HCL word for one of the others */
        if (field->block == NULL) {
            if (!is_of_none(path))
                try(path, schema, field);
            tried++;
            continue;
        }
        assert_true(path->length < COUNT_OF(path->blocks));
        if (field->fate == FATE_PLACE && !is_placed_by(schema->name, field->json))
            fail_msg("nobody says where %s of a %s is acted on", field->json, schema->name);
        path->blocks[path->length++] = field;
        tried += try_schema(path, field->block, try);
        path->length--;
    }
    return tried;
}

static void test_each_field_is_acted_on_warned_of_or_refused(void **state)
{
    struct path path = {.length = 0};

    (void)state;
    assert_in_range(try_schema(&path, &jobspec_job, try_field), 150, 2000);
}

/* --- what a change of it does to an alloc --- */

/* All that allocs run by and that nomad v2.0.5 scheduler/util.go tasksUpdated does not compare: it
 * goes to an alloc that runs. */
static const struct {
    const char *block, *field;
} taken_in_place[] = {
    {"job", "Name"},
    {"job", "ParentID"},
    {"job", "Region"},
    {"group", "ShutdownDelay"},
    {"group", "MaxRunDuration"},
    {"task", "Actions"},
    {"task", "KillSignal"},
    {"task", "KillTimeout"},
    {"task", "ShutdownDelay"},
    {"restart", "Attempts"},
    {"restart", "Interval"},
    {"restart", "Delay"},
    {"restart", "Mode"},
    {"logs", "MaxFiles"},
    {"logs", "MaxFileSizeMB"},
    {"sidecar_task", "KillSignal"},
    {"sidecar_task", "KillTimeout"},
    {"sidecar_task", "ShutdownDelay"},
};

/* Nor does it compare these, but then goes on by the old ones: here another alloc is placed. */
static const struct {
    const char *block, *field;
} never_acted_on_by_nomad[] = {
    {"task", "Leader"},
    {"lifecycle", "Hook"},
    {"lifecycle", "Sidecar"},
};

/* What names the job, its group or its task is no change of one. */
static bool is_a_name(const struct jobspec_schema *schema, const struct jobspec_field *field)
{
    bool own = schema == &jobspec_job &&
               (text_equal(field->json, "ID") || text_equal(field->json, "Namespace"));

    return own || (text_equal(field->json, "Name") &&
                   (schema == &jobspec_group_schema || schema == &jobspec_task));
}

static bool replaces(const struct path *path, const struct jobspec_schema *schema,
                     const struct jobspec_field *field)
{
    bool is_sidecar = leads_by(path, "SidecarTask"); /* which is a task */

    if (schema == &jobspec_connect && text_equal(field->json, "Native"))
        return true; /* and so is that */
    if (schema == &jobspec_sidecar_service && text_equal(field->json, "Port"))
        return true;                        /* a port of the group */
    if (is_of_service(path) && !is_sidecar) /* who is registered goes by the newest */
        return false;
    if (text_equal(schema->name, "action")) /* and so does who runs one */
        return false;
    for (size_t i = 0; i < COUNT_OF(taken_in_place); i++) {
        if (text_equal(taken_in_place[i].block, schema->name) &&
            text_equal(taken_in_place[i].field, field->json))
            return false;
    }
    for (size_t i = 0; i < COUNT_OF(never_acted_on_by_nomad); i++) {
        if (text_equal(never_acted_on_by_nomad[i].block, schema->name) &&
            text_equal(never_acted_on_by_nomad[i].field, field->json))
            return true;
    }
    if (schema == &jobspec_sidecar_task)
        return true;
    return field->fate == FATE_RUN; /* no alloc is another one for what nothing acts on */
}

/* A job with all that leads to FIELD, and with FIELD if WITH says so; NULL: it is none. */
static json_t *job_with(const struct path *path, const struct jobspec_schema *schema,
                        const struct jobspec_field *field, bool with)
{
    json_t *raw = plain_job(), *object = reach(raw, path);

    surround(path, raw);
    if (text_equal(field->json, "Kind") && schema == &jobspec_task && with)
        offer_natively(raw);
    if (is_of_batch(schema, field))
        assert_int_equal(json_object_set_new(raw, "Type", json_string("batch")), 0);
    if (schema == &jobspec_volume_mount)
        assert_int_equal(
            json_object_set_new(json_array_get(json_object_get(raw, "TaskGroups"), 0), "Volumes",
                                json_pack("{s:{s:s, s:s}, s:{s:s, s:s}}", "v", "Type", "host",
                                          "Source", "s", "w", "Type", "host", "Source", "s")),
            0);
    if (with)
        assert_int_equal(json_object_set_new(object, field->json, sample_of(schema, field)), 0);
    complete(path, schema, field, object);
    json_t *job = read_job(raw);
    json_decref(raw);
    return job;
}

static void try_change(const struct path *path, const struct jobspec_schema *schema,
                       const struct jobspec_field *field)
{
    json_t *before = job_with(path, schema, field, false);
    json_t *after = job_with(path, schema, field, true);

    if (before != NULL && after != NULL && !json_equal(before, after) &&
        !is_a_name(schema, field)) {
        json_t *old = jobspec_essence(before, "g"), *new = jobspec_essence(after, "g");
        if (json_equal(old, new) == replaces(path, schema, field))
            fail_msg("%s of a %s %s", field->json, schema->name,
                     json_equal(old, new) ? "is taken in place" : "replaces its alloc");
        json_decref(old);
        json_decref(new);
    }
    json_decref(before);
    json_decref(after);
}

static void test_each_field_is_taken_in_place_or_replaces_as_nomad_says(void **state)
{
    struct path path = {.length = 0};

    (void)state;
    assert_in_range(try_schema(&path, &jobspec_job, try_change), 150, 2000);
}

/* --- warnings --- */

static void assert_warnings(const char *text, const char *expected)
{
    struct jobspec_source source = {.name = "job.hcl", .text = text, .length = strlen(text)};
    json_t *job;

    if (jobspec_parse(&source, &job, &problems) != 0)
        fail_msg("%s", problems.items[0]);
    char *warnings = jobspec_warnings(job);
    assert_string_equal(warnings, expected);
    free(warnings);
    json_decref(job);
}

#define GROUP_OF(text) "group \"g\" { " text "\n task \"t\" {\n driver = \"raw_exec\"\n}\n}\n"

static void test_plain_job_has_no_warnings(void **state)
{
    (void)state;
    assert_warnings("job \"j\" {\n" GROUP_OF("\n count = 3\n") "}", "");
}

static void test_defaults_as_nomads_own_tool_sends_them_have_no_warnings(void **state)
{
    (void)state;
    assert_warnings("job \"j\" {\n update {\n max_parallel = 1\n stagger = \"30s\"\n}\n" GROUP_OF(
                        "\n migrate {\n max_parallel = 1\n}\n") "}",
                    "");
}

static void test_update_names_what_of_it_is_not_acted_on_once(void **state)
{
    (void)state;
    assert_warnings(
        "job \"j\" {\n update {\n stagger = \"1s\"\n health_check = \"manual\"\n}\n" GROUP_OF(
            "") "}",
        "1 warning(s):\n\n"
        "* update (stagger) is kept and not acted on: max_parallel and health alone pace a "
        "rollout, as in Nomad 2, and only allocs of service and system jobs are replaced step by "
        "step, those of system jobs without canaries");
    assert_warnings("job \"j\" {\n update {\n max_parallel = 2\n min_healthy_time = \"1s\"\n"
                    " progress_deadline = \"20m\"\n canary = 1\n auto_promote = true\n"
                    " auto_revert = true\n health_check = \"task_states\"\n}\n" GROUP_OF("") "}",
                    "");
}

static void test_update_of_a_system_job_has_no_canaries(void **state)
{
    (void)state;
    assert_warnings("job \"j\" {\n type = \"system\"\n update {\n max_parallel = 2\n"
                    " auto_revert = true\n}\n" GROUP_OF("") "}",
                    "");
    assert_warnings(
        "job \"j\" {\n type = \"system\"\n update {\n max_parallel = 2\n auto_promote = true\n"
        " canary = 1\n}\n" GROUP_OF("") "}",
        "1 warning(s):\n\n"
        "* update (auto_promote, canary) is kept and not acted on: max_parallel and health alone "
        "pace a rollout, as in Nomad 2, and only allocs of service and system jobs are replaced "
        "step by step, those of system jobs without canaries");
}

static void test_warnings_say_where(void **state)
{
    (void)state;
    assert_warnings("job \"j\" {\n all_at_once = true\n" GROUP_OF(
                        "\n affinity {\n attribute = \"${node.class}\"\n value = \"x\"\n}\n") "}",
                    "2 warning(s):\n\n"
                    "* all_at_once is kept and not acted on: what fits is placed, and the rest "
                    "waits\n"
                    "* group \"g\": affinity is kept and not acted on: this node is the only one");
}

static void test_lost_servers_are_nothing_that_this_node_can_lose(void **state)
{
    (void)state;
    assert_warnings(
        "job \"j\" {\n" GROUP_OF("\n disconnect {\n replace = false\n"
                                 " stop_on_client_after = \"5m\"\n}\n") "}",
        "1 warning(s):\n\n"
        "* group \"g\": disconnect (stop_on_client_after, replace) is kept and not acted on: "
        "this "
        "node is its own control plane and always in contact; all but stop_on_client_after is for "
        "servers");
    assert_warnings("job \"j\" {\n" GROUP_OF("\n max_client_disconnect = \"1h\"\n") "}",
                    "1 warning(s):\n\n"
                    "* group \"g\": max_client_disconnect is kept and not acted on: it is for "
                    "servers, and this node has none");
}

static void test_many_warnings_are_counted(void **state)
{
    char text[8192] = "job \"j\" {\n", line[200];

    (void)state;
    for (int i = 0; i < 25; i++) {
        (void)snprintf(line, sizeof(line),
                       "group \"g%d\" {\n max_client_disconnect = \"1h\"\n task \"t\" {\n driver = "
                       "\"raw_exec\"\n}\n}\n",
                       i);
        assert_true(text_append(text, sizeof(text), line));
    }
    assert_true(text_append(text, sizeof(text), "}\n"));
    struct jobspec_source source = {.name = "job.hcl", .text = text, .length = strlen(text)};
    json_t *job;
    assert_int_equal(jobspec_parse(&source, &job, &problems), 0);
    char *warnings = jobspec_warnings(job);
    assert_true(text_starts_with(warnings, "25 warning(s):\n\n* group \"g0\": "));
    assert_non_null(strstr(warnings, "group \"g19\""));
    assert_null(strstr(warnings, "group \"g20\""));
    assert_non_null(strstr(warnings, "\n* and 5 more"));
    free(warnings);
    json_decref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_field_is_acted_on_warned_of_or_refused),
        cmocka_unit_test(test_each_field_is_taken_in_place_or_replaces_as_nomad_says),
        cmocka_unit_test(test_plain_job_has_no_warnings),
        cmocka_unit_test(test_defaults_as_nomads_own_tool_sends_them_have_no_warnings),
        cmocka_unit_test(test_update_names_what_of_it_is_not_acted_on_once),
        cmocka_unit_test(test_update_of_a_system_job_has_no_canaries),
        cmocka_unit_test(test_warnings_say_where),
        cmocka_unit_test(test_lost_servers_are_nothing_that_this_node_can_lose),
        cmocka_unit_test(test_many_warnings_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
