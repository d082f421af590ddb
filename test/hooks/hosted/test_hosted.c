/*
 * Plugins of host volumes: the one inside, with which a directory is there as it was asked for, or
 * not; and programs, which may fail, lie, talk too much and hang.
 */
#include "hooks/hosted/part.h"
#include "test/io/scratch.h"

#include <signal.h>

#define VOLUME_ID "0b3ff1ce-7d4c-4b1e-9f7a-5a3c5e2d1f00"

struct plugin {
    struct scratch *scratch;
    char directory[PATH_SIZE + 16], path[PATH_SIZE + 64];
    struct hosted_request request;
    struct hosted_result result;
};

static void prepare(struct plugin *plugin)
{
    (void)snprintf(plugin->directory, sizeof(plugin->directory), "%s/volumes",
                   plugin->scratch->path);
    (void)snprintf(plugin->path, sizeof(plugin->path), "%s/" VOLUME_ID, plugin->directory);
    plugin->request = (struct hosted_request){.volumes_dir = plugin->directory,
                                              .ask = {.id = VOLUME_ID, .parameters = "{}"}};
}

static int set_up(void **state)
{
    struct plugin *plugin = calloc(1, sizeof(*plugin));
    void *scratch;

    assert_non_null(plugin);
    assert_int_equal(scratch_make(&scratch), 0);
    plugin->scratch = scratch;
    prepare(plugin);
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

/* --- programs --- */

struct programs {
    struct plugin plugin; /* first */
    struct loop *loop;
    struct hosted *hosted;
    char programs[PATH_SIZE + 16];
    unsigned answers, wanted;
    char order[8][PLUGIN_NAME_SIZE]; /* who has answered, and with what */
    struct hosted_answer last;
    char path[PATH_SIZE], text[HOSTED_TEXT_SIZE];
    struct io_timer tick;
    const char *awaited; /* a file */
};

static void write_program(struct programs *programs, const char *name, const char *script)
{
    char path[sizeof(programs->programs) + 64];
    FILE *file;

    assert_true(text_format(path, sizeof(path), "%s/%s", programs->programs, name));
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fprintf(file, "#!/bin/sh\nhere=%s\n%s\n", programs->plugin.scratch->path, script) >
                0);
    assert_int_equal(fclose(file), 0);
    assert_return_code(chmod(path, 0755), 0);
}

static void new_hosted(struct programs *programs)
{
    programs->hosted = hosted_new(&(struct hosted_config){.loop = programs->loop,
                                                          .plugin_dir = programs->programs,
                                                          .volumes_dir = programs->plugin.directory,
                                                          .node_id = "node-1",
                                                          .node_pool = "stones"});
}

static int set_up_programs(void **state)
{
    struct programs *programs = calloc(1, sizeof(*programs));
    void *scratch;

    assert_non_null(programs);
    assert_int_equal(scratch_make(&scratch), 0);
    programs->plugin.scratch = scratch;
    prepare(&programs->plugin);
    (void)snprintf(programs->programs, sizeof(programs->programs), "%s/programs",
                   programs->plugin.scratch->path);
    assert_return_code(mkdir(programs->programs, 0755), 0);
    programs->loop = loop_new();
    new_hosted(programs);
    *state = programs;
    return 0;
}

static int tear_down_programs(void **state)
{
    struct programs *programs = *state;
    void *scratch = programs->plugin.scratch;

    hosted_free(programs->hosted);
    loop_free(programs->loop);
    free(programs);
    return scratch_remove(&scratch);
}

static void note_answer(void *ctx, const struct hosted_answer *answer)
{
    struct programs *programs = ctx;

    programs->last = *answer;
    (void)text_copy(programs->path, sizeof(programs->path), answer->path); /* same size */
    (void)text_copy(programs->text, sizeof(programs->text), answer->text); /* same size */
    programs->answers++;
    if (programs->answers == programs->wanted)
        loop_stop(programs->loop);
}

static void ask_program(struct programs *programs, const char *name, bool deletes)
{
    const struct hosted_ask ask = {.deletes = deletes,
                                   .plugin = name,
                                   .id = VOLUME_ID,
                                   .name = "data",
                                   .namespace = "default",
                                   .path = deletes ? "/made/there" : "",
                                   .bytes_min = 1,
                                   .bytes_max = 2,
                                   .parameters = "{\"a\":\"b c\"}"};

    hosted_call(programs->hosted, &ask, note_answer, programs);
}

static int call_program(struct programs *programs, const char *name, bool deletes)
{
    programs->answers = 0;
    programs->wanted = 1;
    ask_program(programs, name, deletes);
    assert_int_equal(programs->answers, 0);
    loop_run(programs->loop);
    return programs->last.code;
}

static void read_text(struct programs *programs, const char *name, char to[4096])
{
    char path[PATH_SIZE + 64];
    FILE *file;

    assert_true(text_format(path, sizeof(path), "%s/%s", programs->plugin.scratch->path, name));
    file = fopen(path, "re");
    assert_non_null(file);
    to[fread(to, 1, 4095, file)] = '\0';
    assert_int_equal(fclose(file), 0);
}

/* Without what shells put there by themselves. */
static const char *own_variables(char *lines)
{
    static const char *const of_shells[] = {"PWD=", "OLDPWD=", "SHLVL=", "_="};
    char *to = lines;

    for (char *line = lines, *next; *line != '\0'; line = next) {
        size_t length = strcspn(line, "\n") + 1;
        bool is_own = true;

        next = line + length;
        for (size_t i = 0; i < COUNT_OF(of_shells); i++)
            is_own = is_own && !text_starts_with(line, of_shells[i]);
        if (is_own) {
            memmove(to, line, length);
            to += length;
        }
    }
    *to = '\0';
    return lines;
}

/* Nomad's protocol, and nothing of the daemon's own environment. */
static void test_program_is_told_what_is_wanted_and_nothing_else(void **state)
{
    struct programs *programs = *state;
    char told[4096], expected[4096];

    write_program(programs, "own",
                  "env | sort > $here/told.$1\n"
                  "echo '{\"path\": \"/made/there\", \"bytes\": 4096, \"more\": 1}'");
    assert_int_equal(call_program(programs, "own", false), 0);
    assert_string_equal(programs->path, "/made/there");
    assert_int_equal(programs->last.bytes, 4096);
    read_text(programs, "told.create", told);
    assert_true(
        text_format(expected, sizeof(expected),
                    "DHV_CAPACITY_MAX_BYTES=2\nDHV_CAPACITY_MIN_BYTES=1\nDHV_NAMESPACE=default\n"
                    "DHV_NODE_ID=node-1\nDHV_NODE_POOL=stones\nDHV_OPERATION=create\n"
                    "DHV_PARAMETERS={\"a\":\"b c\"}\nDHV_PLUGIN_DIR=%s\nDHV_VOLUMES_DIR=%s\n"
                    "DHV_VOLUME_ID=" VOLUME_ID "\nDHV_VOLUME_NAME=data\n",
                    programs->programs, programs->plugin.directory));
    assert_string_equal(own_variables(told), expected);
    assert_int_equal(call_program(programs, "own", true), 0);
    read_text(programs, "told.delete", told);
    assert_non_null(strstr(told, "DHV_CREATED_PATH=/made/there\n"));
    assert_null(strstr(told, "CAPACITY"));
}

static void test_what_programs_say_is_judged(void **state)
{
    static const struct {
        const char *script;
        int code;
        bool known, odd;
        const char *told;
    } programs_of[] = {
        {"echo '{\"path\": \"/made\"}'", 0, true, false, ""},
        {"echo '{\"error\": \"no room left\"}'; exit 3", ERR_REFUSED, true, false,
         "error creating volume \"" VOLUME_ID
         "\" with plugin \"own\": exit status 3: no room left"},
        {"echo 'the disk is away' >&2; exit 1", ERR_REFUSED, true, false,
         "exit status 1: the disk is away"},
        {"kill -9 $$", ERR_REFUSED, true, false, "exit status 137"},
        {"echo made", ERR_INVALID, true, true, "does not say as JSON"},
        {"exit 0", ERR_INVALID, true, true, "does not say as JSON"},
        {"echo '[\"/made\"]'", ERR_INVALID, true, true, "does not say as JSON"},
        {"echo '{\"path\": \"made\"}'", ERR_INVALID, true, true, "does not say as JSON"},
        {"echo '{\"path\": \"/made\", \"bytes\": -1}'", ERR_INVALID, true, true, "how many bytes"},
        {"echo '{\"path\": \"/made\", \"bytes\": \"1\"}'", ERR_INVALID, true, true,
         "how many bytes"},
        {"echo '{\"path\": \"/made\\u0000/../etc\"}'", ERR_INVALID, true, true,
         "does not say as JSON"},
        {"head -c 5000 /dev/zero | tr '\\0' '/' | sed 's/.*/{\"path\": \"&\"}/'", ERR_INVALID, true,
         true, "does not say as JSON"},
        /* As deep as it is long. */
        {"head -c 200000 /dev/zero | tr '\\0' '['", ERR_INVALID, true, true,
         "does not say as JSON"},
        {"head -c 10000000 /dev/zero | tr '\\0' 'x'", ERR_LIMIT, false, false,
         "it says more than 262144 bytes"},
        {"head -c 10000000 /dev/zero | tr '\\0' 'x' >&2; exit 1", ERR_REFUSED, true, false,
         "exit status 1: xxxx"},
    };
    struct programs *programs = *state;

    for (size_t i = 0; i < COUNT_OF(programs_of); i++) {
        write_program(programs, "own", programs_of[i].script);
        int code = call_program(programs, "own", false);
        if (code != programs_of[i].code || programs->last.is_known != programs_of[i].known ||
            programs->last.is_odd != programs_of[i].odd ||
            strstr(programs->text, programs_of[i].told) == NULL)
            fail_msg("%s: %d %s", programs_of[i].script, code, programs->text);
    }
}

static void test_only_programs_of_the_directory_are_plugins(void **state)
{
    struct programs *programs = *state;
    char path[sizeof(programs->programs) + 32];

    write_program(programs, "own", "echo '{\"path\": \"/made\"}'");
    write_program(programs, "text", "");
    assert_true(text_format(path, sizeof(path), "%s/text", programs->programs));
    assert_return_code(chmod(path, 0644), 0);
    assert_true(text_format(path, sizeof(path), "%s/folder", programs->programs));
    assert_return_code(mkdir(path, 0755), 0);
    assert_true(hosted_has(programs->hosted, "own"));
    assert_true(hosted_has(programs->hosted, "mkdir"));
    static const char *const none[] = {"",     "text",   "folder", "..", ".own", "../programs/own",
                                       "own ", "missing"};
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_false(hosted_has(programs->hosted, none[i]));
    assert_int_equal(call_program(programs, "../programs/own", false), ERR_GONE);
    assert_false(programs->last.is_known);
    assert_non_null(strstr(programs->text, "no such plugin"));
}

static void note_found(void *ctx, const struct spec_pairs *versions)
{
    struct programs *programs = ctx;

    programs->text[0] = '\0';
    for (size_t i = 0; i < versions->count; i++) {
        (void)text_append(programs->text, sizeof(programs->text), versions->items[i].key);
        (void)text_append(programs->text, sizeof(programs->text), "=");
        (void)text_append(programs->text, sizeof(programs->text), versions->items[i].value);
    }
    loop_stop(programs->loop);
}

static void test_versions_are_of_those_that_tell_one(void **state)
{
    struct programs *programs = *state;

    write_program(programs, "own", "test $1 = fingerprint && echo '{\"version\": \"1.2.3\"}'");
    write_program(programs, "fails", "echo '{\"version\": \"1\"}'; exit 1");
    write_program(programs, "none", "echo '{\"version\": \"\"}'");
    write_program(programs, "odd", "echo '{\"version\": 7}'");
    write_program(programs, "much", "yes");
    hosted_look(programs->hosted, note_found, programs);
    loop_run(programs->loop);
    assert_string_equal(programs->text, "own=1.2.3");
}

/* --- programs that hang --- */

static void look_for_file(struct io_timer *timer)
{
    struct programs *programs = timer->ctx;
    char path[PATH_SIZE + 64];

    assert_true(text_format(path, sizeof(path), "%s/%s", programs->plugin.scratch->path,
                            programs->awaited));
    if (access(path, F_OK) == 0)
        loop_stop(programs->loop);
    else
        io_timer_start(programs->loop, timer, loop_now_ms() + 5, look_for_file, programs);
}

static void await_file(struct programs *programs, const char *name)
{
    programs->awaited = name;
    io_timer_start(programs->loop, &programs->tick, loop_now_ms(), look_for_file, programs);
    loop_run(programs->loop);
}

#define HANG "echo $$ > $here/hangs.new; mv $here/hangs.new $here/hangs; exec sleep 600"

/* Its second call, which would hang, too, waits for the first; all others go on. */
static void test_program_that_hangs_keeps_nobody_else_waiting(void **state)
{
    struct programs *programs = *state;

    write_program(programs, "hangs", HANG);
    write_program(programs, "own", "echo '{\"path\": \"/made\"}'");
    ask_program(programs, "hangs", false);
    ask_program(programs, "hangs", true);
    ask_program(programs, "hangs", false);
    await_file(programs, "hangs");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(call_program(programs, "own", false), 0);
        assert_int_equal(call_program(programs, "mkdir", false), ERR_INVALID); /* of parameters */
        assert_int_equal(call_program(programs, "", true), ERR_GONE);          /* of the path */
    }
}

/* The daemon does not wait for it, and leaves nothing of it behind. */
static void test_program_that_hangs_ends_with_the_daemon(void **state)
{
    struct programs *programs = *state;
    char pid[4096];

    write_program(programs, "hangs", "sleep 600 & " HANG);
    ask_program(programs, "hangs", false);
    ask_program(programs, "hangs", false);
    programs->wanted = 1;
    await_file(programs, "hangs");
    read_text(programs, "hangs", pid);
    hosted_free(programs->hosted);
    programs->hosted = NULL;
    loop_free(programs->loop); /* waits for its pool */
    assert_int_equal(programs->answers, 0);
    assert_int_equal(kill((pid_t)strtol(pid, NULL, 10), 0), -1);
    assert_int_equal(errno, ESRCH);
    programs->loop = loop_new();
    new_hosted(programs);
}

#define PROGRAMS_TEST(function)                                                                    \
    cmocka_unit_test_setup_teardown(function, set_up_programs, tear_down_programs)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_volume_is_made_once_and_deleted_with_what_it_holds,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_a_crash_left_is_gone_on_with, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_parameters_make_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_id_that_is_a_way_out_is_refused, set_up, tear_down),
        PROGRAMS_TEST(test_program_is_told_what_is_wanted_and_nothing_else),
        PROGRAMS_TEST(test_what_programs_say_is_judged),
        PROGRAMS_TEST(test_only_programs_of_the_directory_are_plugins),
        PROGRAMS_TEST(test_versions_are_of_those_that_tell_one),
        PROGRAMS_TEST(test_program_that_hangs_keeps_nobody_else_waiting),
        PROGRAMS_TEST(test_program_that_hangs_ends_with_the_daemon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
