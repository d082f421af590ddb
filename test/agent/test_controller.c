/*
 * What a control plane asks of storage plugins, by the names and fields of Nomad's servers
 * (ClientCSI...): each of these calls, what the plugin hears of it and what comes back; and what
 * comes back when there is no such plugin, it goes, or nobody waits any more.  NodeDetachVolume is
 * no call of CSI but a request to the machine of a claim.
 */
#include "test/core/empty_life.h"

#include "agent/perform/controller.h"
#include "agent/perform/volumes.h"
#include "test/csi/plugin.h"

#include <cmocka.h>

static const char alloc[] = "11111111-2222-3333-4444-555555555555";

struct fixture {
    struct plugin_process process; /* first: the scratch directory, the loop and the plugin */
    struct empty_life *empty;
    struct config config;
    struct parts parts;
    struct plugin record;
    struct control control;
    unsigned answers, recalls;
    struct control_answer last; /* without what is borrowed */
    char said[SAID_SIZE];       /* the answer as JSON; "": there was none */
};

static const struct plugin *record_of(void *ctx, const char *of, const char *task)
{
    struct fixture *fixture = ctx;

    assert_string_equal(of, alloc);
    assert_string_equal(task, "plugin");
    return &fixture->record;
}

static void woken(void *ctx, const struct plugin_identity *identity, const struct err *err)
{
    struct fixture *fixture = ctx;

    assert_null(err);
    if (identity != NULL)
        fixture->record.identity = *identity;
    loop_stop(fixture->process.loop);
}

/* It runs, has said who it is, and is ready. */
static void begin_plugin(struct fixture *fixture)
{
    struct plugin_process *process = &fixture->process;
    struct csi_plugins *plugins = fixture->parts.plugins;
    const struct csi_place place = {.plugin = "hp",
                                    .alloc = alloc,
                                    .task = "plugin",
                                    .type = PLUGIN_CSI_MONOLITH,
                                    .inside = "/csi",
                                    .socket = process->socket};
    struct err err = {0};

    if (plugin_run(process) == SKIPPED)
        skip();
    assert_int_equal(csi_plugins_add(plugins, &place, &err), 0);
    csi_plugins_await(plugins, alloc, "plugin", woken, fixture);
    loop_run(process->loop);
    csi_plugins_identify(plugins, alloc, "plugin", woken, fixture);
    loop_run(process->loop);
    fixture->record.machine = (struct machine){.kind = MACHINE_PLUGIN, .state = P_READY};
    fixture->record.identity.node_capabilities |= CSI_NODE_HAS_STATS;
}

/* Of what is claimed here nothing is known. */
static void recall_nothing(void *ctx, const struct control_claim *claim, control_claimed_cb *cb,
                           void *cb_ctx)
{
    struct fixture *fixture = ctx;
    (void)cb;
    (void)cb_ctx;

    assert_string_equal(claim->define->volume, "data");
    fixture->recalls++;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct csi_plugins_config config = {.record = record_of, .ctx = fixture};
    struct err err = {0};
    void *scratch, *empty;

    assert_non_null(fixture);
    (void)scratch_make(&scratch);
    assert_int_equal(empty_begin(&empty), 0);
    fixture->empty = empty;
    fixture->process.scratch = scratch;
    fixture->process.loop = config.loop = loop_new();
    config.state_dir = fixture->process.scratch->path;
    assert_int_equal(path_join(fixture->process.socket, config.state_dir, "csi.sock"), 0);
    fixture->parts.life = fixture->empty->life;
    fixture->parts.core = life_core(fixture->empty->life);
    fixture->control = (struct control){.ctx = fixture, .recall = recall_nothing};
    fixture->parts.control = &fixture->control;
    fixture->parts.plugins = csi_plugins_new(&config, &err);
    assert_non_null(fixture->parts.plugins);
    assert_true(
        text_copy(fixture->config.state_dir, sizeof(fixture->config.state_dir), config.state_dir));
    fixture->parts.config = &fixture->config;
    fixture->parts.loop = fixture->process.loop;
    fixture->parts.volumes = volumes_new(&fixture->parts, &err);
    assert_non_null(fixture->parts.volumes);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    void *scratch = fixture->process.scratch, *empty = fixture->empty;

    volumes_free(fixture->parts.volumes);
    csi_plugins_free(fixture->parts.plugins);
    assert_null(fixture->parts.asked); /* whoever asked was told, or is known to be gone */
    loop_free(fixture->process.loop);
    plugin_end(&fixture->process);
    free(fixture);
    return empty_end(&empty) + scratch_remove(&scratch);
}

static void hear(void *ctx, const struct control_answer *answer)
{
    struct fixture *fixture = ctx;
    char *text =
        answer->answer == NULL ? NULL : json_dumps(answer->answer, JSON_COMPACT | JSON_SORT_KEYS);

    fixture->answers++;
    fixture->last = *answer;
    assert_true(text_copy(fixture->said, sizeof(fixture->said), text == NULL ? "" : text));
    free(text);
    loop_stop(fixture->process.loop);
}

static void ask(struct fixture *fixture, const char *plugin, enum csi_call call, const char *text)
{
    json_t *request = json_loads(text, 0, NULL);

    assert_non_null(request);
    controller_call(&fixture->parts, plugin, call, request, hear, fixture);
    json_decref(request);
}

static void ask_and_wait(struct fixture *fixture, enum csi_call call, const char *text)
{
    unsigned before = fixture->answers;

    ask(fixture, "hp", call, text);
    if (fixture->answers == before)
        loop_run(fixture->process.loop);
    assert_int_equal(fixture->answers, before + 1);
}

/* --- every call --- */

#define MODES "\"AccessMode\": \"single-node-writer\", \"AttachmentMode\": \"file-system\""
#define OPTIONS "\"MountOptions\": {\"Filesystem\": \"ext4\", \"MountFlags\": [\"noatime\"]}"
#define SECRETS "\"Secrets\": {\"key\": \"hunter2\"}"
#define MODES_HEARD                                                                                \
    "{\"access_mode\": {\"mode\": 1}, \"mount\": {\"fs_type\": \"ext4\", \"mount_flags\": "        \
    "[\"noatime\"]}}"
#define SECRETS_HEARD "\"secrets\": {\"key\": \"hunter2\"}"

/* Each with Nomad's name of it; ClientCSIControllerAttachVolume and so on. */
static const struct {
    const char *name;
    enum csi_call call;
    const char *request, *heard, *answer;
} calls[] = {
    {"ControllerValidateVolume", CSI_VALIDATE,
     "{\"VolumeID\": \"vol-1\", \"VolumeCapabilities\": [{\"AccessMode\": "
     "\"multi-node-multi-writer\", \"AttachmentMode\": \"file-system\"}], " OPTIONS ", " SECRETS
     ", \"Parameters\": {\"kind\": \"ssd\"}, \"Context\": {\"pool\": \"fast\"}}",
     "{\"ValidateVolumeCapabilities\": {\"parameters\": {\"kind\": \"ssd\"}, " SECRETS_HEARD
     ", \"volume_capabilities\": [{\"access_mode\": {\"mode\": 5}, \"mount\": {\"fs_type\": "
     "\"ext4\", \"mount_flags\": [\"noatime\"]}}], \"volume_context\": {\"pool\": \"fast\"}, "
     "\"volume_id\": \"vol-1\"}}",
     "{}"},
    {"ControllerAttachVolume", CSI_CONTROLLER_PUBLISH,
     "{\"VolumeID\": \"vol-1\", \"ClientCSINodeID\": \"node-7\", " MODES ", " OPTIONS
     ", \"ReadOnly\": true, " SECRETS ", \"VolumeContext\": {\"pool\": \"fast\"}}",
     "{\"ControllerPublishVolume\": {\"node_id\": \"node-7\", " SECRETS_HEARD
     ", \"volume_capability\": " MODES_HEARD
     ", \"volume_context\": {\"pool\": \"fast\"}, \"volume_id\": \"vol-1\"}}",
     "{\"PublishContext\":{\"device\":\"/dev/xvdf\"}}"},
    {"ControllerDetachVolume", CSI_CONTROLLER_UNPUBLISH,
     "{\"VolumeID\": \"vol-1\", \"ClientCSINodeID\": \"node-7\", " SECRETS "}",
     "{\"ControllerUnpublishVolume\": {\"node_id\": \"node-7\", " SECRETS_HEARD
     ", \"volume_id\": \"vol-1\"}}",
     "{}"},
    {"ControllerCreateVolume", CSI_CREATE_VOLUME,
     "{\"Name\": \"data\", \"VolumeCapabilities\": [{" MODES "}], " OPTIONS ", " SECRETS
     ", \"Parameters\": {\"kind\": \"ssd\"}, \"CapacityMin\": 1, \"CapacityMax\": 9, "
     "\"SnapshotID\": \"snap-0\", \"CloneID\": \"\", \"RequestedTopologies\": {\"Required\": "
     "[{\"Segments\": {\"zone\": \"a\"}}], \"Preferred\": [{\"Segments\": {\"zone\": \"b\"}}]}}",
     "{\"CreateVolume\": {\"accessibility_requirements\": {\"preferred\": [{\"segments\": "
     "{\"zone\": \"b\"}}], \"requisite\": [{\"segments\": {\"zone\": \"a\"}}]}, "
     "\"capacity_range\": {\"limit_bytes\": \"9\", \"required_bytes\": \"1\"}, \"name\": "
     "\"data\", \"parameters\": {\"kind\": \"ssd\"}, " SECRETS_HEARD
     ", \"volume_capabilities\": [" MODES_HEARD
     "], \"volume_content_source\": {\"snapshot\": {\"snapshot_id\": \"snap-0\"}}}}",
     "{\"CapacityBytes\":1073741824,\"ExternalVolumeID\":\"vol-1\",\"Topologies\":[{\"Segments\":{"
     "\"zone\":\"a\"}},{\"Segments\":{\"zone\":\"b\"}}],\"VolumeContext\":{\"pool\":\"fast\"}}"},
    {"ControllerExpandVolume", CSI_CONTROLLER_EXPAND,
     "{\"ExternalVolumeID\": \"vol-1\", \"CapacityRange\": {\"RequiredBytes\": 5, \"LimitBytes\": "
     "9}, \"VolumeCapabilities\": [{" MODES "}], " OPTIONS ", " SECRETS "}",
     "{\"ControllerExpandVolume\": {\"capacity_range\": {\"limit_bytes\": \"9\", "
     "\"required_bytes\": \"5\"}, " SECRETS_HEARD ", \"volume_capability\": " MODES_HEARD
     ", \"volume_id\": \"vol-1\"}}",
     "{\"CapacityBytes\":2147483648,\"NodeExpansionRequired\":true}"},
    {"ControllerDeleteVolume", CSI_DELETE_VOLUME, "{\"ExternalVolumeID\": \"vol-1\", " SECRETS "}",
     "{\"DeleteVolume\": {" SECRETS_HEARD ", \"volume_id\": \"vol-1\"}}", "{}"},
    {"ControllerListVolumes", CSI_LIST_VOLUMES, "{\"MaxEntries\": 2, \"StartingToken\": \"t\"}",
     "{\"ListVolumes\": {\"max_entries\": 2, \"starting_token\": \"t\"}}",
     "{\"Entries\":[{\"CapacityBytes\":1073741824,\"CloneID\":\"\",\"ExternalID\":\"vol-1\","
     "\"IsAbnormal\":true,\"PublishedExternalNodeIDs\":[\"n1\",\"n2\"],\"SnapshotID\":\"snap-0\","
     "\"Status\":\"worn\",\"VolumeContext\":{\"pool\":\"fast\"}},{\"CapacityBytes\":0,\"CloneID\":"
     "\"\",\"ExternalID\":\"vol-2\",\"IsAbnormal\":false,\"PublishedExternalNodeIDs\":[],"
     "\"SnapshotID\":\"\",\"Status\":\"\",\"VolumeContext\":{}}],\"NextToken\":\"more\"}"},
    {"ControllerCreateSnapshot", CSI_CREATE_SNAPSHOT,
     "{\"ExternalSourceVolumeID\": \"vol-1\", \"Name\": \"before\", \"Parameters\": {\"kind\": "
     "\"ssd\"}, " SECRETS "}",
     "{\"CreateSnapshot\": {\"name\": \"before\", \"parameters\": {\"kind\": "
     "\"ssd\"}, " SECRETS_HEARD ", \"source_volume_id\": \"vol-1\"}}",
     "{\"CreateTime\":1767323045,\"ExternalSourceVolumeID\":\"vol-1\",\"ID\":\"snap-1\","
     "\"IsReady\":true,\"SizeBytes\":4096}"},
    {"ControllerDeleteSnapshot", CSI_DELETE_SNAPSHOT, "{\"ID\": \"snap-1\", " SECRETS "}",
     "{\"DeleteSnapshot\": {" SECRETS_HEARD ", \"snapshot_id\": \"snap-1\"}}", "{}"},
    {"ControllerListSnapshots", CSI_LIST_SNAPSHOTS,
     "{\"MaxEntries\": 2, \"StartingToken\": \"t\", " SECRETS "}",
     "{\"ListSnapshots\": {\"max_entries\": 2, " SECRETS_HEARD ", \"starting_token\": \"t\"}}",
     "{\"Entries\":[{\"CreateTime\":1767323045,\"ExternalSourceVolumeID\":\"vol-1\",\"ID\":"
     "\"snap-1\",\"IsReady\":true,\"SizeBytes\":4096}],\"NextToken\":\"\"}"},
    {"how much is left", CSI_GET_CAPACITY, "{}", "{\"GetCapacity\": {}}",
     "{\"AvailableBytes\":1099511627776}"},
    {"how full it is", CSI_NODE_STATS,
     "{\"VolumeID\": \"data\", \"VolumeNamespace\": \"default\", \"ExternalID\": \"vol-1\", "
     "\"Claim\": {\"AllocationID\": \"11111111-2222-3333-4444-555555555555\"}}",
     "{\"NodeGetVolumeStats\": {\"staging_target_path\": \"/csi/staging/default/data\", "
     "\"volume_id\": \"vol-1\", \"volume_path\": "
     "\"/csi/per-alloc/11111111-2222-3333-4444-555555555555/data/"
     "rw-file-system-single-node-writer\"}}",
     "{\"Bytes\":{\"Available\":60,\"Total\":100,\"Used\":40},\"Inodes\":{\"Available\":6,"
     "\"Total\":10,\"Used\":4},\"IsAbnormal\":false,\"Status\":\"good\"}"},
    {"NodeExpandVolume", CSI_NODE_EXPAND,
     "{\"VolumeID\": \"data\", \"VolumeNamespace\": \"default\", \"ExternalID\": \"vol-1\", "
     "\"Capacity\": {\"RequiredBytes\": 5, \"LimitBytes\": 9}, \"Claim\": {\"AllocationID\": "
     "\"11111111-2222-3333-4444-555555555555\"}, " SECRETS "}",
     "{\"NodeExpandVolume\": {\"capacity_range\": {\"limit_bytes\": \"9\", \"required_bytes\": "
     "\"5\"}, " SECRETS_HEARD ", \"staging_target_path\": \"/csi/staging/default/data\", "
     "\"volume_capability\": {\"access_mode\": {\"mode\": 1}, \"mount\": {}}, \"volume_id\": "
     "\"vol-1\", \"volume_path\": \"/csi/per-alloc/11111111-2222-3333-4444-555555555555/data/"
     "rw-file-system-single-node-writer\"}}",
     "{\"CapacityBytes\":2147483648}"},
};

static void settle(struct fixture *fixture)
{
    while (life_turn(fixture->empty->life))
        ;
}

static struct machine_id claim_id(void)
{
    return machine_id_join(MACHINE_VOLUME, alloc, "v");
}

/* The claim of the alloc on volume "data", which nobody has asked for yet. */
static void define_claim(struct fixture *fixture)
{
    struct machine_id id = claim_id();
    const struct volume_define define = {.volume = "data",
                                         .namespace = "default",
                                         .plugin = "hp",
                                         .access_mode = CSI_SINGLE_NODE_WRITER,
                                         .attachment_mode = CSI_FILE_SYSTEM};

    core_tell(life_core(fixture->empty->life), &id, VE_DEFINE, &define);
    settle(fixture);
}

static void test_each_call_is_made_as_a_server_asks_for_it(void **state)
{
    struct fixture *fixture = *state;

    begin_plugin(fixture);
    define_claim(fixture);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        print_message("%s\n", calls[i].name);
        ask_and_wait(fixture, calls[i].call, calls[i].request);
        if (fixture->last.error.code != 0)
            fail_msg("%s", fixture->last.error.text);
        assert_string_equal(plugin_heard(&fixture->process), calls[i].heard);
        assert_string_equal(fixture->said, calls[i].answer);
        assert_int_equal(fixture->last.outcome.verdict, CSI_DONE);
    }
}

/* --- what goes wrong --- */

static void test_plugin_that_is_not_here_is_asked_again_later(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        bool of_node = calls[i].call == CSI_NODE_EXPAND || calls[i].call == CSI_NODE_STATS;

        ask_and_wait(fixture, calls[i].call, calls[i].request);
        assert_int_equal(fixture->last.error.code, ERR_AGAIN);
        assert_string_equal(fixture->last.error.text,
                            of_node ? "no healthy node service for CSI plugin: hp"
                                    : "no healthy controllers for CSI plugin: hp");
        assert_int_equal(fixture->last.outcome.verdict, CSI_REPEAT);
        assert_false(fixture->last.outcome.may_run);
        assert_false(fixture->last.answered);
    }
}

static void test_one_that_is_unwell_is_not_asked(void **state)
{
    struct fixture *fixture = *state;

    begin_plugin(fixture);
    fixture->record.machine.state = P_UNHEALTHY;
    ask_and_wait(fixture, CSI_DELETE_VOLUME, "{\"ExternalVolumeID\": \"vol-1\"}");
    assert_int_equal(fixture->last.error.code, ERR_AGAIN);
    assert_null(strstr(plugin_heard(&fixture->process), "DeleteVolume"));
}

static void test_what_a_plugin_says_goes_to_who_asked_but_for_secrets(void **state)
{
    struct fixture *fixture = *state;

    begin_plugin(fixture);
    define_claim(fixture);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        bool secret = strstr(calls[i].request, "hunter2") != NULL;

        plugin_next(&fixture->process, "say 3 hunter2 opens nothing");
        ask_and_wait(fixture, calls[i].call, calls[i].request);
        assert_non_null(strstr(fixture->last.error.text, secret
                                                             ? "INVALID_ARGUMENT: *** opens nothing"
                                                             : "hunter2 opens nothing"));
        assert_int_equal(fixture->last.outcome.verdict, CSI_REFUSED);
        assert_true(fixture->last.answered);
        assert_string_equal(fixture->said, "");
    }
}

static void test_garbage_is_no_answer(void **state)
{
    struct fixture *fixture = *state;

    begin_plugin(fixture);
    define_claim(fixture);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        plugin_next(&fixture->process, "raw ffffff");
        ask_and_wait(fixture, calls[i].call, calls[i].request);
        assert_non_null(strstr(fixture->last.error.text, "its answer is no message of CSI"));
        assert_int_equal(fixture->last.outcome.verdict, CSI_DOUBT);
        assert_string_equal(fixture->said, "");
    }
}

static void test_request_that_lacks_something_is_not_sent(void **state)
{
    struct fixture *fixture = *state;

    begin_plugin(fixture);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        if (calls[i].call == CSI_LIST_VOLUMES || calls[i].call == CSI_LIST_SNAPSHOTS ||
            calls[i].call == CSI_GET_CAPACITY)
            continue; /* they need nothing */
        ask_and_wait(fixture, calls[i].call, "{}");
        assert_int_equal(fixture->last.outcome.verdict, CSI_REFUSED);
        assert_false(fixture->last.answered);
        assert_true(fixture->last.error.text[0] != '\0');
    }
    ask_and_wait(fixture, CSI_NODE_EXPAND, calls[COUNT_OF(calls) - 1].request);
    assert_string_equal(fixture->last.error.text,
                        "alloc 11111111-2222-3333-4444-555555555555 has no claim on volume data");
}

static void test_plugin_that_dies_in_mid_call_may_have_done_it(void **state)
{
    struct fixture *fixture = *state;

    begin_plugin(fixture);
    plugin_next(&fixture->process, "die");
    ask_and_wait(fixture, CSI_CREATE_VOLUME, calls[3].request);
    assert_non_null(strstr(fixture->last.error.text, "in the middle of the call"));
    assert_int_equal(fixture->last.outcome.verdict, CSI_REPEAT);
    assert_true(fixture->last.outcome.may_run);
    assert_false(fixture->last.answered);
}

static void test_one_that_hangs_is_answered_for_when_it_goes(void **state)
{
    struct fixture *fixture = *state;

    begin_plugin(fixture);
    plugin_next(&fixture->process, "hang");
    ask(fixture, "hp", CSI_CREATE_VOLUME, calls[3].request);
    assert_int_equal(fixture->answers, 0);
    csi_plugins_drop(fixture->parts.plugins, alloc, "plugin");
    assert_int_equal(fixture->answers, 1);
    assert_int_equal(fixture->last.error.code, ERR_CANCELED);
    assert_int_equal(fixture->last.outcome.verdict, CSI_REPEAT);
    assert_false(fixture->last.answered);
}

static void test_the_same_twice_is_answered_twice(void **state)
{
    struct fixture *fixture = *state;

    begin_plugin(fixture);
    ask(fixture, "hp", CSI_DELETE_VOLUME, calls[5].request);
    ask(fixture, "hp", CSI_DELETE_VOLUME, calls[5].request);
    while (fixture->answers < 2)
        loop_run(fixture->process.loop);
    assert_string_equal(fixture->said, "{}");
    assert_int_equal(fixture->answers, 2);
}

static void test_nobody_is_told_who_has_gone(void **state)
{
    struct fixture *fixture = *state;

    begin_plugin(fixture);
    ask(fixture, "hp", CSI_DELETE_VOLUME, calls[5].request);
    controller_forget(&fixture->parts);
    ask_and_wait(fixture, CSI_LIST_VOLUMES, "{}"); /* behind it */
    assert_int_equal(fixture->answers, 1);
}

/* --- how full a volume is --- */

static const char *stats_request(void)
{
    const char *request = calls[COUNT_OF(calls) - 2].request;

    assert_int_equal(calls[COUNT_OF(calls) - 2].call, CSI_NODE_STATS);
    return request;
}

static void test_plugin_that_cannot_tell_how_full_is_not_asked(void **state)
{
    struct fixture *fixture = *state;

    begin_plugin(fixture);
    define_claim(fixture);
    fixture->record.identity.node_capabilities &= ~(uint32_t)CSI_NODE_HAS_STATS;
    ask_and_wait(fixture, CSI_NODE_STATS, stats_request());
    assert_string_equal(fixture->last.error.text, "plugin hp does not tell how full a volume is");
    assert_null(strstr(plugin_heard(&fixture->process), "NodeGetVolumeStats"));
}

static void test_one_that_hangs_says_nothing_of_how_full(void **state)
{
    struct fixture *fixture = *state;

    begin_plugin(fixture);
    define_claim(fixture);
    plugin_next(&fixture->process, "hang");
    ask_and_wait(fixture, CSI_NODE_STATS, stats_request());
    assert_int_equal(fixture->last.error.code, ERR_TIMEOUT);
    assert_false(fixture->last.answered);
    assert_string_equal(fixture->said, "");
}

static size_t events(const struct fixture *fixture)
{
    return json_array_size(json_object_get(fixture->parts.health.json, "events"));
}

/* What a plugin says again is no news, and neither is what it does not say. */
static void test_condition_that_changes_is_an_event(void **state)
{
    static const struct {
        const char *next, *error; /* of the last event */
        size_t events;
    } rows[] = {
        {"answer", NULL, 0},
        {"raw ffffff", NULL, 0},
        {"raw 1208080112"
         "04776f726e",
         "worn", 1},
        {"raw 1208080112"
         "04776f726e",
         "worn", 1},
        {"raw 0a00", "worn", 1},
        {"raw 12020801", "worn", 1}, /* other words, too soon */
        {"answer", "", 2},
        {"answer", "", 2},
        {"raw 12020801", "abnormal", 3},
    };
    struct fixture *fixture = *state;
    struct parts *parts = &fixture->parts;

    parts->health.json = json_pack("{s:{}, s:[]}", "drivers", "events");
    begin_plugin(fixture);
    define_claim(fixture);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        print_message("%s\n", rows[i].next);
        plugin_next(&fixture->process, rows[i].next);
        ask_and_wait(fixture, CSI_NODE_STATS, stats_request());
        assert_int_equal(events(fixture), rows[i].events);
        if (rows[i].error == NULL)
            continue;
        const json_t *event =
            json_array_get(json_object_get(parts->health.json, "events"), rows[i].events - 1);
        assert_string_equal(json_string_value(json_object_get(event, "volume")), "data");
        assert_string_equal(json_string_value(json_object_get(event, "message")),
                            "Volume condition");
        assert_string_equal(json_string_value(json_object_get(event, "error")), rows[i].error);
    }
    assert_int_equal(fixture->recalls, COUNT_OF(rows)); /* for what is to be hidden */
    health_free(&parts->health);
}

/* --- NodeDetachVolume --- */

struct replies {
    unsigned count;
    int code;
    char text[ERR_TEXT_SIZE];
};

static void replied(void *ctx, int code, const struct err *err)
{
    struct replies *replies = ctx;

    assert_true(code <= 0);
    replies->count++;
    replies->code = code;
    (void)text_copy(replies->text, sizeof(replies->text), err->text); /* same size */
}

static void detach(struct fixture *fixture, struct replies *replies)
{
    struct machine_id id = claim_id();

    life_ask(fixture->empty->life, &id, VE_DETACH, NULL, replied, replies);
    settle(fixture);
}

static void test_detaching_is_a_request_to_the_claim(void **state)
{
    struct fixture *fixture = *state;
    struct machine_id id = claim_id();
    struct replies unknown = {0}, idle = {0}, busy = {0}, nobody = {0}, twice[2] = {{0}, {0}};

    detach(fixture, &unknown);
    assert_int_equal(unknown.code, ERR_GONE);
    define_claim(fixture);
    detach(fixture, &idle);
    assert_int_equal(idle.count, 1);
    assert_int_equal(idle.code, 0);
    core_tell(life_core(fixture->empty->life), &id, VE_WANT, NULL);
    settle(fixture);
    detach(fixture, &busy);
    assert_int_equal(busy.code, ERR_AGAIN);
    assert_string_equal(busy.text, "the volume is busy");
    for (size_t i = 0; i < 2; i++)
        life_ask(fixture->empty->life, &id, VE_DETACH, NULL, replied, &twice[i]);
    settle(fixture);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(twice[i].code, ERR_AGAIN);
    life_ask(fixture->empty->life, &id, VE_DETACH, NULL, replied, &nobody);
    life_forget_callers(fixture->empty->life);
    settle(fixture);
    assert_int_equal(nobody.count, 0);
    assert_int_equal(unknown.count + idle.count + busy.count + twice[0].count + twice[1].count, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_call_is_made_as_a_server_asks_for_it),
        TEST(test_plugin_that_is_not_here_is_asked_again_later),
        TEST(test_one_that_is_unwell_is_not_asked),
        TEST(test_what_a_plugin_says_goes_to_who_asked_but_for_secrets),
        TEST(test_garbage_is_no_answer),
        TEST(test_request_that_lacks_something_is_not_sent),
        TEST(test_plugin_that_dies_in_mid_call_may_have_done_it),
        TEST(test_one_that_hangs_is_answered_for_when_it_goes),
        TEST(test_the_same_twice_is_answered_twice),
        TEST(test_nobody_is_told_who_has_gone),
        TEST(test_plugin_that_cannot_tell_how_full_is_not_asked),
        TEST(test_one_that_hangs_says_nothing_of_how_full),
        TEST(test_condition_that_changes_is_an_event),
        TEST(test_detaching_is_a_request_to_the_claim),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
