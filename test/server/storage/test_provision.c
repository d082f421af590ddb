/*
 * What controllers of storage plugins are asked for volumes, and what becomes of them when the
 * daemon dies before it hears the answer.
 */
#include "test/server/storage/small_storage.h"

/* --- a controller that does what a test tells --- */

struct asked {
    enum csi_call call;
    json_t *request;
    control_answer_cb *cb; /* NULL: it was answered */
    void *ctx;
};

static struct {
    struct asked items[64];
    size_t count;
    bool holds;      /* answers nothing */
    unsigned status; /* of gRPC, of every answer; 0: all goes well */
    bool unanswered; /* it is what became of calls that nobody has answered */
    bool unheard;    /* nor even heard */
    bool node_grows; /* has to grow as well */
    size_t stored;   /* volumes in the journal when the last call came */
    char state[16];  /* of the volume "data" there */
} controller;

static void answer_one(struct asked *asked)
{
    control_answer_cb *cb = asked->cb;
    struct control_answer answer = {.outcome = policy_csi_outcome(asked->call, controller.status,
                                                                  !controller.unheard,
                                                                  !controller.unanswered),
                                    .answered = !controller.unanswered};
    json_t *json = NULL;

    asked->cb = NULL;
    if (controller.status != 0)
        (void)err_set(&answer.error, ERR_IO, "plugin hp: it does not work: status %u",
                      controller.status);
    else if (asked->call == CSI_CREATE_VOLUME)
        json = json_pack("{s:s, s:i, s:{s:s}, s:[]}", "ExternalVolumeID", "made-1", "CapacityBytes",
                         4096, "VolumeContext", "zone", "a", "Topologies");
    else if (asked->call == CSI_CONTROLLER_PUBLISH)
        json = json_pack("{s:{s:s}}", "PublishContext", "device", "/dev/xvdf");
    else if (asked->call == CSI_CONTROLLER_EXPAND)
        json = json_pack("{s:i, s:b}", "CapacityBytes", 8192, "NodeExpansionRequired",
                         controller.node_grows);
    else if (asked->call == CSI_CREATE_SNAPSHOT)
        json = json_pack("{s:s, s:s, s:i, s:i, s:b}", "ID", "snap-1", "ExternalSourceVolumeID",
                         "made-1", "SizeBytes", 1, "CreateTime", 1, "IsReady", 1);
    else
        json = json_object();
    answer.answer = json;
    cb(asked->ctx, &answer);
    json_decref(json);
}

static void call_controller(void *ctx, const char *plugin, enum csi_call call,
                            const json_t *request, control_answer_cb *cb, void *cb_ctx)
{
    struct small_life *small = ctx;
    struct asked *asked = &controller.items[controller.count++];
    const struct stored_blob *stored = small_spec(small, "volume/default/data");
    json_t *json = stored == NULL ? NULL : json_loads(stored->bytes, 0, NULL);

    assert_string_equal(plugin, "hp");
    assert_in_range(controller.count, 1, COUNT_OF(controller.items));
    *asked = (struct asked){call, json_deep_copy(request), cb, cb_ctx};
    controller.stored = small_specs_of(small, "volume/");
    (void)text_copy(controller.state, sizeof(controller.state),
                    json_string_value(json_object_get(json, "cairnState")));
    json_decref(json);
    if (!controller.holds)
        answer_one(asked);
}

static int open_with_controller(void **state)
{
    memset(&controller, 0, sizeof(controller));
    (void)small_open(state);
    struct small_life *small = *state;
    small->controller = call_controller;
    small->identity.plugin_capabilities = CSI_PLUGIN_HAS_CONTROLLER;
    small->identity.controller_capabilities = CSI_CONTROLLER_CREATES | CSI_CONTROLLER_PUBLISHES |
                                              CSI_CONTROLLER_EXPANDS | CSI_CONTROLLER_SNAPSHOTS;
    small_again(small);
    start_plugin(small, PLUGIN_CSI_MONOLITH);
    return 0;
}

static int close_with_controller(void **state)
{
    for (size_t i = 0; i < controller.count; i++)
        json_decref(controller.items[i].request);
    return small_close(state);
}

#define CONTROLLER_TEST(function)                                                                  \
    cmocka_unit_test_setup_teardown(function, open_with_controller, close_with_controller)

static size_t calls_of(enum csi_call call)
{
    size_t count = 0;

    for (size_t i = 0; i < controller.count; i++)
        count += controller.items[i].call == call;
    return count;
}

static struct asked *last_call(void)
{
    assert_true(controller.count > 0);
    return &controller.items[controller.count - 1];
}

static const char *said(const struct asked *asked, const char *name)
{
    const char *text = json_string_value(json_object_get(asked->request, name));

    return text == NULL ? "" : text;
}

/* --- asking --- */

static json_t *to_create(void)
{
    json_t *json = volume_json("data", "single-node-writer");

    check(json_object_set_new(json, "ExternalID", json_string("")) == 0);
    check(json_object_set_new(json, "RequestedCapacityMin", json_integer(4096)) == 0);
    return json;
}

static void create(struct small_life *small, struct heard *heard)
{
    json_t *json = to_create();

    *heard = (struct heard){0};
    storage_create_volume(alone_storage(small->alone), "default", json, hear, heard);
    json_decref(json);
    small_settle(small);
}

static void delete (struct small_life *small, struct heard *heard)
{
    *heard = (struct heard){0};
    storage_delete_volume(alone_storage(small->alone), "default", "data", NULL, hear, heard);
    small_settle(small);
}

static const struct storage_volume *data(struct small_life *small)
{
    return storage_find_volume(alone_storage(small->alone), "default", "data");
}

/* What is shown of the volume is JSON, and what is stored. */
static void assert_journal_holds(struct small_life *small, const char *json)
{
    json_t *wanted = json_loads(json, 0, NULL);
    json_t *stored = json_loads(small_spec(small, "volume/default/data")->bytes, 0, NULL);

    assert_true(json_equal(data(small)->json, wanted));
    assert_true(json_equal(stored, wanted));
    json_decref(stored);
    json_decref(wanted);
}

/* The pause before a call is made again is over. */
static void pass_time(struct small_life *small)
{
    small->now_ms += 600000;
    small_settle(small);
}

/* --- making --- */

static void test_volume_is_stored_before_and_after_it_is_made(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    controller.holds = true;
    create(small, &heard);
    assert_int_equal(heard.count, 0);
    assert_int_equal(controller.count, 1);
    assert_string_equal(controller.state, "creating");
    assert_string_equal(said(last_call(), "Name"), "data");
    assert_non_null(json_object_get(json_object_get(last_call()->request, "Secrets"), "key"));
    assert_int_equal(data(small)->state, REGISTRATION_CREATING);

    answer_one(last_call());
    small_settle(small);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.code, 0);
    assert_int_equal(data(small)->state, REGISTRATION_READY);
    assert_string_equal(json_string_value(json_object_get(data(small)->json, "ExternalID")),
                        "made-1");
    const struct stored_blob *stored = small_spec(small, "volume/default/data");
    assert_non_null(strstr(stored->bytes, "\"ready\""));
}

/* The same name again: the plugin answers with the same volume. */
static void test_volume_whose_answer_was_lost_is_made_again(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    controller.holds = true;
    create(small, &heard);
    small_again(small);
    small_settle(small);
    assert_int_equal(calls_of(CSI_CREATE_VOLUME), 2);
    assert_string_equal(said(last_call(), "Name"), "data");
    assert_non_null(json_object_get(json_object_get(last_call()->request, "Secrets"), "key"));
    answer_one(last_call());
    small_settle(small);
    assert_int_equal(data(small)->state, REGISTRATION_READY);
    assert_int_equal(heard.count, 0); /* whoever asked is gone */
    small_again(small);
    assert_int_equal(calls_of(CSI_CREATE_VOLUME), 2);
}

static void test_volume_that_is_refused_is_forgotten(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    static const unsigned refusals[] = {3 /* INVALID_ARGUMENT */, 8 /* RESOURCE_EXHAUSTED */};
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        controller.status = refusals[i];
        create(small, &heard);
        assert_int_equal(heard.count, 1);
        assert_int_equal(heard.code, ERR_IO);
        assert_null(data(small));
        assert_int_equal(small_specs_of(small, "volume/"), 0);
        assert_int_equal(small_specs_of(small, "secret/"), 0);
    }
    pass_time(small);
    assert_int_equal(calls_of(CSI_CREATE_VOLUME), COUNT_OF(refusals)); /* that was all */
}

static void test_volume_that_may_have_been_made_is_asked_for_again(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    controller.status = 4; /* DEADLINE_EXCEEDED */
    controller.unanswered = true;
    create(small, &heard);
    assert_int_equal(heard.count, 1);
    assert_true(heard.code < 0);
    assert_int_equal(data(small)->state, REGISTRATION_CREATING);
    assert_string_equal(data(small)->last_fail, "plugin hp: it does not work: status 4");
    struct alone_evaluation evaluation =
        run(small, "j", 1, "data", "single-node-writer", false, false);
    assert_waits(small, "j", &evaluation, "CSI volume data is unschedulable or is read-only");

    controller.status = 0;
    controller.unanswered = false;
    pass_time(small);
    assert_int_equal(calls_of(CSI_CREATE_VOLUME), 2);
    assert_int_equal(data(small)->state, REGISTRATION_READY);
    assert_string_equal(data(small)->last_fail, "");
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
}

/* What a commit did not take is nowhere to be seen, and is found out again. */
static void test_what_cannot_be_stored_changes_nothing(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    controller.holds = true;
    create(small, &heard);
    char *before = json_dumps(data(small)->json, 0);
    small->commit_code = ERR_LIMIT;
    answer_one(last_call());
    assert_journal_holds(small, before);
    small_settle(small);
    assert_int_equal(heard.count, 1);
    assert_string_equal(heard.text, "the disk is full");
    assert_journal_holds(small, before);
    assert_int_equal(data(small)->state, REGISTRATION_CREATING);
    free(before);

    small->commit_code = 0;
    pass_time(small);
    assert_int_equal(calls_of(CSI_CREATE_VOLUME), 2);
    answer_one(last_call());
    small_settle(small);
    assert_int_equal(data(small)->state, REGISTRATION_READY);

    delete (small, &heard);
    before = json_dumps(data(small)->json, 0);
    small->commit_code = ERR_LIMIT;
    controller.status = 9; /* FAILED_PRECONDITION: it has snapshots */
    answer_one(last_call());
    small_settle(small);
    assert_int_equal(heard.count, 1);
    assert_journal_holds(small, before);
    assert_int_equal(data(small)->state, REGISTRATION_DELETING);
    free(before);
    small->commit_code = 0;
    controller.status = 0;
    pass_time(small);
    assert_int_equal(calls_of(CSI_DELETE_VOLUME), 2);
    answer_one(last_call());
    small_settle(small);
    assert_null(data(small));
}

/* --- deleting --- */

static void test_volume_in_use_is_not_deleted(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    create(small, &heard);
    (void)run(small, "j", 1, "data", "single-node-writer", false, false);
    delete (small, &heard);
    assert_int_equal(heard.code, ERR_REFUSED);
    assert_int_equal(calls_of(CSI_DELETE_VOLUME), 0);
    stop(small, "j");
    delete (small, &heard);
    assert_int_equal(heard.code, 0);
    assert_int_equal(calls_of(CSI_DELETE_VOLUME), 1);
    assert_string_equal(controller.state, "deleting");
    assert_string_equal(said(last_call(), "ExternalVolumeID"), "made-1");
    assert_null(data(small));
    assert_int_equal(small_specs_of(small, "secret/"), 0);
}

/* Two names of one volume of the plugin: what one has, the other may not take away. */
static void test_volume_in_use_by_another_name_is_not_deleted(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    create(small, &heard);
    json_t *json = volume_json("twin", "single-node-writer");
    check(json_object_set_new(json, "ExternalID", json_string("made-1")) == 0);
    storage_register_volume(alone_storage(small->alone), "default", json, hear, &heard);
    json_decref(json);
    small_settle(small);
    assert_int_equal(heard.code, 0);
    (void)run(small, "j", 1, "twin", "single-node-writer", false, false);
    delete (small, &heard);
    assert_int_equal(heard.code, ERR_REFUSED);
    assert_string_equal(heard.text,
                        "volume in use: data is registered as twin in namespace default, too");
    assert_int_equal(calls_of(CSI_DELETE_VOLUME), 0);
    assert_int_equal(data(small)->state, REGISTRATION_READY);
    stop(small, "j");
    delete (small, &heard);
    assert_int_equal(heard.code, 0);
}

static void test_plugin_that_has_stopped_is_told_from_one_that_nobody_knows(void **state)
{
    static const char stopped[] =
        "CSI plugin hp does not run now: its job starts it again, or says why not";
    struct small_life *small = *state;
    struct machine_id id = machine_id_make(MACHINE_PLUGIN, plugin_id);
    const struct storage_page page = {.plugin = "hp", .token = ""};
    struct heard heard;

    create(small, &heard);
    core_ask(life_core(small->life), &id, PE_STOP, NULL, 1);
    small_settle(small);
    delete (small, &heard);
    assert_int_equal(heard.code, ERR_AGAIN);
    assert_string_equal(heard.text, stopped);
    storage_list_external(alone_storage(small->alone), &page, hear, &heard);
    assert_int_equal(heard.code, ERR_AGAIN);
    assert_string_equal(heard.text, stopped);
    assert_int_equal(data(small)->state, REGISTRATION_READY);
}

static void test_deletion_whose_answer_was_lost_is_made_again(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    create(small, &heard);
    controller.holds = true;
    delete (small, &heard);
    assert_int_equal(heard.count, 0);
    small_again(small);
    small_settle(small);
    assert_int_equal(calls_of(CSI_DELETE_VOLUME), 2);
    answer_one(last_call());
    small_settle(small);
    assert_null(data(small));
    assert_int_equal(small_specs_of(small, "volume/"), 0);
}

/* A call that the plugin did not hear says nothing of the one before. */
static void test_deletion_that_was_not_heard_again_is_still_under_way(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    create(small, &heard);
    controller.holds = true;
    delete (small, &heard);
    controller.holds = false;
    controller.status = 14; /* UNAVAILABLE */
    controller.unheard = controller.unanswered = true;
    small_again(small);
    small_settle(small);
    assert_true(calls_of(CSI_DELETE_VOLUME) >= 2);
    assert_int_equal(data(small)->state, REGISTRATION_DELETING);
    controller.status = 0;
    controller.unheard = controller.unanswered = false;
    pass_time(small);
    assert_null(data(small));
}

static void test_volume_that_is_not_deleted_is_as_it_was(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    create(small, &heard);
    controller.status = 9; /* FAILED_PRECONDITION: it has snapshots */
    delete (small, &heard);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.code, ERR_IO);
    assert_int_equal(data(small)->state, REGISTRATION_READY);
    pass_time(small);
    assert_int_equal(calls_of(CSI_DELETE_VOLUME), 1);
}

/* Its id is learned by its name first. */
static void test_what_may_have_been_made_is_deleted(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    controller.status = 4;
    controller.unanswered = true;
    create(small, &heard);
    controller.status = 0;
    controller.unanswered = false;
    delete (small, &heard);
    assert_int_equal(heard.code, 0);
    assert_int_equal(calls_of(CSI_CREATE_VOLUME), 2);
    assert_int_equal(calls_of(CSI_DELETE_VOLUME), 1);
    assert_string_equal(said(last_call(), "ExternalVolumeID"), "made-1");
    assert_null(data(small));
}

/* --- claiming --- */

static void test_claim_attaches_and_its_end_detaches(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    create(small, &heard);
    (void)run(small, "j", 1, "data", "single-node-writer", false, false);
    assert_int_equal(calls_of(CSI_CONTROLLER_PUBLISH), 1);
    assert_string_equal(said(last_call(), "VolumeID"), "made-1");
    assert_string_equal(said(last_call(), "ClientCSINodeID"), "n1");
    assert_string_equal(said(last_call(), "AccessMode"), "single-node-writer");
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(last_call()->request, "VolumeContext"), "zone")),
                        "a");
    stop(small, "j");
    assert_int_equal(calls_of(CSI_CONTROLLER_UNPUBLISH), 1);
    assert_string_equal(said(last_call(), "ClientCSINodeID"), "n1");
    assert_non_null(json_object_get(json_object_get(last_call()->request, "Secrets"), "key"));
    assert_int_equal(claims_of(small, "data").writers, 0);
}

static void test_volume_stays_attached_for_who_still_has_it(void **state)
{
    struct small_life *small = *state;

    assert_int_equal(register_volume(small, "data", "multi-node-multi-writer").code, 0);
    (void)run(small, "j", 1, "data", "multi-node-multi-writer", false, false);
    (void)run(small, "k", 1, "data", "multi-node-multi-writer", false, false);
    assert_int_equal(claims_of(small, "data").writers, 2);
    stop(small, "j");
    assert_int_equal(calls_of(CSI_CONTROLLER_UNPUBLISH), 0);
    assert_int_equal(claims_of(small, "data").writers, 1);
    stop(small, "k");
    assert_int_equal(calls_of(CSI_CONTROLLER_UNPUBLISH), 1);
}

static void test_attachment_whose_answer_was_lost_is_made_again(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    create(small, &heard);
    controller.holds = true;
    (void)run(small, "j", 1, "data", "single-node-writer", false, false);
    assert_int_equal(calls_of(CSI_CONTROLLER_PUBLISH), 1);
    small_again(small);
    pass_time(small);
    assert_int_equal(calls_of(CSI_CONTROLLER_PUBLISH), 2);
    controller.holds = false;
    answer_one(last_call());
    small_settle(small);
    assert_int_equal(claims_of(small, "data").writers, 1);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
}

/* Who never heard that it was attached has it detached all the same, before it is deleted. */
static void test_volume_that_may_be_attached_is_not_deleted(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    create(small, &heard);
    controller.status = 4; /* DEADLINE_EXCEEDED */
    controller.unanswered = true;
    (void)run(small, "j", 1, "data", "single-node-writer", false, false);
    stop(small, "j");
    assert_int_equal(claims_of(small, "data").writers, 0);
    controller.status = 0;
    controller.unanswered = false;
    delete (small, &heard);
    assert_int_equal(heard.code, ERR_REFUSED);
    assert_string_equal(heard.text,
                        "volume in use: data; an alloc that has ended has yet to let go");
    assert_int_equal(calls_of(CSI_DELETE_VOLUME), 0);
    pass_time(small);
    assert_int_equal(last_call()->call, CSI_CONTROLLER_UNPUBLISH);
    delete (small, &heard);
    assert_int_equal(heard.code, 0);
    assert_int_equal(calls_of(CSI_DELETE_VOLUME), 1);
}

/* While the answer about one is awaited nobody else is let in. */
static void test_two_claims_are_not_granted_at_once(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    create(small, &heard);
    controller.holds = true;
    (void)run(small, "j", 1, "data", "single-node-writer", false, false);
    struct alone_evaluation evaluation =
        run(small, "k", 1, "data", "single-node-writer", false, false);
    assert_waits(small, "k", &evaluation,
                 "CSI volume data has exhausted its available writer claims");
    assert_int_equal(calls_of(CSI_CONTROLLER_PUBLISH), 1);
    answer_one(last_call());
    small_settle(small);
    assert_int_equal(claims_of(small, "data").writers, 1);
}

/* --- changing --- */

static struct heard grow(struct small_life *small, json_int_t min)
{
    static struct heard heard; /* some hear of it later */
    json_t *json = to_create();

    heard = (struct heard){0};

    check(json_object_set_new(json, "RequestedCapacityMin", json_integer(min)) == 0);
    storage_create_volume(alone_storage(small->alone), "default", json, hear, &heard);
    json_decref(json);
    small_settle(small);
    return heard;
}

static json_int_t capacity(struct small_life *small)
{
    return json_integer_value(json_object_get(data(small)->json, "Capacity"));
}

static void test_volume_grows_and_the_daemon_dies_meanwhile(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    create(small, &heard);
    assert_int_equal(capacity(small), 4096);
    assert_int_equal(grow(small, 4096).code, 0);
    assert_int_equal(calls_of(CSI_CONTROLLER_EXPAND), 0);
    controller.holds = true;
    assert_int_equal(grow(small, 8000).count, 0);
    assert_int_equal(calls_of(CSI_CONTROLLER_EXPAND), 1);
    small_again(small);
    small_settle(small);
    assert_int_equal(calls_of(CSI_CONTROLLER_EXPAND), 2);
    answer_one(last_call());
    small_settle(small);
    assert_int_equal(capacity(small), 8192);
    assert_int_equal(json_integer_value(json_object_get(data(small)->json, "RequestedCapacityMin")),
                     8000);
    small_again(small);
    assert_int_equal(calls_of(CSI_CONTROLLER_EXPAND), 2);
}

static void test_what_is_mounted_grows_too(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    controller.node_grows = true;
    create(small, &heard);
    (void)run(small, "j", 1, "data", "single-node-writer", false, false);
    assert_int_equal(grow(small, 9000).code, 0);
    assert_int_equal(calls_of(CSI_NODE_EXPAND), 1);
    assert_string_equal(said(last_call(), "VolumeID"), "data");
    assert_string_equal(said(last_call(), "ExternalID"), "made-1");
    assert_true(uuid_is_valid(json_string_value(
        json_object_get(json_object_get(last_call()->request, "Claim"), "AllocationID"))));
    assert_int_equal(json_integer_value(json_object_get(
                         json_object_get(last_call()->request, "Capacity"), "RequiredBytes")),
                     9000);
    assert_string_equal(data(small)->last_fail, "");
    small_again(small);
    pass_time(small);
    assert_int_equal(calls_of(CSI_NODE_EXPAND), 1);
}

/* Nobody has it mounted: it grows with the first that has. */
static void test_what_is_mounted_later_grows_then(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    controller.node_grows = true;
    create(small, &heard);
    assert_int_equal(grow(small, 9000).code, 0);
    pass_time(small);
    small_again(small);
    assert_int_equal(calls_of(CSI_NODE_EXPAND), 0);
    (void)run(small, "j", 1, "data", "single-node-writer", false, false);
    pass_time(small);
    assert_int_equal(calls_of(CSI_NODE_EXPAND), 1);
    pass_time(small);
    assert_int_equal(calls_of(CSI_NODE_EXPAND), 1);
}

static void test_growing_on_the_node_goes_on_after_a_crash(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    controller.node_grows = true;
    create(small, &heard);
    (void)run(small, "j", 1, "data", "single-node-writer", false, false);
    controller.holds = true;
    (void)grow(small, 9000);
    assert_int_equal(calls_of(CSI_CONTROLLER_EXPAND), 1);
    answer_one(last_call());
    small_settle(small);
    assert_int_equal(calls_of(CSI_NODE_EXPAND), 1);
    small_again(small);
    pass_time(small);
    assert_int_equal(calls_of(CSI_CONTROLLER_EXPAND), 1);
    assert_int_equal(calls_of(CSI_NODE_EXPAND), 2);
    answer_one(last_call());
    small_settle(small);
    small_again(small);
    pass_time(small);
    assert_int_equal(calls_of(CSI_NODE_EXPAND), 2);
}

static void test_growing_that_cannot_be_stored_is_still_open(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    controller.node_grows = true;
    create(small, &heard);
    (void)run(small, "j", 1, "data", "single-node-writer", false, false);
    controller.holds = true;
    (void)grow(small, 9000);
    for (int call = 0; call < 2; call++) { /* the controller's, the node's */
        char *before = json_dumps(data(small)->json, 0);

        small->commit_code = ERR_LIMIT;
        answer_one(last_call());
        assert_journal_holds(small, before);
        small_settle(small);
        assert_journal_holds(small, before);
        free(before);
        small->commit_code = 0;
        pass_time(small); /* it is asked again */
        answer_one(last_call());
        small_settle(small);
    }
    assert_int_equal(calls_of(CSI_CONTROLLER_EXPAND), 2);
    assert_int_equal(calls_of(CSI_NODE_EXPAND), 2);
    assert_int_equal(capacity(small), 8192);
    assert_null(json_object_get(data(small)->json, "cairnGrows"));
}

static void test_what_the_node_cannot_grow_is_told(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    controller.node_grows = true;
    create(small, &heard);
    (void)run(small, "j", 1, "data", "single-node-writer", false, false);
    controller.holds = true;
    heard = grow(small, 9000);
    answer_one(last_call());
    small_settle(small);
    controller.status = 9; /* FAILED_PRECONDITION: it is in use */
    answer_one(last_call());
    small_settle(small);
    assert_int_equal(capacity(small), 8192);
    assert_non_null(strstr(data(small)->last_fail, "its storage has grown, but not what"));
    pass_time(small);
    assert_int_equal(calls_of(CSI_NODE_EXPAND), 1);
}

static void test_volume_that_cannot_grow_is_as_it_was(void **state)
{
    struct small_life *small = *state;
    struct heard heard;

    create(small, &heard);
    controller.status = 11; /* OUT_OF_RANGE */
    heard = grow(small, 8000);
    assert_int_equal(heard.count, 1);
    assert_non_null(strstr(heard.text, "unable to expand volume"));
    assert_int_equal(json_integer_value(json_object_get(data(small)->json, "RequestedCapacityMin")),
                     4096);
    assert_null(json_object_get(data(small)->json, "cairnExpands"));
    assert_int_equal(data(small)->state, REGISTRATION_READY);
}

static void test_what_is_fixed_cannot_be_changed(void **state)
{
    static const struct {
        const char *name, *json, *told;
    } changes[] = {
        {"plugin", "{\"ExternalID\": \"other\"}", "volume external ID cannot be updated"},
        {"name", "{\"Name\": \"other\"}", "volume name cannot be updated"},
        {"clone", "{\"CloneID\": \"c\"}", "volume clone ID cannot be updated"},
        {"parameters", "{\"Parameters\": {\"a\": \"b\"}}", "volume parameters cannot be updated"},
        {"options", "{\"MountOptions\": {\"FSType\": \"xfs\"}}",
         "can not update mount options while volume is in use"},
        {"modes",
         "{\"RequestedCapabilities\": [{\"AccessMode\": \"multi-node-reader-only\", "
         "\"AttachmentMode\": \"file-system\"}]}",
         "not compatible with existing capability"},
    };
    struct small_life *small = *state;

    assert_int_equal(register_volume(small, "data", "single-node-writer").code, 0);
    assert_int_equal(calls_of(CSI_VALIDATE), 1);
    (void)run(small, "j", 1, "data", "single-node-writer", false, false);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        json_t *json = volume_json("data", "single-node-writer");
        struct heard heard = {0};

        assert_int_equal(json_object_update_new(json, json_loads(changes[i].json, 0, NULL)), 0);
        storage_register_volume(alone_storage(small->alone), "default", json, hear, &heard);
        json_decref(json);
        small_settle(small);
        if (heard.count != 1 || strstr(heard.text, changes[i].told) == NULL)
            fail_msg("%s: %d \"%s\"", changes[i].name, heard.code, heard.text);
    }
}

static void test_what_the_plugin_does_not_confirm_is_not_registered(void **state)
{
    struct small_life *small = *state;

    controller.status = 5; /* NOT_FOUND */
    assert_int_equal(register_volume(small, "data", "single-node-writer").code, ERR_IO);
    assert_null(data(small));
}

static void test_snapshot_is_made_of_what_the_plugin_calls_the_volume(void **state)
{
    struct small_life *small = *state;
    struct heard heard;
    json_t *snapshot = json_pack("{s:s, s:s, s:{s:s}}", "SourceVolumeID", "data", "Name", "s1",
                                 "Secrets", "other", "xyzzy");

    create(small, &heard);
    heard = (struct heard){0};
    storage_create_snapshot(alone_storage(small->alone), "default", snapshot, hear, &heard);
    json_decref(snapshot);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.code, 0);
    assert_string_equal(said(last_call(), "ExternalSourceVolumeID"), "made-1");
    assert_string_equal(said(last_call(), "Name"), "s1");
    const json_t *secrets = json_object_get(last_call()->request, "Secrets");
    assert_int_equal(json_object_size(secrets), 2);
    struct storage_page page = {.plugin = "hp", .snapshots = true, .token = ""};
    heard = (struct heard){0};
    storage_list_external(alone_storage(small->alone), &page, hear, &heard);
    assert_int_equal(heard.code, ERR_REFUSED);
    assert_string_equal(heard.text, "plugin does not support listing snapshots");
}

/* --- how full, how much is left --- */

static void test_who_has_a_volume_is_asked_how_full_it_is(void **state)
{
    struct small_life *small = *state;
    struct storage *storage = alone_storage(small->alone);
    struct heard heard;

    create(small, &heard);
    size_t before = controller.count;
    heard = (struct heard){0};
    storage_volume_stats(storage, "default", "none", hear, &heard);
    assert_int_equal(heard.code, ERR_GONE);
    storage_volume_stats(storage, "default", "data", hear, &heard); /* nobody has it */
    assert_int_equal(heard.count, 2);
    assert_int_equal(heard.code, 0);
    assert_int_equal(controller.count, before);

    (void)run(small, "j", 1, "data", "single-node-writer", false, false);
    storage_volume_stats(storage, "default", "data", hear, &heard);
    assert_int_equal(heard.count, 3);
    assert_int_equal(heard.code, 0);
    assert_int_equal(last_call()->call, CSI_NODE_STATS);
    assert_string_equal(said(last_call(), "VolumeID"), "data");
    assert_string_equal(said(last_call(), "ExternalID"), "made-1");
    assert_true(uuid_is_valid(json_string_value(
        json_object_get(json_object_get(last_call()->request, "Claim"), "AllocationID"))));
    assert_null(json_object_get(last_call()->request, "Secrets"));
    controller.status = 14; /* UNAVAILABLE */
    storage_volume_stats(storage, "default", "data", hear, &heard);
    assert_int_equal(heard.code, ERR_IO);
    assert_string_equal(data(small)->last_fail, "");
}

/* However many ask, a plugin that hangs keeps most of its calls for volumes; and the daemon ends
 * in the middle of it. */
static void test_few_wait_for_a_plugin_to_tell_how_full(void **state)
{
    struct small_life *small = *state;
    struct storage *storage = alone_storage(small->alone);
    static struct heard heard;
    size_t before;

    create(small, &heard);
    (void)run(small, "j", 1, "data", "single-node-writer", false, false);
    before = controller.count;
    controller.holds = true;
    heard = (struct heard){0};
    for (int i = 0; i < 20; i++)
        storage_volume_stats(storage, "default", "data", hear, &heard);
    assert_int_equal(controller.count - before, 16);
    assert_int_equal(heard.count, 4);
    assert_int_equal(heard.code, ERR_AGAIN);
    answer_one(last_call());
    assert_int_equal(heard.count, 5);
    storage_volume_stats(storage, "default", "data", hear, &heard);
    assert_int_equal(heard.count, 5);
    small_again(small);
}

static void test_plugin_is_asked_what_it_has_left_if_it_can_tell(void **state)
{
    struct small_life *small = *state;
    struct heard heard = {0};

    storage_plugin_capacity(alone_storage(small->alone), "hp", hear, &heard);
    assert_int_equal(heard.code, ERR_REFUSED);
    assert_string_equal(heard.text, "plugin does not tell how much it has left");
    small->identity.controller_capabilities |= CSI_CONTROLLER_HAS_CAPACITY;
    small_again(small); /* and the plugin says who it is */
    storage_plugin_capacity(alone_storage(small->alone), "hp", hear, &heard);
    assert_int_equal(heard.code, 0);
    assert_int_equal(last_call()->call, CSI_GET_CAPACITY);
    storage_plugin_capacity(alone_storage(small->alone), "none", hear, &heard);
    assert_int_equal(heard.code, ERR_GONE);
    assert_int_equal(heard.count, 3);
}

/* --- a plugin that never answers --- */

static void put_larger(struct storage *storage, struct heard *heard)
{
    json_t *json = to_create();

    check(json_object_set_new(json, "RequestedCapacityMin", json_integer(8192)) == 0);
    storage_create_volume(storage, "default", json, hear, heard);
    json_decref(json);
}

static void put_same(struct storage *storage, struct heard *heard)
{
    json_t *json = to_create();

    storage_register_volume(storage, "default", json, hear, heard);
    json_decref(json);
}

static void detach(struct storage *storage, struct heard *heard)
{
    storage_detach_volume(storage, "default", "data", hear, heard);
}

static void create_snapshot(struct storage *storage, struct heard *heard)
{
    json_t *json = json_pack("{s:s, s:s}", "SourceVolumeID", "data", "Name", "s1");

    storage_create_snapshot(storage, "default", json, hear, heard);
    json_decref(json);
}

static void delete_snapshot(struct storage *storage, struct heard *heard)
{
    storage_delete_snapshot(storage, "hp", "snap-1", NULL, hear, heard);
}

static void list_volumes(struct storage *storage, struct heard *heard)
{
    const struct storage_page page = {.plugin = "hp", .token = ""};

    storage_list_external(storage, &page, hear, heard);
}

static void list_snapshots(struct storage *storage, struct heard *heard)
{
    const struct storage_page page = {.plugin = "hp", .snapshots = true, .token = ""};

    storage_list_external(storage, &page, hear, heard);
}

/* The limit of the call runs out: who asked is told, the volume is as it was, and whoever waited
 * for his turn at it has it. */
static void test_call_whose_limit_runs_out_is_told_and_holds_nothing(void **state)
{
    static const struct {
        enum csi_call call;
        void (*ask)(struct storage *storage, struct heard *heard);
        bool of_volume; /* one after the other */
        size_t again;   /* how often the plugin is asked again by itself, when it works */
    } rows[] = {
        {CSI_VALIDATE, put_same, true, 0},
        {CSI_CONTROLLER_EXPAND, put_larger, true, 1},
        {CSI_CONTROLLER_UNPUBLISH, detach, true, 0},
        {CSI_CREATE_SNAPSHOT, create_snapshot, true, 0},
        {CSI_DELETE_SNAPSHOT, delete_snapshot, false, 0},
        {CSI_LIST_VOLUMES, list_volumes, false, 0},
        {CSI_LIST_SNAPSHOTS, list_snapshots, false, 0},
    };
    struct small_life *small = *state;
    struct heard heard, next;

    small->identity.controller_capabilities |=
        CSI_CONTROLLER_LISTS | CSI_CONTROLLER_LISTS_SNAPSHOTS;
    small_again(small); /* and the plugin says who it is */
    create(small, &heard);
    struct storage *storage = alone_storage(small->alone);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        controller.holds = true;
        heard = next = (struct heard){0};
        rows[i].ask(storage, &heard);
        small_settle(small);
        struct asked *first = last_call();
        assert_int_equal(first->call, rows[i].call);
        detach(storage, &next);
        small_settle(small);
        assert_int_equal(heard.count, 0);
        assert_true(last_call() == first || !rows[i].of_volume);

        controller.status = 4; /* DEADLINE_EXCEEDED, and not by the plugin */
        controller.unanswered = true;
        answer_one(first);
        small_settle(small);
        assert_int_equal(heard.count, 1);
        assert_true(heard.code < 0);
        assert_non_null(strstr(heard.text, "plugin hp: it does not work: status 4"));
        assert_int_equal(last_call()->call, CSI_CONTROLLER_UNPUBLISH);
        controller.status = 0;
        controller.unanswered = controller.holds = false;
        answer_one(last_call());
        small_settle(small);
        assert_int_equal(next.count, 1);
        assert_int_equal(next.code, 0);
        assert_int_equal(data(small)->state, REGISTRATION_READY);
        size_t before = controller.count;
        pass_time(small);
        assert_int_equal(controller.count - before, rows[i].again);
        assert_string_equal(data(small)->last_fail, "");
        rows[i].ask(storage, &heard);
        small_settle(small);
        assert_int_equal(heard.count, 2);
        assert_int_equal(heard.code, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTROLLER_TEST(test_volume_is_stored_before_and_after_it_is_made),
        CONTROLLER_TEST(test_who_has_a_volume_is_asked_how_full_it_is),
        CONTROLLER_TEST(test_few_wait_for_a_plugin_to_tell_how_full),
        CONTROLLER_TEST(test_plugin_is_asked_what_it_has_left_if_it_can_tell),
        CONTROLLER_TEST(test_volume_whose_answer_was_lost_is_made_again),
        CONTROLLER_TEST(test_volume_that_is_refused_is_forgotten),
        CONTROLLER_TEST(test_volume_that_may_have_been_made_is_asked_for_again),
        CONTROLLER_TEST(test_what_cannot_be_stored_changes_nothing),
        CONTROLLER_TEST(test_volume_in_use_is_not_deleted),
        CONTROLLER_TEST(test_volume_in_use_by_another_name_is_not_deleted),
        CONTROLLER_TEST(test_plugin_that_has_stopped_is_told_from_one_that_nobody_knows),
        CONTROLLER_TEST(test_deletion_whose_answer_was_lost_is_made_again),
        CONTROLLER_TEST(test_deletion_that_was_not_heard_again_is_still_under_way),
        CONTROLLER_TEST(test_volume_that_is_not_deleted_is_as_it_was),
        CONTROLLER_TEST(test_what_may_have_been_made_is_deleted),
        CONTROLLER_TEST(test_claim_attaches_and_its_end_detaches),
        CONTROLLER_TEST(test_volume_stays_attached_for_who_still_has_it),
        CONTROLLER_TEST(test_attachment_whose_answer_was_lost_is_made_again),
        CONTROLLER_TEST(test_volume_that_may_be_attached_is_not_deleted),
        CONTROLLER_TEST(test_two_claims_are_not_granted_at_once),
        CONTROLLER_TEST(test_volume_grows_and_the_daemon_dies_meanwhile),
        CONTROLLER_TEST(test_what_is_mounted_grows_too),
        CONTROLLER_TEST(test_what_is_mounted_later_grows_then),
        CONTROLLER_TEST(test_growing_on_the_node_goes_on_after_a_crash),
        CONTROLLER_TEST(test_growing_that_cannot_be_stored_is_still_open),
        CONTROLLER_TEST(test_what_the_node_cannot_grow_is_told),
        CONTROLLER_TEST(test_volume_that_cannot_grow_is_as_it_was),
        CONTROLLER_TEST(test_what_is_fixed_cannot_be_changed),
        CONTROLLER_TEST(test_what_the_plugin_does_not_confirm_is_not_registered),
        CONTROLLER_TEST(test_snapshot_is_made_of_what_the_plugin_calls_the_volume),
        CONTROLLER_TEST(test_call_whose_limit_runs_out_is_told_and_holds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
