/*
 * java: what is found of it, and what it is run with.  A script stands in for the Java machine;
 * where there is a real one, it is asked, too.
 */
#include "test/drivers/room.h"

static const char answers_as_openjdk[] =
    "if [ \"$1\" = -version ]; then\n"
    "  echo 'openjdk version \"17.0.13\" 2024-10-15' >&2\n"
    "  echo 'OpenJDK Runtime Environment (build 17.0.13+11-Debian-2deb12u1)' >&2\n"
    "  echo 'OpenJDK 64-Bit Server VM (build 17.0.13+11-Debian-2deb12u1, mixed mode)' >&2\n"
    "  exit 0\n"
    "fi\n"
    "echo \"$*\" > /seen\n";

static char path_before[4096];

/* The first java of the PATH is a script of TEXT; NULL: there is none. */
static void stand_in(struct room *room, const char *text)
{
    char directory[PATH_SIZE], path[PATH_SIZE], whole[PATH_SIZE + 4096];

    assert_int_equal(path_join(directory, room->path, "jvm"), 0);
    assert_int_equal(path_join(path, directory, "java"), 0);
    assert_true(mkdir(directory, 0755) == 0 || errno == EEXIST);
    assert_true(unlink(path) == 0 || errno == ENOENT);
    if (text != NULL) {
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

        assert_true(fd >= 0);
        assert_int_equal(dprintf(fd, "#!/bin/sh\n%s", text), 10 + (int)strlen(text));
        assert_return_code(close(fd), 0);
    }
    assert_true(text_format(whole, sizeof(whole), "relative:%s", directory));
    assert_return_code(setenv("PATH", whole, 1), 0);
    room->java.disabled = false;
}

static struct driver_info java_of(const struct room *room)
{
    struct driver_info infos[DRIVERS_MAX];
    size_t count = drivers_list(room->drivers, infos, COUNT_OF(infos));

    for (size_t i = 0; i < count; i++) {
        if (text_equal(infos[i].name, "java"))
            return infos[i];
    }
    fail_msg("no driver java");
    return infos[0];
}

/* Opens the room and lets java be looked for. */
static struct driver_info look_for(struct room *room)
{
    if (room->drivers != NULL)
        room_close(room);
    room_open(room);
    assert_string_equal(java_of(room).description, "not known yet");
    room_await_change(room);
    return java_of(room);
}

static void assert_refused(const char *config, const char *why)
{
    struct task_spec task = {
        .name = "web", .driver = "java", .user = "", .config_json = config, .kill_signal = ""};
    struct err err = {0};

    assert_int_equal(driver_validate(NULL, &in_host, &task, &err), ERR_INVALID);
    if (strstr(err.text, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void test_config_that_is_wrong_is_refused_with_the_reason(void **state)
{
    (void)state;
    assert_refused("{}", "java: \"jar_path\" or \"class\" is required");
    assert_refused("{\"class\": \"\"}", "is required");
    assert_refused("{\"class\": \"a\", \"jvm_options\": \"-Xmx1m\"}", "must be a list of strings");
    assert_refused("{\"class\": \"a\", \"pid_mode\": \"none\"}", "java: \"pid_mode\" must be");
    assert_refused("{\"class\": \"a\", \"cap_add\": [\"fly\"]}", "java: cap_add: this machine");
    assert_refused("{\"class\": \"a\", \"command\": \"b\"}", "unknown key \"command\"");
}

static void test_what_java_says_of_itself_are_attributes(void **state)
{
    struct room *room = *state;

    room_need_root();
    stand_in(room, answers_as_openjdk);
    struct driver_info info = look_for(room);
    assert_true(info.detected && info.healthy);
    assert_int_equal(info.attributes_count, 3);
    assert_string_equal(info.attributes[0].name, "driver.java.version");
    assert_string_equal(info.attributes[0].value, "17.0.13");
    assert_string_equal(info.attributes[1].name, "driver.java.runtime");
    assert_string_equal(info.attributes[1].value,
                        "OpenJDK Runtime Environment (build 17.0.13+11-Debian-2deb12u1)");
    assert_string_equal(info.attributes[2].name, "driver.java.vm");
    assert_string_equal(info.attributes[2].value,
                        "OpenJDK 64-Bit Server VM (build 17.0.13+11-Debian-2deb12u1, mixed mode)");

    stand_in(room, "echo 'Picked up _JAVA_OPTIONS: -Xmx64m'; echo 'java version \"1.8.0_36\"'; "
                   "echo runtime; echo vm\n");
    info = look_for(room);
    assert_string_equal(info.attributes[0].value, "1.8.0_36");
    assert_string_equal(info.attributes[2].value, "vm");
    stand_in(room, "echo anything\n");
    info = look_for(room);
    assert_true(info.healthy);
    assert_int_equal(info.attributes_count, 0);
}

static void test_java_that_is_not_there_or_fails_says_so(void **state)
{
    struct room *room = *state;

    room_need_root();
    stand_in(room, NULL);
    struct driver_info info = look_for(room);
    assert_false(info.detected || info.healthy);
    assert_string_equal(info.description, "no java in the agent's PATH");
    room->task.driver = "java";
    room->task.config_json = "{\"class\": \"Main\"}";
    assert_int_equal(room_start(room, 1), DRIVER_FAILED);
    assert_non_null(strstr(room->result.error.text, "no java in the agent's PATH"));
    room_destroy(room, 1);
    stand_in(room, "exit 3\n");
    assert_non_null(strstr(look_for(room).description, "/jvm/java -version failed"));
    stand_in(room, "kill -9 $$\n");
    assert_non_null(strstr(look_for(room).description, "/jvm/java -version failed"));
    stand_in(room, "while :; do echo more; done\n"); /* it is ended, too */
    assert_non_null(strstr(look_for(room).description, "/jvm/java -version failed"));

    stand_in(room, answers_as_openjdk);
    drivers_look_again(room->drivers);
    room_await_change(room);
    assert_true(java_of(room).healthy);
}

static void test_java_is_asked_again_only_when_it_is_another(void **state)
{
    struct room *room = *state;
    char count[PATH_SIZE + 128], path[PATH_SIZE];

    room_need_root();
    assert_int_equal(path_join(path, room->path, "asked"), 0);
    assert_true(text_format(count, sizeof(count), "echo x >> %s; echo 1; echo 2; echo 3\n", path));
    stand_in(room, count);
    assert_true(look_for(room).healthy);
    drivers_look_again(room->drivers);
    assert_null(room->drivers->probes);
    assert_string_equal(content_of(path), "x\n");
    stand_in(room, NULL);
    drivers_look_again(room->drivers);
    room_await_change(room);
    assert_false(java_of(room).detected);
    drivers_look_again(room->drivers);
    assert_null(room->drivers->probes);
}

static void test_room_closes_while_java_is_asked(void **state)
{
    struct room *room = *state;

    room_need_root();
    stand_in(room, answers_as_openjdk);
    room_open(room);
    room_close(room);
    room_open(room);
}

/* A daemon that died left a task: it is taken up while nobody asks java. */
static void test_java_is_asked_when_what_runs_has_been_taken_up(void **state)
{
    struct room *room = *state;

    room_need_root();
    stand_in(room, answers_as_openjdk);
    room_script(room, "exec sleep 100");
    room_open(room);
    room_start_running(room, 1);
    room_close(room);

    room_open(room);
    assert_null(room->drivers->probes);
    assert_string_equal(java_of(room).description, "not known yet");
    room_await_change(room);
    assert_string_equal(java_of(room).description, "Healthy");
    assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
    room_destroy(room, 1);
}

static void test_program_gets_its_line_in_order_and_a_root_of_its_own(void **state)
{
    static struct spec_pair root[6] = {{"/bin", "/bin"},
                                       {"/lib", "/lib"},
                                       {"/lib64", "/lib64"},
                                       {"/usr", "/usr"},
                                       {"/etc", "/etc"}};
    struct room *room = *state;
    char jvm[PATH_SIZE];

    room_need_root();
    stand_in(room, answers_as_openjdk);
    assert_int_equal(path_join(jvm, room->path, "jvm"), 0);
    root[5] = (struct spec_pair){jvm, jvm};
    room->java = (struct drivers_exec){.allowed_capabilities = driver_default_capabilities,
                                       .root = {root, COUNT_OF(root)}};
    assert_true(look_for(room).healthy);
    assert_return_code(chmod(room->path, 0755), 0);
    room->task.driver = "java";
    room->task.config_json =
        "{\"class\": \"Main\", \"class_path\": \"/local/lib\", \"jar_path\": \"local/a.jar\", "
        "\"jvm_options\": [\"-Xmx64m\", \"-Xms16m\"], \"args\": [\"one two\", \"three\"]}";
    room_start_running(room, 1);
    room_await_exit(room);
    if (room->exit.code != 0)
        fail_msg("exit code %d: %s", room->exit.code, log_file(room, "web.stderr.0"));
    assert_string_equal(task_file(room, "seen"),
                        "-Xmx64m -Xms16m -cp /local/lib -jar local/a.jar Main one two three\n");
    room_destroy(room, 1);
}

static void test_real_java_is_understood(void **state)
{
    struct room *room = *state;

    room_need_root();
    assert_return_code(setenv("PATH", path_before, 1), 0);
    room->java.disabled = false;
    struct driver_info info = look_for(room);
    if (!info.detected) {
        print_message("skipped: %s\n", info.description);
        skip();
    }
    assert_int_equal(info.attributes_count, 3);
    assert_true(info.attributes[0].value[0] >= '0' && info.attributes[0].value[0] <= '9');
}

static int remove_and_restore(void **state)
{
    (void)setenv("PATH", path_before, 1); /* it was there before */
    return room_remove(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_make, remove_and_restore)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_that_is_wrong_is_refused_with_the_reason),
        TEST(test_what_java_says_of_itself_are_attributes),
        TEST(test_java_that_is_not_there_or_fails_says_so),
        TEST(test_java_is_asked_again_only_when_it_is_another),
        TEST(test_room_closes_while_java_is_asked),
        TEST(test_java_is_asked_when_what_runs_has_been_taken_up),
        TEST(test_program_gets_its_line_in_order_and_a_root_of_its_own),
        TEST(test_real_java_is_understood),
    };

    (void)text_copy(path_before, sizeof(path_before), getenv("PATH")); /* an end may be missing */
    return cmocka_run_group_tests_name("java", tests, NULL, NULL);
}
