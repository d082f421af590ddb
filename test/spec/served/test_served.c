/*
 * What a server sends of an alloc: what is refused and by which words, what says nothing, and that
 * the rest is the text that this node would have written itself.
 *
 * BASE is an alloc as Go sends it, with a value for each field that nobody said.
 */
#include "spec/served.h"
#include "spec/served/part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ID "0f3a3e5c-5f31-4a52-9f0e-0123456789ab"
#define EVAL_ID "1f3a3e5c-5f31-4a52-9f0e-0123456789ab"
#define OTHER_ID "2f3a3e5c-5f31-4a52-9f0e-0123456789ab"
#define TASK "Job.TaskGroups.0.Tasks.0"
#define GROUP "Job.TaskGroups.0"

#define BASE_TASK                                                                                  \
    "{'Name': 'server', 'Driver': 'raw_exec', 'User': '', 'Config': {'command': '/bin/true', "     \
    "'args': ['a', '']}, 'Env': {'EMPTY': ''}, 'Services': null, 'Vault': null, 'Consul': null, "  \
    "'Templates': null, 'Constraints': null, 'Affinities': null, 'Resources': {'CPU': 100, "       \
    "'Cores': 0, 'MemoryMB': 64, 'MemoryMaxMB': 0, 'DiskMB': 0, 'IOPS': 0, 'Networks': null, "     \
    "'Devices': null, 'NUMA': null, 'SecretsMB': 0}, 'RestartPolicy': {'Attempts': 2, 'Interval' " \
    ": 1800000000000, 'Delay': 15000000000, 'Mode': 'fail', 'RenderTemplates': false}, "           \
    "'DispatchPayload': null, 'Lifecycle': null, 'Meta': null, 'KillTimeout': 5000000000, "        \
    "'LogConfig': {'MaxFiles': 10, 'MaxFileSizeMB': 10, 'Disabled': false}, 'Artifacts': null, "   \
    "'Leader': false, 'ShutdownDelay': 0, 'VolumeMounts': null, 'ScalingPolicies': null, "         \
    "'KillSignal': '', 'Kind': '', 'CSIPluginConfig': null, 'Identity': {'Name': 'default', "      \
    "'Audience': ['nomadproject.io'], 'ChangeMode': '', 'ChangeSignal': '', 'Env': false, "        \
    "'File': false, 'Filepath': '', 'ServiceName': '', 'TTL': 0}, 'Identities': null, "            \
    "'Actions': null, 'Schedule': null, 'Secrets': null}"

#define BASE_GROUP                                                                                 \
    "{'Name': 'web', 'Count': 3, 'Update': {'Stagger': 30000000000, 'MaxParallel': 1, "            \
    "'HealthCheck': 'checks', 'MinHealthyTime': 10000000000, 'HealthyDeadline': 300000000000, "    \
    "'ProgressDeadline': 600000000000, 'AutoRevert': false, 'AutoPromote': false, 'Canary': 0}, "  \
    "'Migrate': {'MaxParallel': 1, 'HealthCheck': 'checks', 'MinHealthyTime': 10000000000, "       \
    "'HealthyDeadline': 300000000000}, 'Constraints': null, 'Scaling': null, 'RestartPolicy': "    \
    "{'Attempts': 2, 'Interval': 1800000000000, 'Delay': 15000000000, 'Mode': 'fail', "            \
    "'RenderTemplates': false}, 'Disconnect': null, 'Tasks': [" BASE_TASK "], 'EphemeralDisk': "   \
    "{'Sticky': false, 'SizeMB': 300, 'Migrate': false}, 'Meta': null, 'ReschedulePolicy': "       \
    "{'Attempts': 0, 'Interval': 0, 'Delay': 30000000000, 'DelayFunction': 'exponential', "        \
    "'MaxDelay': 3600000000000, 'Unlimited': true}, 'Affinities': null, 'Spreads': null, "         \
    "'Networks': null, 'Consul': null, 'Services': null, 'Volumes': null, 'ShutdownDelay': null, " \
    "'MaxRunDuration': null, 'StopAfterClientDisconnect': null, 'MaxClientDisconnect': null, "     \
    "'PreventRescheduleOnLost': false}"

#define BASE                                                                                       \
    "{'ID': '" ID "', 'Namespace': 'default', 'EvalID': '" EVAL_ID "', 'Name': 'shop.web[2]', "    \
    "'NodeID': '" OTHER_ID "', 'NodeName': 'n', 'JobID': 'shop', 'TaskGroup': 'web', 'Job': "      \
    "{'Stop': false, 'Region': 'global', 'Namespace': 'default', 'ID': 'shop', 'ParentID': '', "   \
    "'Name': 'shop', 'Type': 'service', 'Priority': 50, 'AllAtOnce': false, 'Datacenters': "       \
    "['*'], 'NodePool': 'default', 'Constraints': null, 'Affinities': null, 'Spreads': null, "     \
    "'TaskGroups': [" BASE_GROUP "], 'Update': {'Stagger': 30000000000, 'MaxParallel': 1, "        \
    "'HealthCheck': '', 'MinHealthyTime': 0, 'HealthyDeadline': 0, 'ProgressDeadline': 0, "        \
    "'AutoRevert': false, 'AutoPromote': false, 'Canary': 0}, 'Multiregion': null, 'Periodic': "   \
    "null, 'ParameterizedJob': null, 'Dispatched': false, 'DispatchIdempotencyToken': '', "        \
    "'Payload': null, 'Meta': null, 'ConsulToken': '', 'ConsulNamespace': '', 'VaultToken': '', "  \
    "'VaultNamespace': '', 'NomadTokenID': '" OTHER_ID "', 'Status': 'pending', "                  \
    "'StatusDescription': '', 'Stable': false, 'Version': 7, 'SubmitTime': 1700000000000000000, "  \
    "'CreateIndex': 10, 'ModifyIndex': 11, 'JobModifyIndex': 10, 'UI': null, 'VersionTag': "       \
    "null}, "                                                                                      \
    "'AllocatedResources': {'Tasks': {'server': {'Cpu': {'CpuShares': 100, 'ReservedCores': "      \
    "null}, 'Memory': {'MemoryMB': 64, 'MemoryMaxMB': 0}, 'Networks': null, 'Devices': null}}, "   \
    "'TaskLifecycles': {'server': null}, 'Shared': {'Networks': null, 'DiskMB': 300, 'Ports': "    \
    "null}}, 'DesiredStatus': 'run', 'DesiredTransition': {'Migrate': null, 'Reschedule': null, "  \
    "'ForceReschedule': null, 'NoShutdownDelay': null}, 'ClientStatus': 'pending', 'CreateIndex' " \
    ": 12, 'ModifyIndex': 12, 'AllocModifyIndex': 12, 'CreateTime': 1700000000000000001, "         \
    "'ModifyTime': 1700000000000000001, 'Metrics': {'NodesEvaluated': 1}}"

#define PORT "{'Label': 'http', 'Value': 0, 'To': 8080, 'HostNetwork': 'default'}"
#define NETWORK                                                                                    \
    "[{'Mode': '', 'Device': '', 'CIDR': '', 'IP': '', 'Hostname': '', 'MBits': 0, 'DNS': null, "  \
    "'ReservedPorts': [{'Label': 'admin', 'Value': 9999, 'To': 0, 'HostNetwork': 'default', "      \
    "'IgnoreCollision': false}], 'DynamicPorts': [" PORT "], 'CNI': null}]"
#define SERVICE                                                                                    \
    "{'Name': 'shop', 'TaskName': '', 'PortLabel': '', 'AddressMode': 'auto', 'Address': '', "     \
    "'EnableTagOverride': false, 'Tags': ['a'], 'CanaryTags': ['c'], 'Checks': null, 'Connect': "  \
    "null, 'Meta': null, 'CanaryMeta': null, 'TaggedAddresses': null, 'Namespace': 'default', "    \
    "'OnUpdate': 'require_healthy', 'Provider': 'nomad', 'Cluster': '', 'Identity': null, "        \
    "'Weights': null, 'Kind': ''}"

static const struct served_node node = {.datacenter = "dc1"};

/* What came of the last read. */
static struct served_alloc served;
static struct err err;
static json_t *text;
static char *raw;
static size_t raw_length;
static struct alloc_spec *spec;

/* TEXT with ' for ". */
static json_t *value_of(const char *quoted)
{
    char *copy = strdup(quoted);
    json_error_t error;

    assert_non_null(copy);
    for (char *at = copy; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    json_t *value = json_loads(copy, JSON_DECODE_ANY, &error);
    if (value == NULL)
        fail_msg("%s: %s", error.text, copy);
    free(copy);
    return value;
}

/* Sets PATH ("Job.TaskGroups.0.Count") of VALUE. */
static void put(json_t *value, const char *path, const char *quoted)
{
    char part[64];

    for (;;) {
        size_t length = strcspn(path, ".");

        assert_true(length < sizeof(part));
        memcpy(part, path, length);
        part[length] = '\0';
        path += length;
        if (*path == '\0')
            break;
        path++;
        value = json_is_array(value) ? json_array_get(value, (size_t)strtoul(part, NULL, 10))
                                     : json_object_get(value, part);
        assert_non_null(value);
    }
    if (quoted == NULL)
        assert_int_equal(json_object_del(value, part), 0);
    else
        assert_int_equal(json_object_set_new(value, part, value_of(quoted)), 0);
}

static void forget(void)
{
    json_decref(text);
    free(raw);
    alloc_spec_free(spec);
    text = NULL;
    raw = NULL;
    spec = NULL;
}

/* ALLOC is let go. */
static int read_alloc(json_t *alloc)
{
    forget();
    err = (struct err){0};
    int code = served_alloc_read(alloc, &node, &served, &raw, &raw_length, &spec, &err);
    if (code == 0) {
        text = json_loadb(raw, raw_length, 0, NULL);
        assert_non_null(text);
    } else {
        assert_null(raw);
        assert_null(spec);
        assert_int_equal(err.code, code);
    }
    served.name = ""; /* what it borrows is asserted where ALLOC is kept */
    json_decref(alloc);
    return code;
}

/* The base with PATH otherwise. */
static int read_with(const char *path, const char *quoted)
{
    json_t *alloc = value_of(BASE);

    put(alloc, path, quoted);
    return read_alloc(alloc);
}

static void must_read(json_t *alloc)
{
    if (read_alloc(alloc) != 0)
        fail_msg("%s", err.text);
}

/* Part PATH of what it became is EXPECTED. */
static void assert_text(const char *path, const char *expected)
{
    const json_t *at = text;
    char part[64];

    while (*path != '\0') {
        size_t length = strcspn(path, ".");

        memcpy(part, path, length);
        part[length] = '\0';
        at = json_is_array(at) ? json_array_get(at, (size_t)strtoul(part, NULL, 10))
                               : json_object_get(at, part);
        path += length + (path[length] == '.');
    }
    json_t *wanted = value_of(expected);
    if (!json_equal(at, wanted)) {
        char *found = at == NULL ? strdup("(none)") : json_dumps(at, JSON_ENCODE_ANY);

        fail_msg("%s, not %s", found, expected);
    }
    json_decref(wanted);
}

/* --- what is no alloc --- */

static void test_what_has_no_id_is_no_alloc(void **state)
{
    static const char *const values[] = {"{}", "[]", "null", "'x'", "{'ID': 'x'}", "{'ID': 7}"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        assert_int_equal(read_alloc(value_of(values[i])), ERR_CORRUPT);
        assert_string_equal(served.id, "");
        assert_string_equal(served.client_status, "");
    }
}

static void test_damaged_allocs_are_refused_and_still_known(void **state)
{
    static const struct {
        const char *path, *value, *told;
    } cases[] = {
        {"Job", "null", "without its job"},
        {"Job", "[]", "without its job"},
        {"TaskGroup", "'x'", "no group \"x\""},
        {"Job.TaskGroups", "null", "no group \"web\""},
        {"Name", "'shop.web'", "has no index"},
        {"Name", "'shop.web[]'", "has no index"},
        {"Name", "'shop.web[-1]'", "has no index"},
        {"Name", "'shop.web[1]x'", "has no index"},
        {"Name", "'shop.web[99999999999]'", "has no index"},
        {"Job.Payload", "'not snappy'", "payload"},
        {"Job.Payload", "{'$bytes': '!'}", "payload"},
        {"Job.Payload", "7", "payload"},
        {GROUP ".Networks", NETWORK, "no port \"admin\""},
        {TASK ".Resources", "{'CPU': 0, 'Cores': 2, 'MemoryMB': 64}", "ReservedCores"},
        {"AllocatedResources.Tasks.server.Cpu.ReservedCores", "[1, 1]", "ReservedCores"},
        {"AllocatedResources.Tasks.server.Cpu.ReservedCores", "['x']", "ReservedCores"},
        {"PreviousAllocation", "'x'", "PreviousAllocation"},
        {"DeploymentID", "'x'", "DeploymentID"},
        {"CreateIndex", "9223372036854775807", "CreateIndex"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        json_t *alloc = value_of(BASE);

        put(alloc, cases[i].path, cases[i].value);
        assert_int_equal(read_alloc(json_incref(alloc)), ERR_CORRUPT);
        if (strstr(err.text, cases[i].told) == NULL)
            fail_msg("%s: %s", cases[i].path, err.text);
        assert_string_equal(served.id, ID);
        assert_int_equal(served.modify_index, 12);
        json_decref(alloc);
    }
}

static void test_what_is_too_large_is_refused(void **state)
{
    json_t *alloc = value_of(BASE), *meta = json_object();
    size_t length = JOBSPEC_ALLOC_BYTES_MAX;
    char *large = malloc(length + 1);

    (void)state;
    assert_non_null(large);
    memset(large, 'x', length);
    large[length] = '\0';
    json_object_set_new(meta, "large", json_string(large));
    json_object_set_new(json_object_get(alloc, "Job"), "Meta", meta);
    free(large);
    assert_int_equal(read_alloc(alloc), ERR_LIMIT);
    assert_non_null(strstr(err.text, "there may be 8388608"));
}

static void test_what_is_nested_too_deep_is_refused(void **state)
{
    json_t *alloc = value_of(BASE), *inner = json_object();

    (void)state;
    for (int i = 0; i < 70; i++)
        inner = json_pack("{s:o}", "x", inner);
    json_object_set_new(json_object_get(alloc, "Job"), "Meta", inner);
    assert_int_equal(read_alloc(alloc), ERR_INVALID);
    assert_non_null(strstr(err.text, "64 levels deep"));
}

/* --- what is refused, by name --- */

static void test_what_is_not_made_yet_is_refused_by_name(void **state)
{
    static const struct {
        const char *path, *value, *told;
    } cases[] = {
        {TASK ".Vault", "{'Policies': ['p'], 'Env': true}",
         "task \"server\": Vault is not supported yet"},
        {TASK ".Consul", "{'Cluster': 'west'}", "one cluster of Consul"},
        {TASK ".Kind", "'connect-ingress:x'", "gateways of Consul Connect are not supported yet"},
        {GROUP ".Services",
         "[{'Name': 's', 'Provider': 'consul', 'Connect': {'Gateway': {'Proxy': {'ConnectTimeout': "
         "5}}}}]",
         "Gateway is not supported yet"},
        {GROUP ".Services", "[{'Name': 's', 'Provider': 'consul', 'Cluster': 'west'}]",
         "one cluster of Consul"},
        {TASK ".Schedule", "{'Cron': {'Start': '* * * * *'}}",
         "task \"server\": Schedule is not supported yet"},
        {TASK ".Secrets", "[{'Name': 's'}]", "task \"server\": Secrets is not supported yet"},
        {TASK ".Resources.SecretsMB", "2", "task \"server\": SecretsMB is not supported yet"},
        {GROUP ".Consul", "{'Namespace': 'x'}", "Namespace is not supported yet"},
        {GROUP ".Consul", "{'Partition': 'x'}", "Partition is not supported yet"},
        {GROUP ".Consul", "{'Cluster': 'west'}", "one cluster of Consul"},
        {"Job.ConsulNamespace", "'x'", "ConsulNamespace is not supported yet"},
        {"Job.VaultNamespace", "'x'", "VaultNamespace is not supported yet"},
        {"Job.Novelty", "{'On': true}", "Novelty of the job is not known here"},
        {GROUP ".Novelty", "1", "Novelty of the group is not known here"},
        {TASK ".Novelty", "['x']", "task \"server\": Novelty of the task is not known here"},
        {TASK ".Resources.Novelty", "-1",
         "task \"server\": Novelty of the resources is not known here"},
        {TASK ".cairnTemplates", "['x']", "cairnTemplates of the task is not known here"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(read_with(cases[i].path, cases[i].value), ERR_UNSUPPORTED);
        if (strstr(err.text, cases[i].told) == NULL)
            fail_msg("%s: %s", cases[i].path, err.text);
    }
}

static void test_what_a_rule_forbids_is_refused(void **state)
{
    static const struct {
        const char *path, *value, *told;
    } cases[] = {
        {"Job.ID", "''", "the name of a job"},
        {"Job.Type", "'x'", "the type of a job"},
        {GROUP ".Tasks", "[]", "there are no tasks"},
        {GROUP ".Tasks", "null", "there are no tasks"},
        {GROUP ".Tasks", "7", "Tasks must be a list"},
        {GROUP ".Tasks", "[null]", "must be an object"},
        {TASK ".Name", "'..'", "the name of a task"},
        {TASK ".Driver", "''", "a task needs a Driver"},
        {TASK ".KillSignal", "'x'", "unknown signal"},
        {TASK ".KillTimeout", "-1", "must not be negative"},
        {TASK ".Env", "{'A': {'$bytes': '/w=='}}", "must be a string"},
        {TASK ".Env", "{'': 'x'}", "cannot be the name of a variable"},
        {TASK ".Resources", "[]", "Resources must be an object"},
        {TASK ".VolumeMounts", "[{'Volume': 'v', 'Destination': '/v'}]", "undefined volume \"v\""},
        {TASK ".Kind", "'connect-proxy:x'", "no service of the group says so"},
        {GROUP ".Services", "[{'Name': 's', 'Provider': 'etcd'}]", "must be \"nomad\" or"},
        {GROUP ".Services", "[{'Name': 's', 'Checks': [{'Type': 'script'}]}]", "script path"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(read_with(cases[i].path, cases[i].value), ERR_INVALID);
        if (strstr(err.text, cases[i].told) == NULL)
            fail_msg("%s: %s", cases[i].path, err.text);
    }
}

static void test_all_that_is_refused_is_one_sentence(void **state)
{
    json_t *alloc = value_of(BASE);

    (void)state;
    put(alloc, TASK ".Vault", "{'Env': true}");
    put(alloc, TASK ".Schedule", "{'Cron': {'Start': '* * * * *'}}");
    assert_int_equal(read_alloc(alloc), ERR_UNSUPPORTED);
    assert_string_equal(err.text, "task \"server\": Vault is not supported yet; "
                                  "task \"server\": Schedule is not supported yet");
}

static void test_what_finds_no_room_in_the_sentence_is_counted(void **state)
{
    json_t *alloc = value_of(BASE);
    char path[64];

    (void)state;
    for (int i = 0; i < 30; i++) {
        (void)snprintf(path, sizeof(path), TASK ".Novelty%d", i);
        put(alloc, path, "1");
    }
    assert_int_equal(read_alloc(alloc), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "Novelty0 of the task is not known here; "));
    assert_true(text_ends_with(err.text, " more"));
    assert_true(strlen(err.text) < ERR_TEXT_SIZE - 1); /* it was not cut */
}

/* --- what says nothing --- */

static void test_zero_values_say_nothing(void **state)
{
    static const char *const paths[] = {
        "Job.Novelty",
        "Job.Multiregion",
        "Job.ParentID",
        "Job.Meta",
        "Job.Payload",
        GROUP ".Novelty",
        GROUP ".Meta",
        GROUP ".Networks",
        GROUP ".Services",
        GROUP ".Volumes",
        GROUP ".Consul",
        GROUP ".ShutdownDelay",
        GROUP ".MaxRunDuration",
        TASK ".Novelty",
        TASK ".Meta",
        TASK ".Vault",
        TASK ".Consul",
        TASK ".Services",
        TASK ".Templates",
        TASK ".Artifacts",
        TASK ".VolumeMounts",
        TASK ".Lifecycle",
        TASK ".Identity",
        TASK ".Identities",
        TASK ".Actions",
        TASK ".Schedule",
        TASK ".CSIPluginConfig",
        TASK ".DispatchPayload",
        TASK ".Resources.Networks",
        TASK ".Resources.Devices",
        TASK ".Resources.NUMA",
    };
    static const char *const zeros[] = {"null", NULL};
    json_t *plain;

    (void)state;
    must_read(value_of(BASE));
    plain = json_incref(text);
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        for (size_t z = 0; z < COUNT_OF(zeros); z++) {
            json_t *alloc = value_of(BASE);

            put(alloc, paths[i], "null");
            put(alloc, paths[i], zeros[z]);
            if (read_alloc(alloc) != 0)
                fail_msg("%s: %s", paths[i], err.text);
            if (!json_equal(text, plain))
                fail_msg("%s matters", paths[i]);
        }
    }
    json_decref(plain);
}

/* With VALUE at PATH it is read as without. */
static void must_not_matter(const char *path, const char *value)
{
    must_read(value_of(BASE));
    json_t *plain = json_incref(text);

    if (read_with(path, value) != 0)
        fail_msg("%s: %s", path, err.text);
    if (!json_equal(text, plain))
        fail_msg("%s matters", path);
    json_decref(plain);
}

static void test_empty_values_of_their_types_say_nothing(void **state)
{
    static const struct {
        const char *path, *value;
    } cases[] = {
        {"Job.Novelty", "''"},
        {"Job.Novelty", "0"},
        {"Job.Novelty", "false"},
        {"Job.Novelty", "[]"},
        {"Job.Novelty", "{}"},
        {"Job.Novelty", "{'At': {'$time': null}, 'For': 0}"},
        {"Job.Meta", "{}"},
        {GROUP ".Meta", "{}"},
        {GROUP ".Services", "[]"},
        {GROUP ".Volumes", "{}"},
        {GROUP ".Networks", "[]"},
        {GROUP ".Consul", "{'Namespace': '', 'Cluster': '', 'Partition': ''}"},
        {TASK ".Meta", "{}"},
        {TASK ".Templates", "[]"},
        {TASK ".Artifacts", "[]"},
        {TASK ".VolumeMounts", "[]"},
        {TASK ".Vault", "{'Policies': null, 'Role': '', 'Env': false, 'ChangeMode': ''}"},
        {TASK ".Identities", "[{'Name': 'quiet', 'Audience': ['x'], 'TTL': 3600000000000}]"},
        {TASK ".Identity", "{'Name': 'default', 'Filepath': 'x', 'ChangeMode': 'restart'}"},
        {"SignedIdentities", "{'server': 'a.b.c'}"},
        {"SigningKeyID", "'" OTHER_ID "'"},
        {TASK ".Resources.Devices", "[]"},
        {TASK ".Resources.NUMA", "{'Affinity': '', 'Devices': null}"},
        {TASK ".Resources.NUMA", "{'Affinity': 'require', 'Devices': ['nvidia/gpu']}"},
        {TASK ".Schedule", "{}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        must_not_matter(cases[i].path, cases[i].value);
}

static void test_what_servers_act_on_is_no_reason_to_refuse(void **state)
{
    static const struct {
        const char *path, *value;
    } cases[] = {
        {"Job.Stop", "true"},
        {"Job.Stable", "true"},
        {"Job.Status", "'running'"},
        {"Job.Priority", "0"},
        {"Job.AllAtOnce", "true"},
        {"Job.Datacenters", "['', 'x']"},
        {"Job.NodePool", "'gpu'"},
        {"Job.Constraints", "[{'LTarget': '${attr.novel}', 'RTarget': '>= 2', 'Operand': 'new'}]"},
        {"Job.Affinities", "[{'LTarget': 'x', 'Operand': 'y', 'Weight': 1000}]"},
        {"Job.Spreads", "[{'Attribute': 'x', 'Novelty': 1}]"},
        {"Job.Multiregion", "{'Regions': [{'Name': 'x'}]}"},
        {"Job.Periodic", "{'Enabled': true, 'Spec': 'no time', 'SpecType': 'new'}"},
        {"Job.ParameterizedJob", "{'Payload': 'new'}"},
        {"Job.Dispatched", "true"},
        {"Job.UI", "{'Description': 'x', 'Novelty': 1}"},
        {"Job.VersionTag", "{'Name': 'x', 'TaggedTime': 1}"},
        {GROUP ".Count", "1000000"},
        {GROUP ".Constraints", "[{'LTarget': 'x', 'Operand': 'novel'}]"},
        {GROUP ".Scaling", "{'Min': 9, 'Max': 1, 'Novelty': 1}"},
        {GROUP ".Update", "{'HealthCheck': 'new', 'Novelty': 1}"},
        {GROUP ".Update.ProgressDeadline", "1"},
        {GROUP ".Update.Canary", "2"},
        {GROUP ".Migrate", "{'HealthCheck': 'new'}"},
        {GROUP ".ReschedulePolicy", "{'DelayFunction': 'new', 'Attempts': 1}"},
        {GROUP ".Spreads", "[{'Novelty': 1}]"},
        {GROUP ".Disconnect", "{'LostAfter': 1, 'Reconcile': 'new'}"},
        {GROUP ".PreventRescheduleOnLost", "true"},
        {GROUP ".Consul", "{'Namespace': '', 'Cluster': 'default', 'Partition': ''}"},
        {TASK ".Constraints", "[{'Operand': 'distinct_hosts', 'RTarget': 'true'}]"},
        {TASK ".Affinities", "[{'Novelty': 1}]"},
        {TASK ".ScalingPolicies", "[{'Type': 'vertical_cpu', 'Max': 1}]"},
        {TASK ".RestartPolicy.RenderTemplates", "true"},
        {"Novelty", "{'Of': 'allocs'}"},
        {"Metrics", "7"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        must_not_matter(cases[i].path, cases[i].value);
}

static void test_other_groups_are_not_looked_at(void **state)
{
    json_t *alloc = value_of(BASE), *groups, *other = value_of(BASE_GROUP);

    (void)state;
    put(other, "Name", "'other'");
    put(other, "Tasks.0.Vault", "{'Env': true}");
    groups = json_object_get(json_object_get(alloc, "Job"), "TaskGroups");
    assert_int_equal(json_array_insert_new(groups, 0, other), 0);
    must_read(alloc);
    assert_text("Group.Name", "'web'");
}

static void test_a_long_kill_timeout_is_no_reason_to_refuse(void **state)
{
    (void)state;
    assert_int_equal(read_with(TASK ".KillTimeout", "3600000000000"), 0);
    assert_int_equal(spec->tasks[0].kill_timeout_ms, 3600000);
}

/* --- what it becomes --- */

/* The text of the same job that this node places itself. */
static void test_it_is_the_text_that_this_node_would_write(void **state)
{
    static const char job_text[] =
        "job \"shop\" {\n  group \"web\" {\n    count = 3\n"
        "    network {\n      port \"http\" { to = 8080 }\n      port \"admin\" { static = 9999 }\n"
        "    }\n"
        "    service {\n      provider = \"nomad\"\n      name = \"shop\"\n      tags = [\"a\"]\n"
        "      canary_tags = [\"c\"]\n    }\n"
        "    task \"server\" {\n      driver = \"raw_exec\"\n"
        "      config {\n        command = \"/bin/true\"\n        args = [\"a\", \"\"]\n      }\n"
        "      env { EMPTY = \"\" }\n      resources { memory = 64 }\n    }\n  }\n}\n";
    struct jobspec_problems problems;
    struct jobspec_source source = {
        .name = "shop", .text = job_text, .length = sizeof(job_text) - 1};
    struct spec_port ports[] = {
        {.label = "admin", .task = "", .host_ip = "10.0.0.5", .value = 9999, .is_static = true},
        {.label = "http", .task = "", .host_ip = "10.0.0.5", .value = 23456, .to = 8080}};
    struct jobspec_placement placement = {.group = "web",
                                          .index = 2,
                                          .alloc_id = ID,
                                          .eval_id = EVAL_ID,
                                          .datacenter = "dc1",
                                          .create_time_unix_ns = 1700000000000000001,
                                          .create_index = 12,
                                          .ports = {ports, 2}};
    json_t *alloc = value_of(BASE), *job;
    size_t length;
    char *own;

    (void)state;
    put(alloc, GROUP ".Networks", NETWORK);
    put(alloc, GROUP ".Services", "[" SERVICE "]");
    put(alloc, "AllocatedResources.Shared.Ports",
        "[{'Label': 'http', 'Value': 23456, 'To': 8080, 'HostIP': '10.0.0.5'}, "
        "{'Label': 'admin', 'Value': 9999, 'HostIP': '10.0.0.5'}]");
    must_read(alloc);
    assert_int_equal(jobspec_parse(&source, &job, &problems), 0);
    json_object_set_new(job, "Version", json_integer(7));
    assert_int_equal(jobspec_alloc_json(job, &placement, &own, &length, &err), 0);
    assert_string_equal(raw, own);
    assert_string_equal(spec->name, "shop.web[2]");
    free(own);
    json_decref(job);
}

/* As servers of 1.1.2 send it. */
static void test_what_older_servers_leave_out_is_filled_in(void **state)
{
    json_t *alloc = value_of(BASE);

    (void)state;
    put(alloc, "Job",
        "{'ID': 'shop', 'Name': 'shop', 'Type': 'service', 'TaskGroups': [{'Name': 'web', 'Tasks': "
        "[{'Name': 'server', 'Driver': 'raw_exec', 'Templates': [{'EmbeddedTmpl': 'x', 'DestPath': "
        "'local/x'}]}]}]}");
    put(alloc, "DesiredTransition", NULL);
    must_read(alloc);
    assert_text("Group.EphemeralDisk.SizeMB", "300");
    assert_text("Group.Tasks.0.RestartPolicy.Attempts", "2");
    assert_text("Group.Tasks.0.LogConfig.MaxFiles", "10");
    assert_text("Group.Tasks.0.KillTimeout", "5000000000");
    assert_text("Group.Tasks.0.Templates.0.ChangeMode", "'restart'");
    assert_text("Job.Namespace", "'default'");
    assert_text("Job.Region", "'global'");
    assert_int_equal(spec->job_version, 0);
}

static void test_a_volume_of_a_plugin_waits_for_its_name(void **state)
{
    struct spec_pair pair = {"data", "plugin"};
    struct served_node knows = {.datacenter = "dc1", .plugins = {&pair, 1}};
    json_t *alloc = value_of(BASE);

    (void)state;
    put(alloc, GROUP ".Volumes",
        "{'data': {'Name': 'data', 'Type': 'csi', 'Source': 'id', 'ReadOnly': false, 'Sticky': "
        "false, 'AccessMode': 'single-node-writer', 'AttachmentMode': 'file-system', "
        "'MountOptions': null, 'PerAlloc': true}}");
    must_read(json_incref(alloc));
    assert_int_equal(spec->volumes_count, 1);
    assert_string_equal(spec->volumes[0].source, "id[2]");
    assert_string_equal(spec->volumes[0].plugin, "");
    assert_text("VolumePlugins", "{'data': null}");
    forget();
    assert_int_equal(served_alloc_read(alloc, &knows, &served, &raw, &raw_length, &spec, &err), 0);
    assert_string_equal(spec->volumes[0].plugin, "plugin");
    json_decref(alloc);
}

/* --- what it was given --- */

static void test_ports_are_where_servers_have_them(void **state)
{
    static const char *const given[] = {
        /* since 0.12 */
        "{'Ports': [{'Label': 'http', 'Value': 23456, 'To': 8080, 'HostIP': '10.0.0.5'}, {'Label': "
        "'admin', 'Value': 9999, 'To': 0, 'HostIP': '10.0.0.5'}], 'Networks': null}",
        /* before it had addresses of its own */
        "{'Ports': [{'Label': 'http', 'Value': 23456, 'To': 8080}, {'Label': 'admin', 'Value': "
        "9999}], 'Networks': [{'IP': '10.0.0.5'}]}",
        /* before 0.12 */
        "{'Networks': [{'IP': '10.0.0.5', 'ReservedPorts': [{'Label': 'admin', 'Value': 9999}], "
        "'DynamicPorts': [{'Label': 'http', 'Value': 23456, 'To': 8080}]}]}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(given); i++) {
        json_t *alloc = value_of(BASE);

        put(alloc, GROUP ".Networks", NETWORK);
        put(alloc, "AllocatedResources.Shared", given[i]);
        must_read(alloc);
        assert_int_equal(spec->ports.count, 2);
        assert_string_equal(spec->ports.items[0].label, "admin");
        assert_int_equal(spec->ports.items[0].value, 9999);
        assert_string_equal(spec->ports.items[1].host_ip, "10.0.0.5");
        assert_int_equal(spec->ports.items[1].value, 23456);
        assert_int_equal(spec->ports.items[1].to, 8080);
    }
}

static void test_ports_of_tasks_are_theirs(void **state)
{
    json_t *alloc = value_of(BASE);

    (void)state;
    put(alloc, TASK ".Resources.Networks",
        "[{'Mode': '', 'MBits': 10, 'ReservedPorts': null, 'DynamicPorts': [{'Label': 'db', "
        "'Value': 0, 'To': 0, 'HostNetwork': 'default'}]}]");
    put(alloc, "AllocatedResources.Tasks.server.Networks",
        "[{'IP': '10.0.0.5', 'MBits': 10, 'ReservedPorts': null, 'DynamicPorts': [{'Label': 'db', "
        "'Value': 23456, 'To': 0}]}]");
    must_read(alloc);
    assert_int_equal(spec->ports.count, 1);
    assert_string_equal(spec->ports.items[0].task, "server");
    assert_int_equal(spec->ports.items[0].value, 23456);
}

static void test_what_was_given_wins_over_what_was_asked_for(void **state)
{
    json_t *alloc = value_of(BASE);

    (void)state;
    put(alloc, TASK ".Resources.MemoryMaxMB", "512");
    put(alloc, "AllocatedResources.Tasks.server",
        "{'Cpu': {'CpuShares': 250}, 'Memory': {'MemoryMB': 128, 'MemoryMaxMB': 0}}");
    put(alloc, "AllocatedResources.Shared.DiskMB", "400");
    must_read(alloc);
    assert_int_equal(spec->tasks[0].resources.cpu_mhz, 250);
    assert_int_equal(spec->tasks[0].resources.memory_mb, 128);
    assert_int_equal(spec->tasks[0].resources.memory_max_mb, 0); /* none beyond it, there */
    assert_int_equal(spec->ephemeral_disk_mb, 400);
}

static void test_cores_come_in_order_with_what_they_do(void **state)
{
    json_t *alloc = value_of(BASE);

    (void)state;
    put(alloc, TASK ".Resources.Cores", "3");
    put(alloc, TASK ".Resources.CPU", "0");
    put(alloc, "AllocatedResources.Tasks.server.Cpu",
        "{'CpuShares': 10001, 'ReservedCores': [9, 0, 4]}");
    must_read(alloc);
    assert_text("AllocatedResources.Tasks.server.Cpu",
                "{'CpuShares': 10001, 'ReservedCores': [0, 4, 9]}");
    assert_int_equal(spec->tasks[0].resources.cores, 3);
    assert_int_equal(spec->tasks[0].resources.core_ids[2], 9);
    assert_int_equal(spec->tasks[0].resources.cpu_mhz, 10001);
}

static void test_fields_of_old_servers_count_where_newer_ones_are_not(void **state)
{
    static const char legacy[] =
        "{'server': {'CPU': 300, 'MemoryMB': 256, 'Networks': [{'IP': '10.0.0.5', 'DynamicPorts': "
        "[{'Label': 'db', 'Value': 23456}]}]}}";
    json_t *alloc = value_of(BASE);

    (void)state;
    put(alloc, TASK ".Resources.Networks", "[{'DynamicPorts': [{'Label': 'db'}]}]");
    put(alloc, "AllocatedResources", NULL);
    put(alloc, "TaskResources", legacy);
    put(alloc, "SharedResources", "{'DiskMB': 350}");
    must_read(alloc);
    assert_int_equal(spec->tasks[0].resources.cpu_mhz, 300);
    assert_int_equal(spec->tasks[0].resources.memory_mb, 256);
    assert_int_equal(spec->ports.items[0].value, 23456);
    assert_int_equal(spec->ephemeral_disk_mb, 350);
    alloc = value_of(BASE);
    put(alloc, "TaskResources", legacy);
    must_read(alloc);
    assert_int_equal(spec->tasks[0].resources.cpu_mhz, 100);
}

/* --- payloads --- */

static bool unpack(const char *bytes, size_t length, uint8_t **ret_bytes, size_t *ret_length)
{
    uint8_t *copy = malloc(length + 1); /* so that a sanitizer sees what is read beyond it */

    assert_non_null(copy);
    memcpy(copy, bytes, length);
    copy = realloc(copy, length > 0 ? length : 1);
    bool good = jobspec_unpack(copy, length, 300, ret_bytes, ret_length);
    free(copy);
    return good;
}

#define BYTES(text) text, sizeof(text) - 1

static void test_what_is_not_packed_well_is_not_unpacked(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
    } cases[] = {
        {BYTES("")},                              /* no length */
        {BYTES("\x80")},                          /* half of one */
        {BYTES("\xff\xff\xff\xff\xff\xff")},      /* one without an end */
        {BYTES("\xad\x02\x00x")},                 /* 301 bytes */
        {BYTES("\x01")},                          /* nothing of one byte */
        {BYTES("\x02\x00x")},                     /* less */
        {BYTES("\x01\x04xy")},                    /* more */
        {BYTES("\x03\x08xy")},                    /* half a literal */
        {BYTES("\x40\xf0")},                      /* the length of one is not there */
        {BYTES("\x40\xfc\xff\xff\xff\xffx")},     /* one of four gigabytes */
        {BYTES("\x05\x00x\x01\x00")},             /* what is repeated begins nowhere */
        {BYTES("\x05\x00x\x01\x02")},             /* before the first */
        {BYTES("\x04\x00x\x01\x01")},             /* longer than there is room */
        {BYTES("\x05\x00x\x0e\x01")},             /* half a place */
        {BYTES("\x05\x00x\x0f\x01\x00\x00")},     /* likewise */
        {BYTES("\x05\x00x\x0f\x01\x00\x00\xff")}, /* far before the first */
    };
    uint8_t *bytes;
    size_t length;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (unpack(cases[i].bytes, cases[i].length, &bytes, &length))
            fail_msg("case %zu", i);
    }
}

static void test_each_kind_of_element_is_unpacked(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *expected;
    } cases[] = {
        {BYTES("\x00"), ""},
        {BYTES("\x02\x04xy"), "xy"},
        {BYTES("\x03\xf0\x02xyz"), "xyz"},                  /* length in a byte */
        {BYTES("\x03\xf4\x02\x00xyz"), "xyz"},              /* in two */
        {BYTES("\x03\xfc\x02\x00\x00\x00xyz"), "xyz"},      /* in four */
        {BYTES("\x06\x04xy\x01\x02"), "xyxyxy"},            /* it repeats itself */
        {BYTES("\x05\x04xy\x0a\x02\x00"), "xyxyx"},         /* place of two bytes */
        {BYTES("\x05\x04xy\x0b\x02\x00\x00\x00"), "xyxyx"}, /* of four */
    };
    uint8_t *bytes;
    size_t length;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (!unpack(cases[i].bytes, cases[i].length, &bytes, &length))
            fail_msg("case %zu", i);
        assert_int_equal(length, strlen(cases[i].expected));
        assert_memory_equal(bytes, cases[i].expected, length);
        free(bytes);
    }
}

static void test_a_payload_is_there_as_it_was_dispatched(void **state)
{
    (void)state;
    /* Text on the wire, since all bytes are of one. */
    assert_int_equal(read_with("Job.Payload", "'\\u0005\\u0010hello'"), 0);
    assert_string_equal(spec->payload, "aGVsbG8=");
    /* 02 04 ff 00 */
    assert_int_equal(read_with("Job.Payload", "{'$bytes': 'AgT/AA=='}"), 0);
    assert_string_equal(spec->payload, "/wA=");
    assert_int_equal(read_with("Job.Payload", "''"), 0);
    assert_string_equal(spec->payload, "");
}

/* --- what whoever places it hears --- */

static int read_identity(const char *identity, const char *tokens)
{
    json_t *alloc = value_of(BASE);

    put(alloc, TASK ".Identity", identity);
    put(alloc, "SignedIdentities", tokens);
    return read_alloc(alloc);
}

static void test_a_token_comes_with_who_sees_it(void **state)
{
    static const struct {
        const char *identity;
        bool env;
        const char *file;
    } cases[] = {
        {"{'Name': 'default', 'Env': true}", true, ""},
        {"{'Name': 'default', 'File': true, 'TTL': 0}", false, "secrets/nomad_token"},
        {"{'Env': true, 'File': true, 'Filepath': 'local/a/token'}", true, "local/a/token"},
        {"{'File': true, 'Filepath': '/secrets/x'}", false, "secrets/x"},
        {"{'Env': true, 'File': false, 'Filepath': 'x'}", true, ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(
            read_identity(cases[i].identity, "{'server': 'ey_J.e-30.x', 'other': 'a'}"), 0);
        assert_text("SignedIdentities", "{'server': 'ey_J.e-30.x'}");
        assert_string_equal(spec->tasks[0].identity.token, "ey_J.e-30.x");
        assert_int_equal(spec->tasks[0].identity.env, cases[i].env);
        assert_string_equal(spec->tasks[0].identity.file, cases[i].file);
    }
    assert_int_equal(read_with("SignedIdentities", "{'server': 'ey_J.e-30.x'}"), 0);
    assert_null(json_object_get(text, "SignedIdentities")); /* it sees none: nothing keeps it */
    assert_string_equal(spec->tasks[0].identity.token, "");
}

static void test_without_a_token_that_it_asks_for_it_does_not_run(void **state)
{
    static const char *const tokens[] = {"null",
                                         "{}",
                                         "{'other': 'a.b.c'}",
                                         "{'server': ''}",
                                         "{'server': 7}",
                                         "{'server': 'a b'}",
                                         "{'server': 'a\\nX-Other: b'}"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        assert_int_equal(read_identity("{'Env': true}", tokens[i]), ERR_CORRUPT);
        assert_string_equal(err.text, "the server sent no identity of the task \"server\", which "
                                      "asks for it");
    }
}

static void test_a_token_goes_to_no_file_that_is_not_its_tasks(void **state)
{
    static const char *const files[] = {"../alloc/x", "local/../../x", "/..", "local/"};
    char identity[64];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        assert_true(
            text_format(identity, sizeof(identity), "{'File': true, 'Filepath': '%s'}", files[i]));
        assert_int_equal(read_identity(identity, "{'server': 'a.b.c'}"), ERR_INVALID);
        assert_non_null(strstr(err.text, "task \"server\": the file of the identity "));
        assert_null(strstr(err.text, "a.b.c"));
    }
}

/* What of it is signed elsewhere is left out. */
static void test_named_identities_are_read(void **state)
{
    const struct task_spec *task;

    (void)state;
    assert_int_equal(
        read_with(TASK ".Identities",
                  "[{'Name': 'aws', 'Audience': ['a'], 'Env': true, 'File': true, 'TTL': "
                  "3600000000000, 'ChangeMode': 'signal', 'ChangeSignal': 'SIGHUP', "
                  "'ExtraClaims': ['x'], 'ServiceName': ''},"
                  " {'Name': 'quiet', 'Audience': ['b'], 'ChangeMode': 'noop', 'TTL': 5},"
                  " {'Name': 'told', 'ChangeMode': 'restart'},"
                  " {'Name': 'p_1-2', 'File': true, 'Filepath': '/local/p', 'ChangeMode': ''}]"),
        0);
    task = &spec->tasks[0];
    assert_int_equal(task->identities_count, 3);
    assert_string_equal(task->identities[0].name, "aws");
    assert_true(task->identities[0].env);
    assert_string_equal(task->identities[0].file, "secrets/nomad_aws.jwt");
    assert_int_equal(task->identities[0].change, SPEC_CHANGE_SIGNAL);
    assert_string_equal(task->identities[0].signal, "SIGHUP");
    assert_int_equal(task->identities[0].ttl_ms, 3600000);
    assert_string_equal(task->identities[1].name, "told");
    assert_int_equal(task->identities[1].change, SPEC_CHANGE_RESTART);
    assert_false(task->identities[1].env);
    assert_string_equal(task->identities[1].file, "");
    assert_string_equal(task->identities[2].name, "p_1-2");
    assert_string_equal(task->identities[2].file, "local/p");
    assert_int_equal(task->identities[2].change, SPEC_CHANGE_NOOP);
    assert_int_equal(task->identities[2].ttl_ms, 0);
}

static void test_named_identities_that_cannot_be_had_are_refused(void **state)
{
    static const struct {
        const char *identities, *told;
    } cases[] = {
        {"[{'Env': true}]", "the name of an identity is letters, digits, \"-\" and \"_\", 128 at "
                            "most: \"\""},
        {"[{'Name': 'a/b', 'File': true}]", "128 at most: \"a/b\""},
        {"[{'Name': 'a=b', 'Env': true}]", "128 at most: \"a=b\""},
        {"[{'Name': 'a', 'Env': true, 'ChangeMode': 'script'}]",
         "the identity \"a\": invalid change_mode: \"script\""},
        {"[{'Name': 'a', 'Env': true, 'ChangeMode': 'signal', 'ChangeSignal': 'SIGX'}]",
         "the identity \"a\": unknown signal \"SIGX\""},
        {"[{'Name': 'a', 'File': true, 'Filepath': '../b'}]",
         "the file of the identity leads out of the directory of the task"},
        {"[{'Name': 'a', 'Env': true}, {'Name': 'a', 'File': true}]",
         "two identities have the name \"a\""},
        {"[{'Name': 'a', 'Env': true, 'Novelty': 1}]", ""}, /* of those that signs it */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool fine = *cases[i].told == '\0';

        assert_int_equal(read_with(TASK ".Identities", cases[i].identities),
                         fine ? 0 : ERR_INVALID);
        if (!fine && strstr(err.text, cases[i].told) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", cases[i].told, err.text);
    }
    char many[2048] = "[";
    for (int i = 0; i <= SPEC_IDENTITIES_MAX; i++) {
        char identity[64];

        assert_true(text_format(identity, sizeof(identity), "%s{'Name': 'i%d', 'Env': true}",
                                i == 0 ? "" : ", ", i));
        assert_true(text_append(many, sizeof(many), identity));
    }
    assert_true(text_append(many, sizeof(many), "]"));
    assert_int_equal(read_with(TASK ".Identities", many), ERR_INVALID);
    assert_non_null(strstr(err.text, "17 identities, there may be 16"));
}

/* Identities of services have the names that servers give them. */
static void test_who_gets_a_token_of_consul_is_read(void **state)
{
#define OF(provider, name)                                                                         \
    "{'Name': '${NOMAD_JOB_NAME}-" name "', 'PortLabel': '80', 'Provider': '" provider "', "       \
    "'AddressMode': 'auto', 'Identity': {'Name': 'consul-service_${NOMAD_JOB_NAME}-" name "-80', " \
    "'Audience': ['consul.io'], 'ServiceName': '${NOMAD_JOB_NAME}-x', 'TTL': 3600000000000}}"
    json_t *alloc = value_of(BASE);

    (void)state;
    put(alloc, "Job.TaskGroups.0.Services", "[" OF("consul", "x") ", " OF("nomad", "y") "]");
    put(alloc, "Job.TaskGroups.0.Consul", "{'Namespace': '', 'Cluster': 'default'}");
    put(alloc, TASK ".Consul", "{'Namespace': '', 'Cluster': 'default', 'Partition': ''}");
    put(alloc, TASK ".Services",
        "[{'Name': 'own', 'Provider': 'consul', "
        "'Identity': {'Name': 'consul-service_server-own-'}}]");
    put(alloc, TASK ".Identities",
        "[{'Name': 'consul_default', 'Audience': ['consul.io'], 'TTL': 3600000000000}]");
    if (read_alloc(alloc) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(spec->services_count, 3);
    assert_string_equal(spec->services[0].identity, "consul-service_${NOMAD_JOB_NAME}-x-80");
    assert_string_equal(spec->services[1].identity, "");
    assert_string_equal(spec->services[2].identity, "consul-service_server-own-");
    assert_true(spec->tasks[0].has_consul_token);
    assert_int_equal(spec->tasks[0].identities_count, 0); /* it does not see that one itself */
    assert_int_equal(read_with(TASK ".Consul", "{'Cluster': 'other'}"), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "there is one cluster of Consul"));
#undef OF
}

static void test_what_else_is_said_is_told(void **state)
{
    json_t *alloc = value_of(BASE);

    (void)state;
    put(alloc, "DesiredStatus", "'evict'");
    put(alloc, "DesiredDescription", "'preempted'");
    put(alloc, "DesiredTransition.Migrate", "true");
    put(alloc, "DesiredTransition.NoShutdownDelay", "true");
    put(alloc, "ClientStatus", "'lost'");
    put(alloc, "PreviousAllocation", "'" OTHER_ID "'");
    put(alloc, "PreemptedAllocations", "['" OTHER_ID "', 'x', 7]");
    put(alloc, "DeploymentID", "'" EVAL_ID "'");
    put(alloc, "DeploymentStatus", "{'Healthy': false, 'Timestamp': {'$time': 1}, 'Canary': true}");
    put(alloc, "AllocModifyIndex", "40");
    put(alloc, GROUP ".Disconnect", "{'StopOnClientAfter': 5000000000}");
    assert_int_equal(served_alloc_peek(alloc, &served, &err), 0);
    assert_string_equal(served.id, ID);
    assert_string_equal(served.name, "shop.web[2]");
    assert_string_equal(served.namespace, "default");
    assert_string_equal(served.job_id, "shop");
    assert_string_equal(served.group, "web");
    assert_string_equal(served.node_id, OTHER_ID);
    assert_string_equal(served.eval_id, EVAL_ID);
    assert_int_equal(served.desired, SERVED_EVICT);
    assert_string_equal(served.desired_status, "evict");
    assert_string_equal(served.desired_description, "preempted");
    assert_true(served.migrate);
    assert_true(served.no_shutdown_delay);
    assert_true(served.client_terminal);
    assert_string_equal(served.previous_id, OTHER_ID);
    assert_int_equal(json_array_size(served.preempted), 3);
    assert_string_equal(served.deployment_id, EVAL_ID);
    assert_int_equal(served.health, SERVED_UNHEALTHY);
    assert_true(served.canary);
    assert_int_equal(served.stop_after_lost_ns, 5000000000);
    assert_int_equal(served.create_index, 12);
    assert_int_equal(served.modify_index, 40);
    assert_int_equal(json_array_size(served.tasks), 1);
    must_read(alloc);
    assert_text("Canary", "true");
    assert_text("ModifyIndex", "40");
    assert_true(spec->canary);
    assert_int_equal(spec->create_index, 12);
    assert_int_equal(spec->modify_index, 40);
    assert_string_equal(spec->previous_id, OTHER_ID);
    assert_int_equal(spec->preempted.count, 1);
    assert_string_equal(spec->preempted.items[0], OTHER_ID);
    assert_string_equal(spec->deployment_id, EVAL_ID);
    assert_int_equal(spec->min_healthy_ms, 10000);
    assert_int_equal(spec->healthy_deadline_ms, 300000);
}

static void test_what_is_not_said_is_not_told(void **state)
{
    json_t *alloc = value_of(BASE);

    (void)state;
    put(alloc, "DesiredTransition", NULL);
    put(alloc, "PreemptedAllocations", "7");
    assert_int_equal(served_alloc_peek(alloc, &served, &err), 0);
    assert_int_equal(served.desired, SERVED_RUN);
    assert_false(served.client_terminal);
    assert_false(served.migrate);
    assert_null(served.preempted);
    assert_string_equal(served.previous_id, "");
    assert_int_equal(served.health, SERVED_HEALTH_UNKNOWN);
    assert_false(served.canary);
    assert_int_equal(served.stop_after_lost_ns, -1);
    must_read(alloc);
    assert_false(spec->canary);
    assert_int_equal(spec->preempted.count, 0);
    assert_int_equal(spec->modify_index, 0); /* it has one version only */
}

static void test_older_servers_say_otherwise_how_long_it_goes_on_alone(void **state)
{
    json_t *alloc = value_of(BASE);

    (void)state;
    put(alloc, GROUP ".StopAfterClientDisconnect", "7000000000");
    assert_int_equal(served_alloc_peek(alloc, &served, &err), 0);
    assert_int_equal(served.stop_after_lost_ns, 7000000000);
    json_decref(alloc);
}

static void test_the_newest_of_its_history_is_kept(void **state)
{
    json_t *alloc = value_of(BASE), *events = json_array();

    (void)state;
    json_array_append_new(events, value_of("{'RescheduleTime': 0, 'PrevAllocID': 'x'}"));
    for (int i = 0; i < SPEC_RESCHEDULED_MAX + 5; i++)
        json_array_append_new(events,
                              json_pack("{s:i, s:s, s:s, s:i}", "RescheduleTime", i, "PrevAllocID",
                                        OTHER_ID, "PrevNodeID", "n", "Delay", -1));
    json_object_set_new(alloc, "RescheduleTracker",
                        json_pack("{s:o, s:s}", "Events", events, "LastReschedule", "ok"));
    must_read(alloc);
    assert_int_equal(spec->rescheduled_count, SPEC_RESCHEDULED_MAX);
    assert_int_equal(spec->rescheduled[SPEC_RESCHEDULED_MAX - 1].unix_ns, SPEC_RESCHEDULED_MAX + 4);
    assert_int_equal(spec->rescheduled[0].delay_ns, 0);
}

static void test_what_can_be_taken_in_place_is_told(void **state)
{
    static const struct {
        const char *path, *value;
        bool in_place;
    } cases[] = {{TASK ".Driver", "'exec'", false},   {TASK ".Env", "{'A': 'b'}", false},
                 {GROUP ".Count", "4", true},         {TASK ".KillTimeout", "1000000000", true},
                 {"Job.Version", "8", true},          {"AllocModifyIndex", "99", true},
                 {GROUP ".Meta", "{'a': 'b'}", false}};
    size_t length;
    char *before;

    (void)state;
    must_read(value_of(BASE));
    before = strdup(raw);
    length = raw_length;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(read_with(cases[i].path, cases[i].value), 0);
        if (served_alloc_in_place(before, length, raw, raw_length) != cases[i].in_place)
            fail_msg("%s", cases[i].path);
    }
    assert_false(served_alloc_in_place(before, length, "{}", 2));
    assert_false(served_alloc_in_place("", 0, before, length));
    free(before);
}

static int let_go(void **state)
{
    (void)state;
    forget();
    return 0;
}

#define TEST(name) cmocka_unit_test_teardown(name, let_go)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_has_no_id_is_no_alloc),
        TEST(test_damaged_allocs_are_refused_and_still_known),
        TEST(test_what_is_too_large_is_refused),
        TEST(test_what_is_nested_too_deep_is_refused),
        TEST(test_what_is_not_made_yet_is_refused_by_name),
        TEST(test_what_a_rule_forbids_is_refused),
        TEST(test_all_that_is_refused_is_one_sentence),
        TEST(test_what_finds_no_room_in_the_sentence_is_counted),
        TEST(test_zero_values_say_nothing),
        TEST(test_empty_values_of_their_types_say_nothing),
        TEST(test_what_servers_act_on_is_no_reason_to_refuse),
        TEST(test_other_groups_are_not_looked_at),
        TEST(test_a_long_kill_timeout_is_no_reason_to_refuse),
        TEST(test_it_is_the_text_that_this_node_would_write),
        TEST(test_what_older_servers_leave_out_is_filled_in),
        TEST(test_a_volume_of_a_plugin_waits_for_its_name),
        TEST(test_ports_are_where_servers_have_them),
        TEST(test_ports_of_tasks_are_theirs),
        TEST(test_what_was_given_wins_over_what_was_asked_for),
        TEST(test_cores_come_in_order_with_what_they_do),
        TEST(test_fields_of_old_servers_count_where_newer_ones_are_not),
        TEST(test_what_is_not_packed_well_is_not_unpacked),
        TEST(test_each_kind_of_element_is_unpacked),
        TEST(test_a_payload_is_there_as_it_was_dispatched),
        TEST(test_a_token_comes_with_who_sees_it),
        TEST(test_without_a_token_that_it_asks_for_it_does_not_run),
        TEST(test_a_token_goes_to_no_file_that_is_not_its_tasks),
        TEST(test_named_identities_are_read),
        TEST(test_named_identities_that_cannot_be_had_are_refused),
        TEST(test_who_gets_a_token_of_consul_is_read),
        TEST(test_what_else_is_said_is_told),
        TEST(test_what_is_not_said_is_not_told),
        TEST(test_older_servers_say_otherwise_how_long_it_goes_on_alone),
        TEST(test_the_newest_of_its_history_is_kept),
        TEST(test_what_can_be_taken_in_place_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
