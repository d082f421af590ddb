/*
 * The client against a plugin that stands on another implementation of gRPC and protobuf, whole
 * or with one thing wrong.
 *
 * How a connection can fail is in test/io/net/test_grpc.c.
 */
#include "test/csi/plugin.h"

static const struct csi_pair contexts[] = {{"device", "/dev/xvdf"}, {"lun", ""}};
static const struct csi_pair zones[] = {{"zone", "a"}};
static const char *const options[] = {"noatime", "data=\xc3\xbc"};
static const struct csi_capability both[] = {
    {.access = CSI_MULTI_NODE_MULTI_WRITER, .fs_type = "ext4", .flags = options, .flags_count = 2},
    {.access = CSI_SINGLE_NODE_WRITER, .block = true},
};
static const struct csi_map context = {contexts, 2}, zone = {zones, 1};

/* --- every call, with all that it has --- */

static void test_every_call_is_what_the_specification_says(void **state)
{
    struct plugin_process *plugin = *state;
    struct csi_secrets *secrets = csi_secrets_new();
    struct err err = {0};

    assert_int_equal(csi_secrets_add(secrets, "user.key", "hunter2", &err), 0);
    const struct {
        struct csi_request request;
        const char *heard;
    } calls[] = {
        {{.call = CSI_PLUGIN_INFO}, "{\"GetPluginInfo\": {}}"},
        {{.call = CSI_PLUGIN_CAPABILITIES}, "{\"GetPluginCapabilities\": {}}"},
        {{.call = CSI_PROBE}, "{\"Probe\": {}}"},
        {{.call = CSI_CREATE_VOLUME,
          .name = "data",
          .capabilities = both,
          .capabilities_count = 2,
          .bytes_min = 1,
          .bytes_max = 1ll << 40,
          .parameters = context,
          .secrets = secrets,
          .snapshot_id = "snap-0",
          .required = &zone,
          .required_count = 1,
          .preferred = &zone,
          .preferred_count = 1},
         "{\"CreateVolume\": {\"accessibility_requirements\": {\"preferred\": [{\"segments\": "
         "{\"zone\": \"a\"}}], \"requisite\": [{\"segments\": {\"zone\": \"a\"}}]}, "
         "\"capacity_range\": {\"limit_bytes\": \"1099511627776\", \"required_bytes\": \"1\"}, "
         "\"name\": \"data\", \"parameters\": {\"device\": \"/dev/xvdf\", \"lun\": \"\"}, "
         "\"secrets\": {\"user.key\": \"hunter2\"}, \"volume_capabilities\": [{\"access_mode\": "
         "{\"mode\": 5}, \"mount\": {\"fs_type\": \"ext4\", \"mount_flags\": [\"noatime\", "
         "\"data=\xc3\xbc\"]}}, {\"access_mode\": {\"mode\": 1}, \"block\": {}}], "
         "\"volume_content_source\": {\"snapshot\": {\"snapshot_id\": \"snap-0\"}}}}"},
        {{.call = CSI_CREATE_VOLUME,
          .name = "copy",
          .capabilities = &(struct csi_capability){.access = CSI_SINGLE_NODE_READER},
          .capabilities_count = 1,
          .source_volume_id = "vol-0"},
         "{\"CreateVolume\": {\"name\": \"copy\", \"volume_capabilities\": [{\"access_mode\": "
         "{\"mode\": 2}, \"mount\": {}}], \"volume_content_source\": {\"volume\": {\"volume_id\": "
         "\"vol-0\"}}}}"},
        {{.call = CSI_DELETE_VOLUME, .volume_id = "v/1", .secrets = secrets},
         "{\"DeleteVolume\": {\"secrets\": {\"user.key\": \"hunter2\"}, \"volume_id\": \"v/1\"}}"},
        {{.call = CSI_CONTROLLER_PUBLISH,
          .volume_id = "v",
          .node_id = "n",
          .capabilities = &both[1],
          .capabilities_count = 1,
          .readonly = true,
          .secrets = secrets,
          .volume_context = context},
         "{\"ControllerPublishVolume\": {\"node_id\": \"n\", \"readonly\": true, \"secrets\": "
         "{\"user.key\": \"hunter2\"}, \"volume_capability\": {\"access_mode\": {\"mode\": 1}, "
         "\"block\": {}}, \"volume_context\": {\"device\": \"/dev/xvdf\", \"lun\": \"\"}, "
         "\"volume_id\": \"v\"}}"},
        {{.call = CSI_CONTROLLER_UNPUBLISH, .volume_id = "v", .node_id = "n", .secrets = secrets},
         "{\"ControllerUnpublishVolume\": {\"node_id\": \"n\", \"secrets\": {\"user.key\": "
         "\"hunter2\"}, \"volume_id\": \"v\"}}"},
        {{.call = CSI_VALIDATE,
          .volume_id = "v",
          .capabilities = both,
          .capabilities_count = 2,
          .volume_context = zone,
          .parameters = zone,
          .secrets = secrets},
         "{\"ValidateVolumeCapabilities\": {\"parameters\": {\"zone\": \"a\"}, \"secrets\": "
         "{\"user.key\": \"hunter2\"}, \"volume_capabilities\": [{\"access_mode\": {\"mode\": 5}, "
         "\"mount\": {\"fs_type\": \"ext4\", \"mount_flags\": [\"noatime\", \"data=\xc3\xbc\"]}}, "
         "{\"access_mode\": {\"mode\": 1}, \"block\": {}}], \"volume_context\": {\"zone\": "
         "\"a\"}, \"volume_id\": \"v\"}}"},
        {{.call = CSI_LIST_VOLUMES, .entries_max = 7, .token = "t"},
         "{\"ListVolumes\": {\"max_entries\": 7, \"starting_token\": \"t\"}}"},
        {{.call = CSI_GET_CAPACITY,
          .capabilities = &both[1],
          .capabilities_count = 1,
          .parameters = zone},
         "{\"GetCapacity\": {\"parameters\": {\"zone\": \"a\"}, \"volume_capabilities\": "
         "[{\"access_mode\": {\"mode\": 1}, \"block\": {}}]}}"},
        {{.call = CSI_CONTROLLER_CAPABILITIES}, "{\"ControllerGetCapabilities\": {}}"},
        {{.call = CSI_CREATE_SNAPSHOT,
          .source_volume_id = "v",
          .name = "s",
          .secrets = secrets,
          .parameters = zone},
         "{\"CreateSnapshot\": {\"name\": \"s\", \"parameters\": {\"zone\": \"a\"}, \"secrets\": "
         "{\"user.key\": \"hunter2\"}, \"source_volume_id\": \"v\"}}"},
        {{.call = CSI_DELETE_SNAPSHOT, .snapshot_id = "s", .secrets = secrets},
         "{\"DeleteSnapshot\": {\"secrets\": {\"user.key\": \"hunter2\"}, \"snapshot_id\": "
         "\"s\"}}"},
        {{.call = CSI_LIST_SNAPSHOTS,
          .entries_max = 7,
          .token = "t",
          .source_volume_id = "v",
          .snapshot_id = "s",
          .secrets = secrets},
         "{\"ListSnapshots\": {\"max_entries\": 7, \"secrets\": {\"user.key\": \"hunter2\"}, "
         "\"snapshot_id\": \"s\", \"source_volume_id\": \"v\", \"starting_token\": \"t\"}}"},
        {{.call = CSI_CONTROLLER_EXPAND,
          .volume_id = "v",
          .bytes_min = 5,
          .secrets = secrets,
          .capabilities = &both[1],
          .capabilities_count = 1},
         "{\"ControllerExpandVolume\": {\"capacity_range\": {\"required_bytes\": \"5\"}, "
         "\"secrets\": {\"user.key\": \"hunter2\"}, \"volume_capability\": {\"access_mode\": "
         "{\"mode\": 1}, \"block\": {}}, \"volume_id\": \"v\"}}"},
        {{.call = CSI_NODE_STAGE,
          .volume_id = "v",
          .staging_path = "/s",
          .capabilities = &both[1],
          .capabilities_count = 1,
          .publish_context = context,
          .volume_context = zone,
          .secrets = secrets},
         "{\"NodeStageVolume\": {\"publish_context\": {\"device\": \"/dev/xvdf\", \"lun\": \"\"}, "
         "\"secrets\": {\"user.key\": \"hunter2\"}, \"staging_target_path\": \"/s\", "
         "\"volume_capability\": {\"access_mode\": {\"mode\": 1}, \"block\": {}}, "
         "\"volume_context\": {\"zone\": \"a\"}, \"volume_id\": \"v\"}}"},
        {{.call = CSI_NODE_UNSTAGE, .volume_id = "v", .staging_path = "/s"},
         "{\"NodeUnstageVolume\": {\"staging_target_path\": \"/s\", \"volume_id\": \"v\"}}"},
        {{.call = CSI_NODE_PUBLISH,
          .volume_id = "v",
          .staging_path = "/s",
          .target_path = "/t",
          .capabilities = &both[1],
          .capabilities_count = 1,
          .readonly = true,
          .publish_context = context,
          .volume_context = zone,
          .secrets = secrets},
         "{\"NodePublishVolume\": {\"publish_context\": {\"device\": \"/dev/xvdf\", \"lun\": "
         "\"\"}, \"readonly\": true, \"secrets\": {\"user.key\": \"hunter2\"}, "
         "\"staging_target_path\": \"/s\", \"target_path\": \"/t\", \"volume_capability\": "
         "{\"access_mode\": {\"mode\": 1}, \"block\": {}}, \"volume_context\": {\"zone\": \"a\"}, "
         "\"volume_id\": \"v\"}}"},
        {{.call = CSI_NODE_UNPUBLISH, .volume_id = "v", .target_path = "/t"},
         "{\"NodeUnpublishVolume\": {\"target_path\": \"/t\", \"volume_id\": \"v\"}}"},
        {{.call = CSI_NODE_STATS, .volume_id = "v", .target_path = "/t", .staging_path = "/s"},
         "{\"NodeGetVolumeStats\": {\"staging_target_path\": \"/s\", \"volume_id\": \"v\", "
         "\"volume_path\": \"/t\"}}"},
        {{.call = CSI_NODE_EXPAND,
          .volume_id = "v",
          .target_path = "/t",
          .staging_path = "/s",
          .bytes_max = 9,
          .capabilities = &both[1],
          .capabilities_count = 1,
          .secrets = secrets},
         "{\"NodeExpandVolume\": {\"capacity_range\": {\"limit_bytes\": \"9\"}, \"secrets\": "
         "{\"user.key\": \"hunter2\"}, \"staging_target_path\": \"/s\", \"volume_capability\": "
         "{\"access_mode\": {\"mode\": 1}, \"block\": {}}, \"volume_id\": \"v\", "
         "\"volume_path\": \"/t\"}}"},
        {{.call = CSI_NODE_CAPABILITIES}, "{\"NodeGetCapabilities\": {}}"},
        {{.call = CSI_NODE_INFO}, "{\"NodeGetInfo\": {}}"},
    };

    bool tried[CSI_CALL_COUNT] = {false};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        plugin_ask_and_wait(plugin, calls[i].request);
        if (!plugin->answered)
            fail_msg("%s", plugin->last.error.text);
        assert_string_equal(plugin_heard(plugin), calls[i].heard);
        assert_int_equal(plugin->last.outcome.verdict, CSI_DONE);
        assert_false(plugin->last.outcome.may_run);
        tried[calls[i].request.call] = true;
    }
    for (size_t i = 0; i < CSI_CALL_COUNT; i++)
        assert_true(tried[i]);
    csi_secrets_free(secrets);
}

static void expect_volume(const struct csi_volume *volume)
{
    assert_string_equal(volume->id, "vol-1");
    assert_int_equal(volume->bytes, 1 << 30);
    assert_int_equal(volume->context.count, 1);
    assert_string_equal(volume->context.pairs[0].key, "pool");
    assert_string_equal(volume->context.pairs[0].value, "fast");
    assert_string_equal(volume->snapshot_id, "snap-0");
    assert_null(volume->source_volume_id);
    assert_int_equal(volume->topologies_count, 2);
    assert_string_equal(volume->topologies[1].pairs[0].value, "b");
}

static void expect_answer(void *ctx, const struct csi_result *result)
{
    const struct csi_answer *answer = result->answer;
    (void)ctx;

    switch ((int)result->call) { /* those that answer with more than "done" */
    case CSI_PLUGIN_INFO:
        assert_string_equal(answer->name, "test.cairn.example");
        assert_string_equal(answer->version, "1.2.3");
        break;
    case CSI_PLUGIN_CAPABILITIES:
        assert_int_equal(answer->capabilities, CSI_PLUGIN_HAS_CONTROLLER | CSI_PLUGIN_HAS_TOPOLOGY);
        assert_true(answer->expands_online && !answer->expands_offline);
        break;
    case CSI_PROBE:
        assert_true(answer->ready);
        break;
    case CSI_CREATE_VOLUME:
        assert_int_equal(answer->volumes_count, 1);
        expect_volume(answer->volumes);
        break;
    case CSI_CONTROLLER_PUBLISH:
        assert_int_equal(answer->publish_context.count, 1);
        assert_string_equal(answer->publish_context.pairs[0].value, "/dev/xvdf");
        break;
    case CSI_VALIDATE:
        assert_true(answer->confirmed);
        assert_string_equal(answer->text, "fine");
        assert_int_equal(answer->capabilities_confirmed_count, 2);
        assert_string_equal(answer->capabilities_confirmed[0].fs_type, "ext4");
        assert_string_equal(answer->capabilities_confirmed[0].flags[0], "noatime");
        assert_int_equal(answer->capabilities_confirmed[0].access, CSI_MULTI_NODE_MULTI_WRITER);
        assert_true(answer->capabilities_confirmed[1].block);
        break;
    case CSI_LIST_VOLUMES:
        assert_int_equal(answer->volumes_count, 2);
        expect_volume(answer->volumes);
        assert_int_equal(answer->volumes[0].node_ids_count, 2);
        assert_string_equal(answer->volumes[0].node_ids[1], "n2");
        assert_true(answer->volumes[0].condition.abnormal);
        assert_string_equal(answer->volumes[0].condition.text, "worn");
        assert_string_equal(answer->volumes[1].id, "vol-2");
        assert_false(answer->volumes[1].condition.known);
        assert_string_equal(answer->next_token, "more");
        break;
    case CSI_GET_CAPACITY:
        assert_true(answer->bytes == 1ll << 40);
        break;
    case CSI_CONTROLLER_CAPABILITIES:
        assert_int_equal(answer->capabilities, CSI_CONTROLLER_CREATES | CSI_CONTROLLER_PUBLISHES |
                                                   CSI_CONTROLLER_EXPANDS);
        break;
    case CSI_CREATE_SNAPSHOT:
    case CSI_LIST_SNAPSHOTS:
        assert_int_equal(answer->snapshots_count, 1);
        assert_string_equal(answer->snapshots[0].id, "snap-1");
        assert_string_equal(answer->snapshots[0].source_volume_id, "vol-1");
        assert_int_equal(answer->snapshots[0].bytes, 4096);
        assert_int_equal(answer->snapshots[0].made_unix_s, 1767323045);
        assert_true(answer->snapshots[0].ready);
        assert_string_equal(answer->next_token, "");
        break;
    case CSI_CONTROLLER_EXPAND:
        assert_true(answer->bytes == 1ll << 31 && answer->node_expands);
        break;
    case CSI_NODE_STATS:
        assert_int_equal(answer->usage_count, 2);
        assert_int_equal(answer->usage[0].available, 60);
        assert_int_equal(answer->usage[1].used, 4);
        assert_true(!answer->usage[0].inodes && answer->usage[1].inodes);
        assert_true(answer->condition.known && !answer->condition.abnormal);
        break;
    case CSI_NODE_EXPAND:
        assert_true(answer->bytes == 1ll << 31);
        break;
    case CSI_NODE_CAPABILITIES:
        assert_int_equal(answer->capabilities, CSI_NODE_STAGES | CSI_NODE_EXPANDS);
        break;
    case CSI_NODE_INFO:
        assert_string_equal(answer->node_id, "node-7");
        assert_int_equal(answer->volumes_max, 12);
        assert_int_equal(answer->topology.count, 2);
        break;
    default:
        break;
    }
}

static void expect_not_ready(void *ctx, const struct csi_result *result)
{
    (void)ctx;
    assert_false(result->answer->ready);
}

static void test_probe_may_say_that_it_is_not_ready(void **state)
{
    struct plugin_process *plugin = *state;

    plugin->on_answer = expect_not_ready;
    plugin_next(plugin, "raw 0a00"); /* a flag that is there, and false */
    plugin_ask_and_wait(plugin, (struct csi_request){.call = CSI_PROBE});
    assert_true(plugin->answered);
    plugin->on_answer = NULL;
}

/* --- what a plugin may not answer --- */

static void test_answers_that_are_not_valid_name_plugin_and_call(void **state)
{
    static const struct {
        enum csi_call call;
        const char *next, *text;
        int code;
    } answers[] = {
        {CSI_NODE_INFO, "raw ffffffff", "its answer is no message of CSI", ERR_CORRUPT},
        {CSI_NODE_INFO, "raw 0a7f", "its answer is no message of CSI", ERR_CORRUPT},
        {CSI_NODE_INFO, "raw 1000", "its answer is not valid: node_id is missing", ERR_INVALID},
        {CSI_NODE_INFO, "raw 0a03610062",
         "its answer is not valid: node_id is not UTF-8 without NUL", ERR_INVALID},
        {CSI_NODE_INFO, "raw 0a02c328", "its answer is not valid: node_id is not UTF-8 without NUL",
         ERR_INVALID},
        {CSI_NODE_INFO, "raw 0a016110ffffffffffffffffff01",
         "its answer is not valid: max_volumes_per_node is negative", ERR_INVALID},
        {CSI_NODE_STATS, "raw 0a00 65",
         "its answer is not valid: usage has more entries than are "
         "taken",
         ERR_LIMIT},
        {CSI_LIST_VOLUMES, "raw 0a00", "its answer is not valid: volume is missing", ERR_INVALID},
        {CSI_LIST_VOLUMES, "raw 0a00 17000",
         "its answer is not valid: entries has more entries than are taken", ERR_LIMIT},
        {CSI_LIST_VOLUMES, "raw 0a00 2000000", "its answer is larger than is taken", ERR_LIMIT},
        {CSI_LIST_VOLUMES, "raw 0a00 2200000", "the answer is too large", ERR_LIMIT},
    };
    struct plugin_process *plugin = *state;

    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        char text[ERR_TEXT_SIZE];
        struct csi_request request = {.call = answers[i].call};

        if (answers[i].call == CSI_NODE_STATS)
            request =
                (struct csi_request){.call = CSI_NODE_STATS, .volume_id = "v", .target_path = "/t"};
        plugin_next(plugin, answers[i].next);
        plugin_ask_and_wait(plugin, request);
        assert_false(plugin->answered);
        (void)text_format(text, sizeof(text), "plugin hp: %s: %s", csi_call_name(answers[i].call),
                          answers[i].text);
        assert_string_equal(plugin->last.error.text, text);
        assert_int_equal(plugin->last.error.code, answers[i].code);
        assert_true(plugin->last.status == 13 || plugin->last.status == 8);
    }
}

static void test_map_and_text_are_bounded(void **state)
{
    struct plugin_process *plugin = *state;
    char raw[2 * 300 + 32] = "raw 0aad02"; /* a node id of 301 bytes */

    for (int i = 0; i < 301; i++)
        assert_true(text_append(raw, sizeof(raw), "61"));
    plugin_next(plugin, raw);
    plugin_ask_and_wait(plugin, (struct csi_request){.call = CSI_NODE_INFO});
    assert_string_equal(plugin->last.error.text, "plugin hp: NodeGetInfo: its answer is not valid: "
                                                 "node_id is longer than is allowed");
    plugin_next(plugin, "raw 0a0e0a05616161616112056262626262 410"); /* a map of 4,100 */
    plugin_ask_and_wait(plugin, (struct csi_request){.call = CSI_CONTROLLER_PUBLISH,
                                                     .volume_id = "v",
                                                     .node_id = "n",
                                                     .capabilities = &both[1],
                                                     .capabilities_count = 1});
    assert_string_equal(plugin->last.error.text,
                        "plugin hp: ControllerPublishVolume: its answer is not valid: "
                        "publish_context is longer than is allowed");
}

static void expect_hidden_conditions(void *ctx, const struct csi_result *result)
{
    const struct csi_answer *answer = result->answer;
    (void)ctx;

    if (result->call == CSI_LIST_VOLUMES)
        assert_string_equal(answer->volumes[0].condition.text, "***");
    else
        assert_string_equal(answer->condition.text, "of *** only");
}

static void test_conditions_of_volumes_tell_no_secrets(void **state)
{
    struct plugin_process *plugin = *state;
    const struct csi_hidden hidden = {.flags = (const char *const[]){"worn,key=sesame"},
                                      .flags_count = 1};

    plugin->on_answer = expect_hidden_conditions;
    plugin_ask_and_wait(plugin, (struct csi_request){.call = CSI_LIST_VOLUMES, .hidden = hidden});
    assert_true(plugin->answered);
    /* VolumeCondition: abnormal, "of sesame only" */
    plugin_next(plugin, "raw 12120801120e6f6620736573616d65206f6e6c79");
    plugin_ask_and_wait(plugin, (struct csi_request){.call = CSI_NODE_STATS,
                                                     .volume_id = "v",
                                                     .target_path = "/t",
                                                     .hidden = hidden});
    assert_true(plugin->answered);
    plugin->on_answer = NULL;
}

/* --- what a plugin refuses --- */

static void test_refusal_is_told_in_its_own_words_but_for_secrets(void **state)
{
    struct plugin_process *plugin = *state;
    struct csi_secrets *secrets = csi_secrets_new();
    const struct csi_request request = {.call = CSI_NODE_STAGE,
                                        .volume_id = "v",
                                        .staging_path = "/s",
                                        .capabilities = &both[1],
                                        .capabilities_count = 1,
                                        .secrets = secrets};

    assert_int_equal(csi_secrets_add(secrets, "user", "", NULL), 0);
    assert_int_equal(csi_secrets_add(secrets, "password", "hunter2", NULL), 0);
    assert_int_equal(csi_secrets_add(secrets, "zone", "eu1", NULL), 0);
    plugin_next(plugin, "say 16 login with hunter2hunter2 in eu1 failed: 100% k\xc3\xbchl\n");
    plugin_ask_and_wait(plugin, request);
    assert_string_equal(
        plugin->last.error.text,
        "plugin hp: NodeStageVolume: UNAUTHENTICATED: login with ****** in *** failed: "
        "100% k\xc3\xbchl?");
    assert_int_equal(plugin->last.outcome.verdict, CSI_REFUSED);

    /* One that carries none of it, to undo what was done with it. */
    plugin_next(plugin, "say 13 umount -o password=sesame,vers=3 of hunter2 failed in eu1");
    plugin_ask_and_wait(
        plugin, (struct csi_request){.call = CSI_NODE_UNPUBLISH,
                                     .volume_id = "v",
                                     .target_path = "/t",
                                     .hidden = {.secrets = secrets,
                                                .flags = (const char *const[]){"password=sesame"},
                                                .flags_count = 1}});
    assert_string_equal(plugin->last.error.text, "plugin hp: NodeUnpublishVolume: INTERNAL: "
                                                 "umount -o ***,vers=3 of *** failed in ***");
    csi_secrets_free(secrets);

    /* What surrounds a letter or two says which they are. */
    struct csi_secrets *shorts = csi_secrets_new();
    struct csi_request with_short = request;
    assert_int_equal(csi_secrets_add(shorts, "password", "hunter2", NULL), 0);
    assert_int_equal(csi_secrets_add(shorts, "pin", "32", NULL), 0);
    with_short.secrets = shorts;
    plugin_next(plugin, "say 13 mount failed: exit status 32");
    plugin_ask_and_wait(plugin, with_short);
    assert_string_equal(plugin->last.error.text,
                        "plugin hp: NodeStageVolume: INTERNAL: (hidden: a secret of the volume is "
                        "too short to be blanked out)");
    plugin_next(plugin, "say 13 mount failed"); /* which says that it is not in it */
    plugin_ask_and_wait(plugin, with_short);
    assert_non_null(strstr(plugin->last.error.text, ": INTERNAL: (hidden: "));
    csi_secrets_free(shorts);

    plugin_next(plugin, "say 5 no volume v");
    plugin_ask_and_wait(
        plugin,
        (struct csi_request){.call = CSI_NODE_UNSTAGE, .volume_id = "v", .staging_path = "/s"});
    assert_string_equal(plugin->last.error.text,
                        "plugin hp: NodeUnstageVolume: NOT_FOUND: no volume v");
    assert_int_equal(plugin->last.error.code, ERR_GONE);
    assert_int_equal(plugin->last.outcome.verdict, CSI_DONE);
    plugin_next(plugin, "say 10 pending");
    plugin_ask_and_wait(
        plugin,
        (struct csi_request){.call = CSI_NODE_UNSTAGE, .volume_id = "v", .staging_path = "/s"});
    assert_int_equal(plugin->last.outcome.verdict, CSI_REPEAT);
    assert_true(plugin->last.outcome.may_run);
}

/* Drivers of network file systems repeat the whole command that has failed. */
static void test_mount_options_are_hidden_where_they_are_words(void **state)
{
    static const char *const flags[] = {"ro", "username=joe,password=sesame", "pass phrase"};
    const struct csi_capability capability = {
        .access = CSI_MULTI_NODE_MULTI_WRITER, .flags = flags, .flags_count = COUNT_OF(flags)};
    struct plugin_process *plugin = *state;

    plugin_next(plugin, "say 13 mount -t cifs -o ro,username=joe,password=sesame: error 5: "
                        "\"sesame\" is no password of joe, pass phrase");
    plugin_ask_and_wait(plugin, (struct csi_request){.call = CSI_NODE_STAGE,
                                                     .volume_id = "v",
                                                     .staging_path = "/s",
                                                     .capabilities = &capability,
                                                     .capabilities_count = 1});
    assert_string_equal(plugin->last.error.text,
                        "plugin hp: NodeStageVolume: INTERNAL: mount -t cifs -o ***,***,***: "
                        "error 5: \"***\" is no password of ***, ***");
}

static void expect_hidden(void *ctx, const struct csi_result *result)
{
    (void)ctx; /* the answer says it all */
    assert_string_equal(result->answer->text, "***");
}

static void test_words_beside_an_answer_tell_no_secret(void **state)
{
    static const char *const flags[] = {"how=fine"};
    const struct csi_capability capability = {
        .access = CSI_MULTI_NODE_MULTI_WRITER, .flags = flags, .flags_count = COUNT_OF(flags)};
    struct plugin_process *plugin = *state;

    plugin->on_answer = expect_hidden;
    plugin_ask_and_wait(plugin, (struct csi_request){.call = CSI_VALIDATE,
                                                     .volume_id = "v",
                                                     .capabilities = &capability,
                                                     .capabilities_count = 1});
    assert_true(plugin->answered);
    plugin->on_answer = NULL;
}

/* --- what goes wrong on the way --- */

static const struct csi_request unpublish = {
    .call = CSI_NODE_UNPUBLISH, .volume_id = "v", .target_path = "/t"};

static void test_many_calls_are_under_way_at_once(void **state)
{
    struct plugin_process *plugin = *state;

    for (int i = 0; i < 100; i++)
        (void)plugin_ask(plugin, unpublish);
    loop_run(plugin->loop);
    assert_int_equal(plugin->awaited, 0);
    assert_true(plugin->answered);
}

/* So many are under way that others wait; none of them is more than it may. */
static void watch_load(void *ctx, const struct csi_result *result)
{
    const struct plugin_process *plugin = ctx;
    struct csi_load load;

    (void)result;
    csi_client_load(plugin->client, &load);
    assert_in_range(load.calls, 0, CSI_PARALLEL_MAX);
    assert_true(load.waiting == 0 || load.calls == CSI_PARALLEL_MAX);
}

static void test_calls_beyond_the_bound_wait_for_their_turn(void **state)
{
    enum { ALL = CSI_PARALLEL_MAX + 72 };
    struct plugin_process *plugin = *state;
    struct csi_operation *last = NULL;
    struct csi_load load;

    assert_int_equal(kill(plugin->pid, SIGSTOP), 0);
    for (int i = 0; i < ALL; i++)
        last = plugin_ask(plugin, unpublish);
    csi_client_load(plugin->client, &load);
    assert_int_equal(load.calls, CSI_PARALLEL_MAX);
    assert_int_equal(load.waiting, 72);

    csi_cancel(last); /* the plugin has heard nothing of it */
    assert_int_equal(plugin->last.error.code, ERR_CANCELED);
    assert_false(plugin->last.outcome.may_run);
    csi_client_load(plugin->client, &load);
    assert_int_equal(load.waiting, 71);

    (void)plugin_ask(plugin, (struct csi_request){.call = CSI_PROBE});
    csi_client_load(plugin->client, &load);
    assert_int_equal(load.calls, CSI_PARALLEL_MAX); /* it does not count, nor wait */
    assert_int_equal(load.waiting, 71);

    plugin->on_answer = watch_load;
    assert_int_equal(kill(plugin->pid, SIGCONT), 0);
    loop_run(plugin->loop);
    plugin->on_answer = NULL;
    assert_int_equal(plugin->awaited, 0);
    assert_true(plugin->answered);
    csi_client_load(plugin->client, &load);
    assert_int_equal(load.calls + load.waiting + load.gave_up, 0);
}

static void test_those_that_wait_end_with_their_client(void **state)
{
    struct plugin_process *plugin = *state;

    assert_int_equal(kill(plugin->pid, SIGSTOP), 0);
    for (int i = 0; i < 2 * CSI_PARALLEL_MAX; i++)
        (void)plugin_ask(plugin, unpublish); /* tear-down asserts that each has its answer */
}

static void test_plugin_that_goes_in_mid_call_may_have_acted(void **state)
{
    struct plugin_process *plugin = *state;
    static const char *const ways[] = {"leave", "die"};

    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        if (i > 0) {
            plugin_end(plugin);
            assert_int_equal(plugin_run(plugin), 0);
        }
        plugin_next(plugin, ways[i]);
        plugin_ask_and_wait(plugin, unpublish);
        assert_false(plugin->answered);
        assert_true(text_starts_with(plugin->last.error.text, "plugin hp: NodeUnpublishVolume: "));
        assert_int_not_equal(plugin->last.outcome.verdict, CSI_DONE);
        assert_int_not_equal(plugin->last.outcome.verdict, CSI_REFUSED);
        assert_true(plugin->last.outcome.may_run);
        assert_true(plugin->last.error.recoverable);
    }
    plugin_end(plugin);
    plugin_ask_and_wait(plugin, unpublish); /* its socket is still there */
    assert_string_equal(plugin->last.error.text,
                        "plugin hp: NodeUnpublishVolume: nobody listens on its socket");
    assert_false(plugin->last.outcome.may_run);
}

static void test_hanging_call_is_canceled_and_freed(void **state)
{
    struct plugin_process *plugin = *state;

    plugin_next(plugin, "hang");
    struct csi_operation *operation = plugin_ask(plugin, unpublish);
    csi_cancel(operation);
    assert_int_equal(plugin->awaited, 0);
    assert_int_equal(plugin->last.error.code, ERR_CANCELED);
    (void)plugin_ask(plugin, unpublish); /* ends with the client, in tear-down */
    (void)plugin_ask(plugin, unpublish);
}

/* --- what is not sent --- */

static void test_requests_that_are_not_valid_are_not_sent(void **state)
{
    struct plugin_process *plugin = *state;
    char long_id[258], long_value[4095], text[ERR_TEXT_SIZE];
    struct csi_pair pairs[2] = {{"a", "b"}, {"c", long_value}};

    memset(long_id, 'x', sizeof(long_id));
    long_id[sizeof(long_id) - 1] = '\0';
    memset(long_value, 'y', sizeof(long_value));
    long_value[sizeof(long_value) - 1] = '\0'; /* 4,094, and three of the keys and of "b" */
    const struct csi_capability odd[] = {
        {.access = CSI_ACCESS_UNKNOWN},
        {.access = CSI_SINGLE_NODE_WRITER, .block = true, .fs_type = "ext4"}};
    const struct {
        struct csi_request request;
        const char *text;
        int code;
    } requests[] = {
        {{.call = CSI_NODE_UNPUBLISH, .volume_id = "v"}, "it needs this: target path", ERR_INVALID},
        {{.call = CSI_NODE_UNPUBLISH, .volume_id = "", .target_path = "/t"},
         "it needs this: volume id",
         ERR_INVALID},
        {{.call = CSI_CONTROLLER_UNPUBLISH, .volume_id = "v"},
         "it needs this: node id",
         ERR_INVALID},
        {{.call = CSI_PROBE, .volume_id = "v"}, "it does not have this: volume id", ERR_INVALID},
        {{.call = CSI_NODE_STAGE,
          .volume_id = "v",
          .staging_path = "/s",
          .capabilities = both,
          .capabilities_count = 2},
         "it does not have this: more capabilities than one",
         ERR_INVALID},
        {{.call = CSI_NODE_UNPUBLISH, .volume_id = "v", .target_path = "t"},
         "its target path is not absolute",
         ERR_INVALID},
        {{.call = CSI_NODE_UNPUBLISH, .volume_id = "v\xff", .target_path = "/t"},
         "its volume id is not UTF-8",
         ERR_INVALID},
        {{.call = CSI_NODE_UNPUBLISH, .volume_id = long_id, .target_path = "/t"},
         "its volume id has 257 bytes, and 256 are allowed",
         ERR_LIMIT},
        {{.call = CSI_NODE_STAGE,
          .volume_id = "v",
          .staging_path = "/s",
          .capabilities = &odd[0],
          .capabilities_count = 1},
         "it has no access mode",
         ERR_INVALID},
        {{.call = CSI_NODE_STAGE,
          .volume_id = "v",
          .staging_path = "/s",
          .capabilities = &odd[1],
          .capabilities_count = 1},
         "a block device is not mounted with options",
         ERR_INVALID},
        {{.call = CSI_NODE_STAGE,
          .volume_id = "v",
          .staging_path = "/s",
          .capabilities = &both[0],
          .capabilities_count = 1,
          .publish_context = {pairs, 2}},
         "its publish context has more than 4096 bytes",
         ERR_LIMIT},
        {{.call = CSI_CREATE_VOLUME,
          .name = "n",
          .capabilities = both,
          .capabilities_count = 1,
          .snapshot_id = "s",
          .source_volume_id = "v"},
         "a volume is made from a snapshot or from a volume",
         ERR_INVALID},
        {{.call = CSI_CONTROLLER_EXPAND, .volume_id = "v", .bytes_min = 2, .bytes_max = 1},
         "its numbers make no sense",
         ERR_INVALID},
    };

    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        struct err err = {0};

        assert_null(csi_start(plugin->client, &requests[i].request, plugin_answered, plugin, &err));
        (void)text_format(text, sizeof(text), "plugin hp: %s: %s",
                          csi_call_name(requests[i].request.call), requests[i].text);
        assert_string_equal(err.text, text);
        assert_int_equal(err.code, requests[i].code);
    }
    pairs[1].value =
        long_value + 1; /* one byte less is as much as is allowed, and nobody listens */
    struct csi_request fits = requests[10].request;
    plugin_ask_and_wait(plugin, fits);
    assert_string_equal(plugin->last.error.text,
                        "plugin hp: NodeStageVolume: nobody listens on its socket");
}

static void test_secrets_have_bounds(void **state)
{
    struct csi_secrets *secrets = csi_secrets_new();
    char value[4096];
    struct err err = {0};
    (void)state;

    memset(value, 'x', sizeof(value));
    value[4095] = '\0';
    assert_int_equal(csi_secrets_add(secrets, "a b", "x", &err), ERR_INVALID);
    assert_int_equal(csi_secrets_add(secrets, "", "x", &err), ERR_INVALID);
    assert_int_equal(csi_secrets_add(secrets, "k", "\xff", &err), ERR_INVALID);
    assert_null(strstr(err.text, "\xff"));
    assert_int_equal(csi_secrets_add(secrets, "k", value, &err), 0); /* 4,096 with its key */
    assert_int_equal(csi_secrets_add(secrets, "l", "", &err), ERR_LIMIT);
    csi_secrets_free(secrets);
    csi_secrets_free(NULL);
}

static void test_answers_are_read_whole(void **state)
{
    struct plugin_process *plugin = *state;

    plugin->on_answer = expect_answer;
    test_every_call_is_what_the_specification_says(state);
    plugin->on_answer = NULL;
}

int main(void)
{
    const struct CMUnitTest apart[] = {
        cmocka_unit_test_setup_teardown(test_requests_that_are_not_valid_are_not_sent,
                                        plugin_set_up, plugin_tear_down),
        cmocka_unit_test(test_secrets_have_bounds),
    };
    const struct CMUnitTest with[] = {
        cmocka_unit_test(test_every_call_is_what_the_specification_says),
        cmocka_unit_test(test_answers_are_read_whole),
        cmocka_unit_test(test_probe_may_say_that_it_is_not_ready),
        cmocka_unit_test(test_answers_that_are_not_valid_name_plugin_and_call),
        cmocka_unit_test(test_map_and_text_are_bounded),
        cmocka_unit_test(test_conditions_of_volumes_tell_no_secrets),
        cmocka_unit_test(test_refusal_is_told_in_its_own_words_but_for_secrets),
        cmocka_unit_test(test_mount_options_are_hidden_where_they_are_words),
        cmocka_unit_test(test_words_beside_an_answer_tell_no_secret),
        cmocka_unit_test(test_many_calls_are_under_way_at_once),
        cmocka_unit_test(test_calls_beyond_the_bound_wait_for_their_turn),
        cmocka_unit_test_setup_teardown(test_those_that_wait_end_with_their_client,
                                        plugin_set_up_and_run, plugin_tear_down),
        cmocka_unit_test(test_plugin_that_goes_in_mid_call_may_have_acted),
        cmocka_unit_test_setup_teardown(test_hanging_call_is_canceled_and_freed,
                                        plugin_set_up_and_run, plugin_tear_down),
    };
    void *probe;
    int failed = cmocka_run_group_tests(apart, NULL, NULL);

    (void)plugin_set_up(&probe);
    int run = plugin_run(probe);
    assert_int_equal(plugin_tear_down(&probe), 0);
    if (run == SKIPPED)
        return failed == 0 ? SKIPPED : 1;
    failed += cmocka_run_group_tests(with, plugin_set_up_and_run, plugin_tear_down);
    return failed == 0 ? 0 : 1;
}
