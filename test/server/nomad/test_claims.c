/*
 * Volumes of an alloc that servers have given: whose they are, how they are claimed and given back,
 * and what becomes of that when servers or the daemon fail in between.
 */
#include "test/server/nomad/small_session.h"
#include "test/server/storage/small_storage.h"

/* --- claims one by one --- */

/* What became of the last one. */
struct said {
    unsigned claims, releases;
    bool had, recoverable;
    char text[ERR_TEXT_SIZE];
    char external[64], plugin[64], fs_type[64], flag[64], secret[64], context[64], publish[64];
};

static void note(struct said *said, const struct failure *failure)
{
    said->had = failure == NULL;
    said->recoverable = failure != NULL && failure->recoverable;
    (void)text_copy(said->text, sizeof(said->text), failure == NULL ? "" : failure->text);
}

static const char *only(const struct spec_pairs *pairs)
{
    assert_in_range(pairs->count, 0, 1);
    return pairs->count == 0 ? "" : pairs->items[0].value;
}

static void claim_said(void *ctx, const struct control_claimed *claimed,
                       const struct failure *failure)
{
    struct said *said = ctx;

    said->claims++;
    note(said, failure);
    if (claimed == NULL)
        return;
    (void)text_copy(said->external, sizeof(said->external), claimed->external);
    (void)text_copy(said->plugin, sizeof(said->plugin), claimed->plugin);
    (void)text_copy(said->fs_type, sizeof(said->fs_type), claimed->fs_type);
    (void)text_copy(said->flag, sizeof(said->flag),
                    claimed->flags_count > 0 ? claimed->flags[0] : "");
    (void)text_copy(said->secret, sizeof(said->secret), only(&claimed->secrets));
    (void)text_copy(said->context, sizeof(said->context), only(&claimed->volume_context));
    (void)text_copy(said->publish, sizeof(said->publish), only(&claimed->publish_context));
}

static void release_said(void *ctx, const struct failure *failure)
{
    struct said *said = ctx;

    said->releases++;
    note(said, failure);
}

static const struct volume_define define = {.access_mode = CSI_SINGLE_NODE_WRITER,
                                            .attachment_mode = CSI_FILE_SYSTEM,
                                            .plugin = "hp",
                                            .namespace = "apps",
                                            .volume = "data[1]"};

static void claim(struct small_session *session, struct said *said, bool gives_back)
{
    const struct control *control = nomad_control(session->nomad);
    const struct control_claim asked = {
        .alloc = one, .name = "v", .define = &define, .external = "ext-1", .node_id = "here"};

    if (gives_back)
        control->unclaim(control->ctx, &asked, release_said, said);
    else
        control->claim(control->ctx, &asked, claim_said, said);
}

/* What a server says of the volume, without PluginID. */
static json_t *volume_reply(const char *over)
{
    json_t *reply =
        json_pack("{s:{s:s, s:s, s:s, s:s, s:n, s:{s:s}}, s:{s:s}}", "Volume", "ID", "data[1]",
                  "Namespace", "apps", "ExternalID", "", "PluginID", "hp", "MountOptions",
                  "Context", "pool", "fast", "PublishContext", "device", "/dev/x");
    json_t *more = json_loads(over, 0, NULL);

    assert_non_null(more);
    assert_int_equal(json_object_update(json_object_get(reply, "Volume"), more), 0);
    json_decref(more);
    return reply;
}

static void test_nothing_is_claimed_of_who_does_not_know_the_node(void **state)
{
    struct said said = {0};

    claim(*state, &said, false);
    assert_int_equal(said.claims, 1);
    assert_true(said.recoverable);
    claim(*state, &said, true);
    assert_int_equal(said.releases, 1);
    assert_true(said.recoverable);
    assert_null(waits(*state, "CSIVolume.Claim"));
    assert_null(waits(*state, "CSIVolume.Unpublish"));
}

static void test_who_is_refused_knows_whether_to_ask_again(void **state)
{
    static const struct {
        int code;
        const char *text;
        bool recoverable;
        const char *next; /* server that is asked then */
    } rows[] = {
        {ERR_REFUSED, "controller publish: volume not found: data[1]", false, "a:4647"},
        {ERR_REFUSED, "volume max claims reached", true, "a:4647"},
        {ERR_REFUSED, "Permission denied", true, "a:4647"},
        {ERR_REFUSED, "controller publish: broken", false, "a:4647"},
        {ERR_REFUSED, "No cluster leader", true, "b:4647"},
        {ERR_IO, "the connection is lost", true, "a:4647"},
        {ERR_TIMEOUT, "no answer", true, "b:4647"},
    };
    struct small_session *session = *state;

    join(session);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct said said = {0};

        claim(session, &said, false);
        assert_int_equal(said.claims, 0);
        fail_call(session, "CSIVolume.Claim", rows[i].code, rows[i].text);
        assert_int_equal(said.claims, 1);
        assert_string_equal(said.text, rows[i].text);
        assert_int_equal(said.recoverable, rows[i].recoverable);
        claim(session, &said, false);
        assert_string_equal(waits(session, "CSIVolume.Claim")->server, rows[i].next);
        json_decref(answer(session, "CSIVolume.Claim", volume_reply("{}")));
        assert_true(said.had);
    }
}

static void test_what_is_damaged_or_another_is_not_mounted(void **state)
{
    static const char *const over[] = {
        "{\"Secrets\": {\"key\": {\"$bytes\": \"/w==\"}}}",
        "{\"Context\": {\"pool\": 7}}",
        "{\"ID\": \"\"}",
        "{\"ID\": null}",
        "{\"PluginID\": \"other\"}",
        "{\"PluginID\": null}",
    };
    struct small_session *session = *state;
    struct said said = {0};

    join(session);
    for (size_t i = 0; i < COUNT_OF(over); i++) {
        claim(session, &said, false);
        json_decref(answer(session, "CSIVolume.Claim", volume_reply(over[i])));
        assert_int_equal(said.claims, i + 1);
        assert_false(said.had);
        assert_false(said.recoverable);
    }
    claim(session, &said, false);
    json_decref(answer(session, "CSIVolume.Claim", json_pack("{s:n}", "Volume")));
    assert_false(said.had);
    assert_int_equal(said.claims, COUNT_OF(over) + 1);
}

static void test_a_claim_says_whose_it_is_and_is_told_all(void **state)
{
    struct small_session *session = *state;
    struct said said = {0};
    json_t *reply = volume_reply("{\"ExternalID\": \"ext-1\", \"Secrets\": {\"key\": \"hunter2\"},"
                                 " \"MountOptions\": {\"FSType\": \"ext4\","
                                 " \"MountFlags\": [\"ro\"]}}");

    join(session);
    claim(session, &said, false);
    json_incref(reply);
    json_t *args = answer(session, "CSIVolume.Claim", reply);
    json_t *wanted =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:i, s:s, s:s}", "VolumeID", "data[1]",
                  "Namespace", "apps", "AllocationID", one, "NodeID", "n", "ExternalNodeID", "here",
                  "Claim", 1, "AccessMode", "single-node-writer", "AttachmentMode", "file-system",
                  "State", 0, "Region", "global", "AuthToken", "s");
    assert_true(json_equal(args, wanted));
    assert_true(said.had);
    assert_string_equal(said.external, "ext-1");
    assert_string_equal(said.plugin, "hp");
    assert_string_equal(said.fs_type, "ext4");
    assert_string_equal(said.flag, "ro");
    assert_string_equal(said.secret, "hunter2");
    assert_string_equal(said.context, "fast");
    assert_string_equal(said.publish, "/dev/x");
    char *left = json_dumps(reply, JSON_ENCODE_ANY); /* nobody finds it in memory afterwards */
    assert_true(left == NULL || strstr(left, "hunter2") == NULL);
    free(left);
    json_decref(reply);
    json_decref(args);
    json_decref(wanted);
    claim(session, &said, false);
    json_decref(answer(session, "CSIVolume.Claim", volume_reply("{}")));
    assert_string_equal(said.external, "data[1]"); /* it has no other name */
}

static void test_what_is_given_back_is_gone_or_asked_for_again(void **state)
{
    struct small_session *session = *state;
    struct said said = {0};

    join(session);
    claim(session, &said, true);
    fail_call(session, "CSIVolume.Unpublish", ERR_REFUSED, "could not detach from node: busy");
    assert_int_equal(said.releases, 1);
    assert_false(said.had);
    assert_true(said.recoverable);
    claim(session, &said, true);
    fail_call(session, "CSIVolume.Unpublish", ERR_REFUSED, "no such volume");
    assert_true(said.had);
    claim(session, &said, true);
    json_t *args = answer(session, "CSIVolume.Unpublish", json_object());
    assert_true(said.had);
    assert_int_equal(said.releases, 3);
    json_t *given = json_object_get(args, "Claim");
    assert_string_equal(json_string_value(json_object_get(args, "Namespace")), "apps");
    assert_string_equal(json_string_value(json_object_get(args, "VolumeID")), "data[1]");
    assert_string_equal(json_string_value(json_object_get(given, "AllocationID")), one);
    assert_int_equal(json_integer_value(json_object_get(given, "State")), 4);
    assert_int_equal(json_integer_value(json_object_get(given, "Mode")), 1);
    json_decref(args);
}

static void test_who_waits_at_the_end_is_told_nothing(void **state)
{
    static struct said said; /* what still waits is forgotten with the session */
    struct small_session *session = *state;

    join(session);
    claim(session, &said, false);
    claim(session, &said, true);
    restart(session);
    assert_int_equal(said.claims + said.releases, 0);
}

/* --- allocs with volumes --- */

static json_t *alloc_with(const char *id, int index, const char *desired, size_t volumes)
{
    static const char *const names[] = {"v", "w"};
    json_t *json = alloc_json(id, index, desired, "/bin/a");
    json_t *group = json_array_get(json_object_get(json_object_get(json, "Job"), "TaskGroups"), 0);
    json_t *list = json_object();

    for (size_t i = 0; i < volumes; i++)
        assert_int_equal(
            json_object_set_new(list, names[i],
                                json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "Name", names[i],
                                          "Type", "csi", "Source", i == 0 ? "data" : "more",
                                          "AccessMode", "single-node-writer", "AttachmentMode",
                                          "file-system", "ReadOnly", 0)),
            0);
    assert_int_equal(json_object_set_new(group, "Volumes", list), 0);
    return json;
}

static json_t *volume_of_hp(const char *id)
{
    return json_pack("{s:i, s:{s:s, s:s, s:s}}", "Index", 5, "Volume", "ID", id, "ExternalID",
                     "ext-1", "PluginID", "hp");
}

/* Joined, with the plugin ready, and given ONE, whose volumes nobody has asked about yet. */
static void give_one(struct small_session *session, size_t volumes)
{
    join(session);
    start_plugin(session->small, PLUGIN_CSI_NODE);
    list(session, 10, one, 6);
    give(session, alloc_with(one, 6, "run", volumes));
}

static void grant_one(struct small_session *session)
{
    json_decref(answer(session, "CSIVolume.Claim", volume_of_hp("data")));
    pass(session, 10);
}

static void run_with_volume(struct small_session *session)
{
    give_one(session, 1);
    json_decref(answer(session, "CSIVolume.Get", volume_of_hp("data")));
    pass(session, 10);
    grant_one(session);
    assert_int_equal(here(session, one)->client_status, CLIENT_RUNNING);
}

static const struct volume *volume_here(struct small_session *session)
{
    return core_volume(life_core(session->small->life), one, "v");
}

static void assert_refused(struct small_session *session, const char *words)
{
    assert_null(here(session, one));
    pass(session, 300);
    json_t *args = answer(session, "Node.UpdateAlloc", json_object());
    json_t *told = json_array_get(json_object_get(args, "Alloc"), 0);
    const char *text = json_string_value(json_object_get(told, "ClientDescription"));
    assert_string_equal(json_string_value(json_object_get(told, "ClientStatus")), "failed");
    if (text == NULL || strstr(text, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, text);
    json_decref(args);
}

static void test_a_volume_that_does_not_exist_is_told_as_the_reason(void **state)
{
    struct small_session *session = *state;

    give_one(session, 1);
    assert_null(here(session, one));
    json_t *args = answer(session, "CSIVolume.Get", json_pack("{s:n}", "Volume"));
    assert_string_equal(json_string_value(json_object_get(args, "ID")), "data");
    assert_string_equal(json_string_value(json_object_get(args, "Namespace")), "default");
    assert_false(json_is_true(json_object_get(args, "AllowStale")));
    json_decref(args);
    assert_refused(session, "volume \"v\" (data): the servers know no such volume");
}

static void test_a_plugin_that_cannot_be_here_is_told_as_the_reason(void **state)
{
    struct small_session *session = *state;
    char name[PLUGIN_NAME_SIZE + 1];

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    give_one(session, 1);
    json_decref(answer(session, "CSIVolume.Get",
                       json_pack("{s:{s:s, s:s}}", "Volume", "ID", "data", "PluginID", name)));
    assert_refused(session, "the servers name no plugin of it that can be here");
}

static void test_servers_that_cannot_say_are_asked_for_a_while(void **state)
{
    struct small_session *session = *state;
    unsigned times = 0;

    give_one(session, 1);
    while (waits(session, "CSIVolume.Get") != NULL) {
        assert_in_range(++times, 1, 100);
        fail_call(session, "CSIVolume.Get", ERR_REFUSED, "No cluster leader");
        assert_null(waits(session, "CSIVolume.Get"));
        for (size_t i = 0; waits(session, "Node.UpdateStatus") != NULL; i++)
            json_decref(answer(session, "Node.UpdateStatus", node_reply(0)));
        pass(session, 5000);
    }
    assert_in_range(times, 50, 70); /* five minutes */
    assert_refused(session, "No cluster leader");
}

static void test_others_go_on_while_one_waits(void **state)
{
    struct small_session *session = *state;

    give_one(session, 1);
    list(session, 11, two, 7); /* and ONE is not wanted any more */
    give(session, alloc_json(two, 7, "run", "/bin/a"));
    assert_int_equal(here(session, two)->client_status, CLIENT_RUNNING);
    json_decref(answer(session, "CSIVolume.Get", volume_of_hp("data")));
    pass(session, 10);
    assert_null(here(session, one));
    assert_null(waits(session, "CSIVolume.Claim"));
}

static void test_a_newer_version_is_asked_about_anew(void **state)
{
    struct small_session *session = *state;

    give_one(session, 1);
    list(session, 11, one, 7);
    give(session, alloc_with(one, 7, "run", 1));
    json_decref(answer(session, "CSIVolume.Get", json_pack("{s:n}", "Volume"))); /* of the first */
    pass(session, 10);
    assert_null(here(session, one));
    json_decref(answer(session, "CSIVolume.Get", volume_of_hp("data")));
    pass(session, 10);
    assert_non_null(here(session, one));
    list(session, 12, one, 8);
    give(session, alloc_with(one, 8, "stop", 1));
    assert_null(waits(session, "CSIVolume.Get"));
}

static void test_each_volume_is_asked_about(void **state)
{
    struct small_session *session = *state;

    give_one(session, 2);
    json_decref(answer(session, "CSIVolume.Get", volume_of_hp("data")));
    pass(session, 10);
    assert_null(here(session, one));
    json_t *args = answer(session, "CSIVolume.Get", volume_of_hp("more"));
    assert_string_equal(json_string_value(json_object_get(args, "ID")), "more");
    json_decref(args);
    pass(session, 10);
    assert_non_null(here(session, one));
    for (size_t i = 0; i < 2; i++)
        grant_one(session);
    assert_int_equal(here(session, one)->client_status, CLIENT_RUNNING);
}

static void test_who_dies_before_it_knows_asks_again(void **state)
{
    struct small_session *session = *state;

    give_one(session, 1);
    restart(session);
    join(session);
    list(session, 10, one, 6);
    give(session, alloc_with(one, 6, "run", 1));
    json_decref(answer(session, "CSIVolume.Get", volume_of_hp("data")));
    pass(session, 10);
    grant_one(session);
    assert_int_equal(here(session, one)->client_status, CLIENT_RUNNING);
}

static void test_a_newer_version_of_one_that_runs_needs_no_question(void **state)
{
    struct small_session *session = *state;

    run_with_volume(session);
    list(session, 11, one, 7);
    give(session, alloc_with(one, 7, "run", 1));
    assert_null(waits(session, "CSIVolume.Get"));
    assert_string_equal(volume_here(session)->define.plugin, "hp");
    assert_int_equal(here(session, one)->client_status, CLIENT_RUNNING);
    const struct stored_blob *stored =
        small_spec(session->small, "alloc/11111111-1111-4111-8111-111111111111");
    assert_non_null(strstr(stored->bytes, "\"VolumePlugins\":{\"v\":\"hp\"}"));
}

static void test_a_claim_that_is_refused_fails_its_alloc(void **state)
{
    struct small_session *session = *state;

    give_one(session, 1);
    json_decref(answer(session, "CSIVolume.Get", volume_of_hp("data")));
    pass(session, 10);
    fail_call(session, "CSIVolume.Claim", ERR_REFUSED, "volume max claims reached");
    pass(session, 20000);
    fail_call(session, "CSIVolume.Claim", ERR_REFUSED, "controller publish: broken");
    pass(session, 10);
    assert_int_equal(here(session, one)->client_status, CLIENT_FAILED);
    json_decref(answer(session, "CSIVolume.Unpublish", json_object())); /* it may be there */
    pass(session, 10);
    assert_null(volume_here(session));
}

static void test_whoever_dies_in_a_claim_asks_for_it_again_and_gives_back_one(void **state)
{
    struct small_session *session = *state;

    give_one(session, 1);
    json_decref(answer(session, "CSIVolume.Get", volume_of_hp("data")));
    pass(session, 10);
    assert_non_null(waits(session, "CSIVolume.Claim"));
    restart(session);
    join(session);
    list(session, 10, one, 6);
    pass(session, 20000); /* it was too early once */
    grant_one(session);
    assert_int_equal(here(session, one)->client_status, CLIENT_RUNNING);
    list(session, 11, one, 7);
    give(session, alloc_with(one, 7, "stop", 1));
    assert_non_null(waits(session, "CSIVolume.Unpublish"));
    restart(session);
    assert_non_null(volume_here(session));
    join(session);
    pass(session, 20000);
    json_decref(answer(session, "CSIVolume.Unpublish", json_object()));
    pass(session, 10);
    assert_null(volume_here(session));
    assert_null(waits(session, "CSIVolume.Unpublish"));
    assert_null(waits(session, "CSIVolume.Claim"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SESSION_TEST(test_nothing_is_claimed_of_who_does_not_know_the_node),
        SESSION_TEST(test_who_is_refused_knows_whether_to_ask_again),
        SESSION_TEST(test_what_is_damaged_or_another_is_not_mounted),
        SESSION_TEST(test_a_claim_says_whose_it_is_and_is_told_all),
        SESSION_TEST(test_what_is_given_back_is_gone_or_asked_for_again),
        SESSION_TEST(test_who_waits_at_the_end_is_told_nothing),
        SESSION_TEST(test_a_volume_that_does_not_exist_is_told_as_the_reason),
        SESSION_TEST(test_a_plugin_that_cannot_be_here_is_told_as_the_reason),
        SESSION_TEST(test_servers_that_cannot_say_are_asked_for_a_while),
        SESSION_TEST(test_others_go_on_while_one_waits),
        SESSION_TEST(test_a_newer_version_is_asked_about_anew),
        SESSION_TEST(test_each_volume_is_asked_about),
        SESSION_TEST(test_who_dies_before_it_knows_asks_again),
        SESSION_TEST(test_a_newer_version_of_one_that_runs_needs_no_question),
        SESSION_TEST(test_a_claim_that_is_refused_fails_its_alloc),
        SESSION_TEST(test_whoever_dies_in_a_claim_asks_for_it_again_and_gives_back_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
