/* Volumes of storage plugins: who may have one, who waits for it, and what is known of it. */
#include "test/server/storage/small_storage.h"

/* --- tests --- */

static void test_volume_is_registered_with_its_secrets_apart(void **state)
{
    struct small_life *small = *state;

    struct heard heard = register_volume(small, "data", "single-node-writer");
    assert_int_equal(heard.code, ERR_INVALID);
    assert_string_equal(heard.text, "no CSI plugin named: hp could be found");
    assert_null(storage_find_volume(alone_storage(small->alone), "default", "data"));

    start_plugin(small, PLUGIN_CSI_NODE);
    assert_int_equal(register_volume(small, "data", "single-node-writer").code, 0);
    small_again(small);
    const struct storage_volume *volume =
        storage_find_volume(alone_storage(small->alone), "default", "data");
    assert_non_null(volume);
    assert_int_equal(volume->state, REGISTRATION_READY);
    assert_true(volume->has_mount_flags);
    const struct stored_blob *stored = small_spec(small, "volume/default/data");
    assert_non_null(stored);
    assert_null(strstr(stored->bytes, "hunter2"));
    assert_null(strstr(stored->bytes, "sesame"));
    stored = small_spec(small, "secret/volume/default/data");
    assert_non_null(stored);
    assert_non_null(strstr(stored->bytes, "hunter2"));
    assert_non_null(strstr(stored->bytes, "sesame"));

    assert_int_equal(deregister(small, "data", false).code, 0);
    assert_null(small_spec(small, "volume/default/data"));
    assert_null(small_spec(small, "secret/volume/default/data"));
    assert_int_equal(deregister(small, "data", false).code, ERR_GONE);
}

static void test_what_cannot_be_a_volume_is_refused(void **state)
{
    static const struct {
        const char *name;
        const char *json; /* over a good one */
        const char *told;
    } wrong[] = {
        {"no id", "{\"ID\": \"\"}", "missing volume id"},
        {"slash", "{\"ID\": \"a/b\"}", "the volume's id"},
        {"up", "{\"ID\": \"..\"}", "the volume's id"},
        {"no plugin", "{\"PluginID\": \"\"}", "missing plugin id"},
        {"both", "{\"CloneID\": \"c\", \"SnapshotID\": \"s\"}", "only one of snapshot_id"},
        {"none", "{\"RequestedCapabilities\": []}", "at least one capability block"},
        {"mode",
         "{\"RequestedCapabilities\": [{\"AccessMode\": \"x\", \"AttachmentMode\": "
         "\"file-system\"}]}",
         "access_mode \"x\" is none of single-node-reader-only, "},
        {"no mode", "{\"RequestedCapabilities\": [{\"AccessMode\": \"single-node-writer\"}]}",
         "a capability block has no attachment_mode"},
        {"topology", "{\"RequestedTopologies\": {\"Required\": [{}]}}",
         "required topology is missing segments field"},
        {"bytes", "{\"RequestedCapacityMin\": -1}", "RequestedCapacityMin is no number of bytes"},
        {"secret", "{\"Secrets\": {\"a b\": \"c\"}}", "secrets have names of letters"},
        {"flags", "{\"MountOptions\": {\"MountFlags\": \"x\"}}", "mount_flags is no list"},
    };
    struct small_life *small = *state;

    start_plugin(small, PLUGIN_CSI_NODE);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        json_t *json = volume_json("data", "single-node-writer");
        json_t *over = json_loads(wrong[i].json, 0, NULL);
        struct heard heard = {0};

        assert_non_null(over);
        assert_int_equal(json_object_update_new(json, over), 0);
        storage_register_volume(alone_storage(small->alone), "default", json, hear, &heard);
        json_decref(json);
        small_settle(small);
        if (heard.count != 1 || heard.code != ERR_INVALID ||
            strstr(heard.text, wrong[i].told) == NULL)
            fail_msg("%s: %d \"%s\"", wrong[i].name, heard.code, heard.text);
        assert_null(strstr(heard.text, "hunter2"));
    }
    assert_int_equal(small_specs_of(small, "volume/"), 0);
}

static json_t *zone_a(void *ctx, const char *plugin)
{
    (void)ctx;
    assert_string_equal(plugin, "hp");
    return json_pack("{s:s, s:s}", "zone", "a", "rack", "r3");
}

static json_t *nowhere(void *ctx, const char *plugin)
{
    (void)ctx;
    (void)plugin;
    return NULL;
}

/* The volume, where it is said to be, and whether a group can have it on a node in zone a. */
static void test_group_waits_for_a_volume_that_can_be_reached(void **state)
{
    static const struct {
        const char *topologies;
        control_topology *here;
        bool waits;
    } cases[] = {
        {"[{\"Segments\":{\"zone\":\"b\"}}]", zone_a, true},
        {"[{\"Segments\":{\"zone\":\"b\"}},{\"Segments\":{\"zone\":\"a\"}}]", zone_a, false},
        {"[{\"Segments\":{\"zone\":\"a\",\"row\":\"1\"}}]", zone_a, true},
        {"[{\"Segments\":{\"zone\":\"a\"}}]", nowhere, true},
        {"[]", nowhere, false},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct small_life *small = *state;
        json_t *volume = volume_json("data", "single-node-writer");
        json_t *required = json_loads(cases[i].topologies, 0, NULL);
        struct heard heard = {0};

        small->topology = cases[i].here;
        small_again(small);
        start_plugin(small, PLUGIN_CSI_NODE);
        check(json_object_set_new(volume, "RequestedTopologies",
                                  json_pack("{s:o}", "Required", required)) == 0);
        storage_register_volume(alone_storage(small->alone), "default", volume, hear, &heard);
        json_decref(volume);
        small_settle(small);
        assert_int_equal(heard.code, 0);
        struct alone_evaluation evaluation =
            run(small, "j", 1, "data", "single-node-writer", false, false);
        if (cases[i].waits)
            assert_waits(small, "j", &evaluation, "did not meet topology requirement");
        else
            assert_int_equal(small_count(small, "j", NULL).live, 1);
        (void)small_close(state);
        assert_int_equal(small_open(state), 0);
    }
}

static void test_group_waits_for_volume_and_plugin(void **state)
{
    struct small_life *small = *state;

    struct alone_evaluation evaluation =
        run(small, "j", 1, "data", "single-node-writer", false, false);
    assert_waits(small, "j", &evaluation, "missing CSI volume(s) data");
    start_plugin(small, PLUGIN_CSI_NODE);
    assert_int_equal(register_volume(small, "data", "single-node-writer").code, 0);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
    assert_int_equal(claims_of(small, "data").writers, 1);
    assert_int_equal(claims_of(small, "data").access, CSI_SINGLE_NODE_WRITER);

    stop(small, "j");
    assert_int_equal(claims_of(small, "data").writers, 0);
    end_plugin(small);
    evaluation = run(small, "k", 1, "data", "single-node-writer", false, false);
    assert_waits(small, "k", &evaluation, "CSI plugin hp is missing from client n");
    start_plugin(small, PLUGIN_CSI_NODE);
    small_settle(small);
    assert_int_equal(small_count(small, "k", NULL).live, 1);
}

static void test_volume_has_one_writer_and_goes_to_the_next(void **state)
{
    struct small_life *small = *state;

    start_plugin(small, PLUGIN_CSI_NODE);
    assert_int_equal(register_volume(small, "data", "single-node-writer").code, 0);
    (void)run(small, "j", 1, "data", "single-node-writer", false, false);
    assert_int_equal(claims_of(small, "data").writers, 1);
    struct alone_evaluation evaluation =
        run(small, "k", 1, "data", "single-node-writer", false, false);
    assert_waits(small, "k", &evaluation,
                 "CSI volume data has exhausted its available writer claims");
    small_again(small);
    assert_int_equal(small_count(small, "k", NULL).live, 0);
    struct heard heard = deregister(small, "data", true);
    assert_int_equal(heard.code, ERR_REFUSED);
    assert_string_equal(heard.text, "volume in use: data");

    stop(small, "j");
    small_settle(small);
    assert_int_equal(small_count(small, "k", NULL).live, 1);
    assert_int_equal(claims_of(small, "data").writers, 1);
}

static void test_volume_is_claimed_as_it_was_registered(void **state)
{
    struct small_life *small = *state;

    start_plugin(small, PLUGIN_CSI_NODE);
    assert_int_equal(register_volume(small, "data", "multi-node-reader-only").code, 0);
    struct alone_evaluation evaluation =
        run(small, "j", 1, "data", "multi-node-multi-writer", false, false);
    assert_waits(small, "j", &evaluation,
                 "CSI volume data was not registered with this access mode and attachment mode");
    (void)run(small, "k", 3, "data", "multi-node-reader-only", true, false);
    assert_int_equal(claims_of(small, "data").readers, 3);
}

static void test_each_alloc_has_a_volume_of_its_own(void **state)
{
    struct small_life *small = *state;

    start_plugin(small, PLUGIN_CSI_NODE);
    assert_int_equal(register_volume(small, "own[0]", "single-node-writer").code, 0);
    struct alone_evaluation evaluation =
        run(small, "j", 2, "own", "single-node-writer", false, true);
    assert_int_equal(small_count(small, "j", NULL).indices, 1);
    assert_waits(small, "j", &evaluation, "missing CSI volume(s) own[1]");
    assert_int_equal(register_volume(small, "own[1]", "single-node-writer").code, 0);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).indices, 3);
    assert_int_equal(claims_of(small, "own[0]").writers, 1);
    assert_int_equal(claims_of(small, "own[1]").writers, 1);
}

/* A commit that fails leaves no volume, and who asked is told. */
static void test_what_cannot_be_stored_was_never_registered(void **state)
{
    struct small_life *small = *state;
    struct heard heard = {0};
    json_t *json = volume_json("data", "single-node-writer");

    start_plugin(small, PLUGIN_CSI_NODE);
    small->commit_code = ERR_FULL;
    storage_register_volume(alone_storage(small->alone), "default", json, hear, &heard);
    json_decref(json);
    small_settle(small);
    assert_int_equal(heard.count, 1);
    assert_true(heard.code < 0);
    assert_null(storage_find_volume(alone_storage(small->alone), "default", "data"));
    small->commit_code = 0;
    small->now_ms += 2000; /* the journal is tried again */
    small_settle(small);
    assert_int_equal(register_volume(small, "data", "single-node-writer").code, 0);
}

static void test_damaged_volume_is_put_aside(void **state)
{
    struct small_life *small = *state;

    start_plugin(small, PLUGIN_CSI_NODE);
    assert_int_equal(register_volume(small, "data", "single-node-writer").code, 0);
    struct stored_blob *stored = small_spec(small, "volume/default/data");
    assert_non_null(stored);
    memcpy(strstr(stored->bytes, "\"ready\""), "\"dizzy\"", 7);
    small_again(small);
    assert_null(storage_find_volume(alone_storage(small->alone), "default", "data"));
    assert_non_null(strstr(small->said, "a stored volume cannot be read"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_volume_is_registered_with_its_secrets_apart),
        SMALL_TEST(test_what_cannot_be_a_volume_is_refused),
        SMALL_TEST(test_group_waits_for_volume_and_plugin),
        SMALL_TEST(test_group_waits_for_a_volume_that_can_be_reached),
        SMALL_TEST(test_volume_has_one_writer_and_goes_to_the_next),
        SMALL_TEST(test_volume_is_claimed_as_it_was_registered),
        SMALL_TEST(test_each_alloc_has_a_volume_of_its_own),
        SMALL_TEST(test_what_cannot_be_stored_was_never_registered),
        SMALL_TEST(test_damaged_volume_is_put_aside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
