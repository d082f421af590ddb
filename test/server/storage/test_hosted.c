/*
 * Host volumes that plugins make: what callers may ask, what becomes of them when a plugin refuses,
 * lies, says nothing, or the daemon dies, and who has them.
 */
#include "server/storage/part.h"
#include "test/server/small_life.h"

/* --- a plugin that does what a test tells --- */

static struct {
    control_answer_cb *cb; /* of the last call, NULL: it was answered */
    void *ctx;
    json_t *request;
    enum csi_call call;
    unsigned calls;
} plugin;

static void call_plugin(void *ctx, const char *name, enum csi_call call, const json_t *request,
                        control_answer_cb *cb, void *cb_ctx)
{
    (void)ctx;
    assert_true(text_equal(name, "own") || json_is_true(json_object_get(request, "Registered")));
    json_decref(plugin.request);
    plugin.cb = cb;
    plugin.ctx = cb_ctx;
    plugin.call = call;
    plugin.request = json_deep_copy(request);
    plugin.calls++;
}

static void answer(struct small_life *small, const struct control_answer *answer)
{
    control_answer_cb *cb = plugin.cb;

    assert_non_null(cb);
    plugin.cb = NULL;
    cb(plugin.ctx, answer);
    small_settle(small);
}

static void say_done(struct small_life *small, const char *path, int bytes)
{
    json_t *json = json_pack("{s:s, s:i}", "HostPath", path, "Capacity", bytes);

    answer(small, &(struct control_answer){
                      .answer = json, .outcome = {.verdict = CSI_DONE}, .answered = true});
    json_decref(json);
}

static void say_refused(struct small_life *small)
{
    struct control_answer refused = {.outcome = {.verdict = CSI_REFUSED}, .answered = true};

    (void)err_set(&refused.error, ERR_REFUSED, "no room left");
    answer(small, &refused);
}

/* It was ended, or had not begun. */
static void say_nothing(struct small_life *small)
{
    struct control_answer unheard = {.outcome = {.verdict = CSI_REPEAT, .may_run = true}};

    (void)err_set(&unheard.error, ERR_TIMEOUT, "it has not ended within 60 s");
    answer(small, &unheard);
}

static void lie(struct small_life *small)
{
    struct control_answer odd = {.outcome = {.verdict = CSI_LIES}, .answered = true};

    (void)err_set(&odd.error, ERR_INVALID, "it does not say what it has made");
    answer(small, &odd);
}

static int open_with_plugin(void **state)
{
    int code = small_open(state);
    struct small_life *small = *state;

    memset(&plugin, 0, sizeof(plugin));
    small->host_plugin = call_plugin;
    small_again(small);
    return code;
}

static int close_with_plugin(void **state)
{
    int code = small_close(state);

    json_decref(plugin.request);
    return code;
}

/* --- asking --- */

struct heard {
    int count, code;
    char text[ERR_TEXT_SIZE], id[UUID_TEXT_SIZE];
};

static void hear(void *ctx, int code, const struct err *err, const json_t *answer)
{
    struct heard *heard = ctx;
    const char *id = json_string_value(json_object_get(answer, "ID"));

    heard->count++;
    heard->code = code;
    if (err != NULL)
        (void)text_copy(heard->text, sizeof(heard->text), err->text);
    if (id != NULL)
        (void)text_copy(heard->id, sizeof(heard->id), id);
}

static json_t *wanted(const char *name)
{
    return json_pack("{s:s, s:s}", "Name", name, "PluginID", "own");
}

static void create(struct small_life *small, json_t *request, struct heard *heard)
{
    *heard = (struct heard){0};
    assert_non_null(request);
    storage_create_volume(alone_hosted(small->alone), "default", request, hear, heard);
    json_decref(request);
    small_settle(small);
}

static void begin_delete(struct small_life *small, const char *id, struct heard *heard)
{
    *heard = (struct heard){0};
    storage_delete_volume(alone_hosted(small->alone), "default", id, NULL, hear, heard);
    small_settle(small);
}

static const struct storage_volume *named(struct small_life *small, const char *name)
{
    return storage_find_hosted(alone_hosted(small->alone), name);
}

static const char *state_of(struct small_life *small, const char *name)
{
    const struct storage_volume *volume = named(small, name);

    return volume == NULL ? "none" : storage_hosted_state(volume);
}

/* A volume NAME that is ready, with its id. */
static void have(struct small_life *small, const char *name, char ret_id[UUID_TEXT_SIZE])
{
    struct heard heard;

    create(small, wanted(name), &heard);
    say_done(small, "/volumes/one", 4096);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.code, 0);
    assert_string_equal(state_of(small, name), "ready");
    (void)text_copy(ret_id, UUID_TEXT_SIZE, heard.id); /* same size */
}

/* As after the pause that a volume waits for its plugin to be asked again. */
static void pause(struct small_life *small)
{
    small->now_ms += 10 * 60 * 1000;
    small_settle(small);
}

/* A service NAME of COUNT allocs that have "data". */
static struct alone_evaluation run(struct small_life *small, const char *name, int count,
                                   const char *access, bool read_only)
{
    struct alone_evaluation evaluation;
    struct err err = {0};
    json_t *job = json_pack(
        "{s:s, s:s, s:[s], s:[{s:s, s:i, s:{s:{s:s, s:s, s:b, s:s}}, s:[{s:s, s:s, s:{s:s}, "
        "s:[{s:s, s:s}]}]}]}",
        "ID", name, "Type", "service", "Datacenters", "dc1", "TaskGroups", "Name", "g", "Count",
        count, "Volumes", "v", "Type", "host", "Source", "data", "ReadOnly", read_only,
        "AccessMode", access, "Tasks", "Name", "t", "Driver", "raw_exec", "Config", "command",
        "/bin/a", "VolumeMounts", "Volume", "v", "Destination", "/srv");

    assert_non_null(job);
    if (alone_register(small->alone, job, &evaluation, NULL, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(job);
    small_settle(small);
    return evaluation;
}

static size_t users_count(struct small_life *small, const char *namespace, const char *name)
{
    json_t *users = alone_hosted_users(small->alone, namespace, name);
    size_t count = json_array_size(users);

    json_decref(users);
    return count;
}

/* --- what may be asked --- */

static void test_what_is_wrong_is_told_by_name(void **state)
{
    static const struct {
        const char *request, *told;
    } wrong[] = {
        {"{}", "missing name"},
        {"{\"Name\": \"\"}", "missing name"},
        {"{\"Name\": 7}", "Name is no text"},
        {"{\"Name\": \"a/b\"}", "the name must not contain slashes"},
        {"{\"Name\": \"a\", \"ID\": \"../../etc\"}", "invalid ID \"../../etc\""},
        {"{\"Name\": \"a\", \"Namespace\": \"a b\"}", "the namespace is none"},
        {"{\"Name\": \"a\", \"PluginID\": \"0123456789012345678901234567890123456789"
         "01234567890123456789012345678901234567890123456789012345678901234567890123456789"
         "01234567890123456789\"}",
         "PluginID is too long"},
        {"{\"Name\": \"a\", \"RequestedCapacityMinBytes\": -1}",
         "RequestedCapacityMinBytes is no number of bytes"},
        {"{\"Name\": \"a\", \"RequestedCapacityMaxBytes\": \"1\"}",
         "RequestedCapacityMaxBytes is no number of bytes"},
        {"{\"Name\": \"a\", \"RequestedCapacityMinBytes\": 5, \"RequestedCapacityMaxBytes\": 4}",
         "capacity_max (4) must be larger than capacity_min (5)"},
        {"{\"Name\": \"a\", \"RequestedCapabilities\": [{}]}", "invalid attachment mode: \"\""},
        {"{\"Name\": \"a\", \"RequestedCapabilities\": [{\"AttachmentMode\": \"file-system\", "
         "\"AccessMode\": \"multi-node-single-writer\"}]}",
         "invalid access mode: \"multi-node-single-writer\""},
        {"{\"Name\": \"a\", \"RequestedCapabilities\": \"all\"}",
         "capabilities are no list of them"},
        {"{\"Name\": \"a\", \"Constraints\": {}}", "there may be 64 constraints"},
        {"{\"Name\": \"a\", \"Constraints\": [{\"Operand\": \"distinct_hosts\"}]}",
         "host volumes of the same name are always on distinct hosts"},
        {"{\"Name\": \"a\", \"Constraints\": [{\"Operand\": \"~\"}]}", "invalid constraint"},
        {"{\"Name\": \"a\", \"Parameters\": {\"a\": 1}}", "parameters are no texts by name"},
        {"{\"Name\": \"a\", \"Parameters\": []}", "parameters are no texts by name"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        json_t *request = json_loads(wrong[i].request, 0, NULL), *volume = NULL;
        struct err err = {0};

        assert_non_null(request);
        if (hosted_read(request, "default", false, &volume, &err) != ERR_INVALID ||
            !text_starts_with(err.text, "volume validation failed: ") ||
            strstr(err.text, wrong[i].told) == NULL)
            fail_msg("%s: %s", wrong[i].request, err.text);
        json_decref(request);
    }
}

static void test_what_is_read_is_bounded(void **state)
{
    enum { MUCH = 80 << 10 };
    char *text = malloc(MUCH);
    json_t *volume = NULL;
    struct err err = {0};

    (void)state;
    assert_non_null(text);
    memset(text, 'x', MUCH - 1);
    text[MUCH - 1] = '\0';
    json_t *request = json_pack("{s:s, s:{s:s}}", "Name", "a", "Parameters", "long", text);
    assert_int_equal(hosted_read(request, "default", false, &volume, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "it is too large"));
    json_decref(request);
    request = json_pack("{s:s, s:s}", "Name", "a", "HostPath", text);
    assert_int_equal(hosted_read(request, "default", true, &volume, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "HostPath is too long"));
    json_decref(request);
    free(text);
}

static void test_what_is_not_said_is_as_in_nomad(void **state)
{
    json_t *request = wanted("a"), *volume = NULL;
    struct err err = {0};

    (void)state;
    assert_int_equal(hosted_read(request, "here", false, &volume, &err), 0);
    const json_t *capability = json_array_get(json_object_get(volume, "RequestedCapabilities"), 0);
    assert_string_equal(registry_text(capability, "AccessMode"), "single-node-writer");
    assert_string_equal(registry_text(capability, "AttachmentMode"), "file-system");
    assert_string_equal(registry_text(volume, "Namespace"), "here");
    json_decref(volume);
    assert_int_equal(json_object_set_new(request, "Namespace", json_string("there")), 0);
    assert_string_equal(storage_hosted_namespace(request, "here"), "there");
    assert_int_equal(hosted_read(request, "here", false, &volume, &err), 0);
    assert_string_equal(registry_text(volume, "Namespace"), "there");
    json_decref(volume);
    json_decref(request);
}

#define STORED_ID "0b3ff1ce-7d4c-4b1e-9f7a-5a3c5e2d1f00"

/* What a journal may hold that this daemon, or another, did not write so. */
static void test_stored_volume_that_cannot_be_is_not_believed(void **state)
{
    static const struct {
        const char *change, *fault;
    } changes[] = {
        {"{}", NULL},
        {"{\"ID\": \"other\"}", "not the volume that its key names"},
        {"{\"cairnState\": \"growing\"}", "not the volume that its key names"},
        {"{\"Name\": \"\"}", "a volume without a name"},
        {"{\"Capacity\": -1}", "a number that is none"},
        {"{\"ModifyIndex\": \"7\"}", "a number that is none"},
        {"{\"HostPath\": \"relative\"}", "it is nowhere"},
        {"{\"HostPath\": \"\", \"cairnState\": \"creating\"}", NULL},
        {"{\"Parameters\": {\"a\": {}}}", "texts by name that are none"},
        {"{\"cairnChange\": {\"Parameters\": 1}}", "texts by name that are none"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        json_t *json =
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:{}}",
                      "ID", STORED_ID, "Namespace", "default", "Name", "data", "PluginID", "own",
                      "HostPath", "/volumes/one", "cairnState", "ready", "Capacity", 1,
                      "RequestedCapacityMinBytes", 0, "RequestedCapacityMaxBytes", 0, "CreateIndex",
                      1, "ModifyIndex", 1, "CreateTime", 1, "ModifyTime", 1, "Parameters");
        json_t *change = json_loads(changes[i].change, 0, NULL);

        assert_int_equal(json_object_update(json, change), 0);
        const char *fault = hosted_fault("host-volume/default/" STORED_ID, json);
        if ((fault == NULL) != (changes[i].fault == NULL) ||
            (fault != NULL && !text_starts_with(fault, changes[i].fault)))
            fail_msg("%s: %s", changes[i].change, fault);
        json_decref(change);
        json_decref(json);
    }
    assert_string_equal(hosted_fault("host-volume/default/" STORED_ID, NULL), "not a volume");
}

/* --- what becomes of them --- */

static void test_volume_is_stored_before_its_plugin_is_asked(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    create(small, wanted("data"), &heard);
    assert_int_equal(plugin.calls, 1);
    assert_int_equal(plugin.call, CSI_CREATE_VOLUME);
    assert_int_equal(heard.count, 0);
    assert_string_equal(state_of(small, "data"), "pending");
    assert_int_equal(small_specs_of(small, "host-volume/default/"), 1);
    small_again(small); /* nobody knows what came of the call: it is made again */
    assert_int_equal(plugin.calls, 2);
    assert_string_equal(state_of(small, "data"), "pending");
    say_done(small, "/volumes/one", 4096);
    assert_string_equal(state_of(small, "data"), "ready");
    assert_int_equal(json_integer_value(json_object_get(named(small, "data")->json, "Capacity")),
                     4096);
}

static void test_what_is_refused_is_forgotten_and_its_name_is_free(void **state)
{
    struct small_life *small = *state;
    struct heard heard, other;

    create(small, wanted("data"), &heard);
    say_refused(small);
    assert_int_equal(heard.code, ERR_REFUSED);
    assert_string_equal(heard.text, "no room left");
    assert_string_equal(state_of(small, "data"), "none");
    assert_int_equal(small_specs_of(small, "host-volume/"), 0);
    create(small, wanted("data"), &other);
    say_done(small, "/volumes/one", 0);
    assert_int_equal(other.code, 0);
}

static void test_two_of_one_name_are_refused_even_at_once(void **state)
{
    struct small_life *small = *state;
    struct heard first, second, third;

    create(small, wanted("data"), &first);
    create(small, wanted("data"), &second);
    assert_int_equal(second.count, 0); /* it waits for its turn */
    say_done(small, "/volumes/one", 0);
    assert_int_equal(first.code, 0);
    assert_int_equal(second.code, ERR_INVALID);
    assert_string_equal(
        second.text,
        "volume name already exists on this node; it is changed by a file that has its "
        "id");
    create(small, json_pack("{s:s, s:s, s:s}", "Name", "data", "PluginID", "own", "Namespace", "b"),
           &third);
    assert_int_equal(third.code, ERR_INVALID); /* tasks find it by its name */
    assert_int_equal(plugin.calls, 1);
}

static void test_what_was_made_and_not_told_is_deleted(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    create(small, wanted("data"), &heard);
    lie(small);
    assert_int_equal(plugin.call, CSI_DELETE_VOLUME);
    say_refused(small); /* and it is where nobody knows: it is asked again */
    assert_int_equal(heard.code, ERR_REFUSED);
    assert_string_equal(state_of(small, "data"), "pending");
    pause(small);
    assert_int_equal(plugin.call, CSI_DELETE_VOLUME);
    say_done(small, "", 0);
    assert_string_equal(state_of(small, "data"), "none");
}

static void test_plugin_is_asked_again_after_each_start(void **state)
{
    struct small_life *small = *state;
    char id[UUID_TEXT_SIZE];

    have(small, "data", id);
    small_again(small);
    assert_int_equal(plugin.calls, 2);
    assert_string_equal(state_of(small, "data"), "pending");
    assert_true(storage_hosted_settles(named(small, "data")));
    unsigned before = small->hosted_changes;
    say_nothing(small);                                         /* it hangs, until it is ended */
    assert_false(storage_hosted_settles(named(small, "data"))); /* nobody waits any longer */
    assert_true(small->hosted_changes > before);
    assert_string_equal(state_of(small, "data"), "unavailable");
    pause(small);
    assert_int_equal(plugin.calls, 3);
    say_refused(small);
    assert_string_equal(state_of(small, "data"), "unavailable");
    assert_string_equal(named(small, "data")->last_fail, "no room left");
    pause(small);
    say_done(small, "/volumes/one", 4096);
    assert_string_equal(state_of(small, "data"), "ready");
    assert_string_equal(named(small, "data")->last_fail, "");
}

/* Until its plugin says that it can be as it is wanted it is what it was, over a crash, too. */
static void test_change_is_all_or_nothing(void **state)
{
    struct small_life *small = *state;
    struct heard heard;
    char id[UUID_TEXT_SIZE];

    have(small, "data", id);
    create(small,
           json_pack("{s:s, s:s, s:s, s:i}", "Name", "data", "PluginID", "own", "ID", id,
                     "RequestedCapacityMaxBytes", 8192),
           &heard);
    assert_int_equal(
        json_integer_value(json_object_get(plugin.request, "RequestedCapacityMaxBytes")), 8192);
    assert_int_equal(json_integer_value(
                         json_object_get(named(small, "data")->json, "RequestedCapacityMaxBytes")),
                     0);
    small_again(small);
    assert_int_equal(
        json_integer_value(json_object_get(plugin.request, "RequestedCapacityMaxBytes")), 8192);
    say_refused(small);
    assert_int_equal(json_integer_value(
                         json_object_get(named(small, "data")->json, "RequestedCapacityMaxBytes")),
                     0);
    pause(small);
    assert_int_equal(
        json_integer_value(json_object_get(plugin.request, "RequestedCapacityMaxBytes")), 0);
    say_done(small, "/volumes/one", 4096);
    assert_string_equal(state_of(small, "data"), "ready");
}

static void test_deletion_goes_on_after_a_crash(void **state)
{
    struct small_life *small = *state;
    struct heard heard;
    char id[UUID_TEXT_SIZE];

    have(small, "data", id);
    begin_delete(small, id, &heard);
    assert_int_equal(plugin.call, CSI_DELETE_VOLUME);
    small_again(small);
    assert_int_equal(plugin.call, CSI_DELETE_VOLUME);
    assert_int_equal(plugin.calls, 3);
    say_done(small, "", 0);
    assert_string_equal(state_of(small, "data"), "none");
    assert_int_equal(small_specs_of(small, "host-volume/"), 0);
    begin_delete(small, id, &heard);
    assert_int_equal(heard.code, ERR_GONE);
}

static void test_deletion_that_is_refused_leaves_what_was(void **state)
{
    struct small_life *small = *state;
    struct heard heard;
    char id[UUID_TEXT_SIZE];

    have(small, "data", id);
    begin_delete(small, id, &heard);
    say_refused(small);
    assert_int_equal(heard.code, ERR_REFUSED);
    assert_string_equal(state_of(small, "data"), "ready");
}

static void test_commit_that_fails_asks_no_plugin(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    small->commit_code = ERR_IO;
    create(small, wanted("data"), &heard);
    assert_int_equal(heard.count, 1);
    assert_int_not_equal(heard.code, 0);
    assert_int_equal(plugin.calls, 0);
    small->commit_code = 0;
}

static void test_answer_that_cannot_be_stored_is_asked_for_again(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    create(small, wanted("data"), &heard);
    small->commit_code = ERR_IO;
    say_done(small, "/volumes/one", 4096);
    assert_int_not_equal(heard.code, 0);
    assert_string_equal(state_of(small, "data"), "pending");
    small->commit_code = 0;
    pause(small);
    assert_int_equal(plugin.calls, 2);
    assert_int_equal(plugin.call, CSI_CREATE_VOLUME);
    say_done(small, "/volumes/one", 4096);
    assert_string_equal(state_of(small, "data"), "ready");
}

/* A volume of a storage plugin may be called like the id of one of these. */
static void test_deletion_takes_no_secret_of_another_kind(void **state)
{
    struct small_life *small = *state;
    struct heard heard;
    char id[UUID_TEXT_SIZE], key[JOURNAL_KEY_SIZE];

    have(small, "data", id);
    assert_true(text_format(key, sizeof(key), "secret/volume/default/%s", id));
    small_keep_spec(small, key, "{}", 2);
    begin_delete(small, id, &heard);
    say_done(small, "", 0);
    assert_int_equal(heard.code, 0);
    assert_int_equal(small_specs_of(small, "secret/volume/"), 1);
}

/* --- who has them --- */

static void test_volume_in_use_is_neither_deleted_nor_changed(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct heard heard;
    char id[UUID_TEXT_SIZE];
    struct err err = {0};

    have(small, "data", id);
    (void)run(small, "user", 2, "", false);
    assert_int_equal(users_count(small, "default", "data"), 2);
    assert_int_equal(users_count(small, "other", "data"), 0);
    for (int again = 0; again < 2; again++) {
        begin_delete(small, id, &heard);
        assert_int_equal(heard.code, ERR_REFUSED);
        assert_non_null(strstr(heard.text, "in use by allocations: "));
        create(small, json_pack("{s:s, s:s, s:s}", "Name", "data", "PluginID", "own", "ID", id),
               &heard);
        assert_int_equal(heard.code, ERR_INVALID);
        assert_non_null(strstr(heard.text, "cannot update a volume in use"));
        small_again(small); /* and they are known after that, too */
        say_done(small, "/volumes/one", 4096);
        assert_int_equal(users_count(small, "default", "data"), 2);
    }
    assert_int_equal(alone_deregister(small->alone, "default", "user", 0, &evaluation, &err), 0);
    small_settle(small);
    assert_int_equal(users_count(small, "default", "data"), 0);
    begin_delete(small, id, &heard);
    say_done(small, "", 0);
    assert_int_equal(heard.code, 0);
}

/* Who is told to end has it until then. */
static void test_alloc_that_is_going_has_it_until_it_has_ended(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct heard heard;
    char id[UUID_TEXT_SIZE];
    struct err err = {0};

    have(small, "data", id);
    (void)run(small, "user", 1, "", false);
    small->holds_back = true;
    assert_int_equal(alone_deregister(small->alone, "default", "user", 0, &evaluation, &err), 0);
    small_settle(small);
    begin_delete(small, id, &heard);
    assert_int_equal(heard.code, ERR_REFUSED);
    small_again(small);
    say_done(small, "/volumes/one", 4096);
    begin_delete(small, id, &heard);
    assert_int_equal(heard.code, ERR_REFUSED);
}

/* The alloc that a commit would have placed has nothing when that fails. */
static void test_alloc_that_is_taken_back_has_none(void **state)
{
    struct small_life *small = *state;
    char id[UUID_TEXT_SIZE];

    have(small, "data", id);
    small->commit_code = ERR_IO;
    (void)run(small, "user", 1, "", false);
    assert_int_equal(small_count(small, "user", NULL).live, 0);
    assert_int_equal(users_count(small, "default", "data"), 0);
    small->commit_code = 0;
}

static void test_single_writer_is_one(void **state)
{
    struct small_life *small = *state;
    struct heard heard;
    json_t *request = json_pack(
        "{s:s, s:s, s:[{s:s, s:s}, {s:s, s:s}]}", "Name", "data", "PluginID", "own",
        "RequestedCapabilities", "AccessMode", "single-node-single-writer", "AttachmentMode",
        "file-system", "AccessMode", "single-node-reader-only", "AttachmentMode", "file-system");

    create(small, request, &heard);
    say_done(small, "/volumes/one", 4096);
    (void)run(small, "two", 2, "single-node-single-writer", false); /* of one evaluation */
    assert_int_equal(small_count(small, "two", NULL).live, 1);
    (void)run(small, "other", 1, "single-node-single-writer", false);
    assert_int_equal(small_count(small, "other", NULL).live, 0);
    (void)run(small, "readers", 2, "single-node-reader-only", true);
    assert_int_equal(small_count(small, "readers", NULL).live, 2);
    small_again(small);
    say_done(small, "/volumes/one", 4096);
    assert_int_equal(small_count(small, "other", NULL).live, 0);
    struct alone_evaluation evaluation;
    struct err err = {0};
    assert_int_equal(alone_deregister(small->alone, "default", "two", 0, &evaluation, &err), 0);
    small_settle(small);
    assert_int_equal(small_count(small, "other", NULL).live, 1); /* it has waited for that */
}

static void test_job_waits_until_its_volume_is_here(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation = run(small, "user", 1, "", false);
    char id[UUID_TEXT_SIZE];

    assert_int_equal(small_count(small, "user", NULL).live, 0);
    const struct alone_evaluation *blocked = alone_evaluation(small->alone, evaluation.blocked_id);
    assert_non_null(blocked);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(blocked->failed, 0), "What")),
        "missing compatible host volumes: there is no \"data\"");
    have(small, "data", id);
    assert_int_equal(small_count(small, "user", NULL).live, 1);
}

/* No specification is read to know it, and at the start only those of jobs that have volumes. */
static void test_who_has_one_is_known_without_reading(void **state)
{
    struct small_life *small = *state;
    char id[UUID_TEXT_SIZE];

    have(small, "data", id);
    (void)run(small, "user", 3, "", false);
    (void)small_run(small, "idle", "/bin/a", 40, 40);
    small->specs_read = 0;
    assert_int_equal(users_count(small, "default", "data"), 3);
    assert_int_equal(small->specs_read, 0);
    small_kill(small);
    small_begin(small);
    assert_int_equal(small->specs_read, 3);
    small_settle(small);
    assert_int_equal(users_count(small, "default", "data"), 3);
}

#define TEST(function)                                                                             \
    cmocka_unit_test_setup_teardown(function, open_with_plugin, close_with_plugin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_wrong_is_told_by_name),
        cmocka_unit_test(test_what_is_read_is_bounded),
        cmocka_unit_test(test_what_is_not_said_is_as_in_nomad),
        cmocka_unit_test(test_stored_volume_that_cannot_be_is_not_believed),
        TEST(test_volume_is_stored_before_its_plugin_is_asked),
        TEST(test_what_is_refused_is_forgotten_and_its_name_is_free),
        TEST(test_two_of_one_name_are_refused_even_at_once),
        TEST(test_what_was_made_and_not_told_is_deleted),
        TEST(test_plugin_is_asked_again_after_each_start),
        TEST(test_change_is_all_or_nothing),
        TEST(test_deletion_goes_on_after_a_crash),
        TEST(test_deletion_that_is_refused_leaves_what_was),
        TEST(test_commit_that_fails_asks_no_plugin),
        TEST(test_answer_that_cannot_be_stored_is_asked_for_again),
        TEST(test_deletion_takes_no_secret_of_another_kind),
        TEST(test_volume_in_use_is_neither_deleted_nor_changed),
        TEST(test_alloc_that_is_going_has_it_until_it_has_ended),
        TEST(test_alloc_that_is_taken_back_has_none),
        TEST(test_single_writer_is_one),
        TEST(test_job_waits_until_its_volume_is_here),
        TEST(test_who_has_one_is_known_without_reading),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
