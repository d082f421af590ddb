/* The plugin of host volumes that is inside: a directory is there as it was asked for, or not. */
#include "hooks/hosted/part.h"
#include "test/io/scratch.h"

#define VOLUME_ID "0b3ff1ce-7d4c-4b1e-9f7a-5a3c5e2d1f00"

struct plugin {
    struct scratch *scratch;
    char directory[PATH_SIZE + 16], path[PATH_SIZE + 64];
    struct hosted_request request;
    struct hosted_result result;
};

static int set_up(void **state)
{
    struct plugin *plugin = calloc(1, sizeof(*plugin));

    assert_non_null(plugin);
    void *scratch;
    assert_int_equal(scratch_make(&scratch), 0);
    plugin->scratch = scratch;
    (void)snprintf(plugin->directory, sizeof(plugin->directory), "%s/volumes",
                   plugin->scratch->path);
    (void)snprintf(plugin->path, sizeof(plugin->path), "%s/" VOLUME_ID, plugin->directory);
    plugin->request = (struct hosted_request){.volumes_dir = plugin->directory,
                                              .ask = {.id = VOLUME_ID, .parameters = "{}"}};
    *state = plugin;
    return 0;
}

static int tear_down(void **state)
{
    struct plugin *plugin = *state;

    void *scratch = plugin->scratch;
    int code = scratch_remove(&scratch);

    free(plugin);
    return code;
}

static int call(struct plugin *plugin, bool deletes, const char *parameters)
{
    plugin->request.ask.deletes = deletes;
    plugin->request.ask.parameters = parameters;
    plugin->result = (struct hosted_result){.answer.is_known = true};
    hosted_mkdir(&plugin->request, &plugin->result);
    return plugin->result.answer.code;
}

static void test_volume_is_made_once_and_deleted_with_what_it_holds(void **state)
{
    struct plugin *plugin = *state;
    char inside[sizeof(plugin->path) + 8];

    assert_int_equal(call(plugin, false, "{}"), 0);
    assert_string_equal(plugin->result.path, plugin->path);
    assert_int_equal(mode_of(plugin->path), 0700);
    (void)snprintf(inside, sizeof(inside), "%s/kept", plugin->path);
    assert_return_code(mkdir(inside, 0700), 0);
    assert_int_equal(call(plugin, false, "{\"mode\": \"0755\"}"), 0);
    assert_int_equal(mode_of(plugin->path), 0700); /* it is there: nothing is changed */
    assert_return_code(access(inside, F_OK), 0);
    assert_int_equal(call(plugin, true, "{}"), 0);
    assert_int_not_equal(access(plugin->path, F_OK), 0);
    assert_int_equal(call(plugin, true, "{}"), 0); /* it is gone */
}

static void test_what_a_crash_left_is_gone_on_with(void **state)
{
    struct plugin *plugin = *state;
    char unfinished[sizeof(plugin->path)];

    (void)snprintf(unfinished, sizeof(unfinished), "%s/." VOLUME_ID, plugin->directory);
    assert_return_code(mkdir(plugin->directory, 0711), 0);
    assert_return_code(mkdir(unfinished, 0700), 0);
    assert_int_equal(call(plugin, false, "{\"mode\": \"2750\"}"), 0);
    assert_int_equal(mode_of(plugin->path), 02750);
    assert_int_not_equal(access(unfinished, F_OK), 0);
}

static void test_bad_parameters_make_nothing(void **state)
{
    static const struct {
        const char *parameters, *told;
    } wrong[] = {
        {"{\"mode\": \"0999\"}", "invalid value for \"mode\""},
        {"{\"mode\": \"17777\"}", "invalid value for \"mode\""},
        {"{\"uid\": \"root\"}", "invalid value for \"uid\""},
        {"{\"gid\": 7}", "invalid value for \"gid\""},
        {"{\"size\": \"1\"}", "unknown mkdir parameter: \"size\""},
        {"[]", "the parameters are no texts"},
    };
    struct plugin *plugin = *state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        if (call(plugin, false, wrong[i].parameters) != ERR_INVALID ||
            strstr(plugin->result.text, wrong[i].told) == NULL)
            fail_msg("%zu: %s", i, plugin->result.text);
        assert_int_not_equal(access(plugin->path, F_OK), 0);
    }
}

static void test_id_that_is_a_way_out_is_refused(void **state)
{
    struct plugin *plugin = *state;

    plugin->request.ask.id = "../elsewhere";
    assert_int_equal(call(plugin, false, "{}"), ERR_INVALID);
    assert_int_equal(call(plugin, true, "{}"), ERR_INVALID);
    assert_non_null(strstr(plugin->result.text, "is no id of a volume"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_volume_is_made_once_and_deleted_with_what_it_holds,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_a_crash_left_is_gone_on_with, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_parameters_make_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_id_that_is_a_way_out_is_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
