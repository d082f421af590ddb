/* raw_exec as a user sees it: config, start, output, exit codes, signals, stops, what is left. */
#include "test/drivers/room.h"

#include <pwd.h>

/* --- config --- */

static void assert_refused(const char *config, const char *why)
{
    struct task_spec task = {
        .name = "web", .driver = "raw_exec", .user = "", .config_json = config, .kill_signal = ""};
    struct err err = {0};

    assert_int_equal(driver_validate(NULL, &in_host, &task, &err), ERR_INVALID);
    if (strstr(err.text, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void test_config_that_is_wrong_is_refused_with_the_reason(void **state)
{
    struct task_spec task = {
        .name = "web", .driver = "nope", .user = "", .config_json = "{}", .kill_signal = ""};
    struct err err = {0};

    (void)state;
    assert_refused("", "\"command\" is required");
    assert_refused("{}", "\"command\" is required");
    assert_refused("{\"command\": \"\"}", "\"command\" is required");
    assert_refused("{\"command\": 7}", "\"command\" must be a string");
    assert_refused("{\"command\": \"x\", \"args\": \"y\"}", "\"args\" must be a list");
    assert_refused("{\"command\": \"x\", \"args\": [\"a\", [2]]}", "args[1] must be a string");
    assert_refused("{\"command\": \"x\", \"args\": [null]}", "args[0] must be a string");
    assert_refused("{\"command\": \"x\", \"args\": [1e40]}", "args[0] must be a string");
    assert_refused("{\"command\": \"x\", \"cmd\": \"y\"}", "unknown key \"cmd\"");
    assert_refused("{\"command\": \"x\", \"oom_score_adj\": -1}", "0 to 1000");
    assert_refused("{\"command\": \"x\", \"oom_score_adj\": 1001}", "0 to 1000");
    assert_refused("{\"command\": \"x\", \"cgroup_v2_override\": \"a\"}", "a cgroup of its own");
    assert_refused("{\"command\": \"x\", \"cgroup_v1_override\": []}", "a cgroup of its own");
    assert_refused("{\"command\": \"x\", \"denied_envvars\": \"A\"}", "must be a list");
    assert_refused("[]", "must be a block");
    assert_refused("{", "not valid");
    assert_int_equal(driver_validate(NULL, &in_host, &task, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "unknown driver \"nope\""));
    task.driver = "raw_exec";
    task.config_json = "{\"command\": \"x\", \"args\": [\"a\"]}";
    task.kill_signal = "SIGWHAT";
    assert_int_equal(driver_validate(NULL, &in_host, &task, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "SIGWHAT"));
    task.kill_signal = "SIGTERM";
    assert_int_equal(driver_validate(NULL, &in_host, &task, &err), 0);
}

/* --- starting --- */

static void assert_start_fails(struct room *room, const char *config, const char *why)
{
    static uint32_t generation = 1000;

    room->task.config_json = config;
    generation++;
    assert_int_equal(room_start(room, generation), DRIVER_FAILED);
    if (strstr(room->result.error.text, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", room->result.error.text, why);
    assert_false(room->result.error.recoverable);
    /* The same again, for a daemon that did not hear it. */
    assert_int_equal(room_start(room, generation), DRIVER_FAILED);
    if (strstr(room->result.error.text, why) == NULL)
        fail_msg("the second time \"%s\" does not say \"%s\"", room->result.error.text, why);
    assert_int_equal(room->exits, 0);
    room_destroy(room, generation);
}

static void test_start_that_fails_says_why_each_time(void **state)
{
    struct room *room = *state;
    char script[PATH_SIZE];

    room_need_root();
    room_open(room);
    assert_start_fails(room, "{\"command\": \"no-such-program\"}",
                       "command \"no-such-program\" not found");
    assert_start_fails(room, "{\"command\": \"/etc/passwd\"}", "Permission denied");
    assert_start_fails(room, "{\"command\": \"/nowhere/x\"}", "command \"/nowhere/x\" not found");
    assert_start_fails(room, "{\"command\": 1}", "must be a string");

    assert_int_equal(path_join(script, room->task_dir, "script"), 0);
    int fd = open(script, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, "#!/nowhere/sh\n", 14), 14);
    assert_return_code(close(fd), 0);
    assert_start_fails(room, "{\"command\": \"script\"}", "interpreter");

    room->task.user = "no-such-user";
    assert_start_fails(room, "{\"command\": \"/bin/true\"}", "no user \"no-such-user\"");
}

static void test_start_refuses_keys_that_are_no_names(void **state)
{
    struct room *room = *state;
    struct driver_start start;

    room_need_root();
    room_open(room);
    room_script(room, "true");
    start = room_start_of(room, 1);
    (void)text_copy(start.key.task, sizeof(start.key.task), "../../x");
    driver_start(room->drivers, &start, room_on_done, room);
    room_run(room, 1, 0);
    assert_int_equal(room->result.outcome, DRIVER_FAILED);
    assert_int_equal(room->result.error.code, ERR_INVALID);
}

static void test_payload_gets_what_it_was_promised(void **state)
{
    struct room *room = *state;
    char expected[PATH_SIZE + 256];

    room_need_root();
    room_open(room);
    room_script(room,
                "pwd > seen; env | grep -vE '^(PWD|SHLVL|_|OLDPWD)=' | sort >> seen; umask >> seen;"
                "ls /proc/self/fd | tr -d '[:space:]' >> seen;" /* 3: what ls reads */
                "echo >> seen; cat /proc/self/oom_score_adj >> seen;"
                "grep -E '^Sig(Blk|Ign)' /proc/$$/status | tr -d '[:space:]' >> seen;"
                "echo >> seen; cut -d' ' -f5 /proc/$$/stat | grep -c ^$$'$' >> seen;"
                "readlink /proc/$$/fd/0 >> seen");
    room_start_running(room, 1);
    room_await_exit(room);
    assert_int_equal(room->exit.code, 0);
    assert_true(text_format(expected, sizeof(expected),
                            "%s\nGREETING=hello there\nPATH=/usr/bin:/bin\n0022\n0123\n0\n"
                            "SigBlk:0000000000000000SigIgn:0000000000000000\n1\n/dev/null\n",
                            room->task_dir));
    assert_string_equal(task_file(room, "seen"), expected);
    room_destroy(room, 1);
}

static void test_arguments_may_be_numbers_and_truths(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room->task.config_json =
        "{\"command\": \"/bin/sh\", \"args\": [\"-c\", \"echo $* > seen\", \"sh\", 8080, -1, true, "
        "false, 0.1, 2.0, 9007199254740993]}";
    room_start_running(room, 1);
    room_await_exit(room);
    assert_string_equal(task_file(room, "seen"), "8080 -1 true false 0.1 2 9007199254740993\n");
    room_destroy(room, 1);
}

static void test_payload_is_alone_in_its_cgroup_and_shim_in_another(void **state)
{
    struct room *room = *state;
    char cgroup[CGROUP_NAME_SIZE], expected[CGROUP_NAME_SIZE + 4], path[64];

    room_need_root();
    room_open(room);
    room_script(room, "cat /proc/self/cgroup > seen; exec sleep 100");
    room_start_running(room, 3);
    await_task_file(room, "seen");
    room_cgroup(room, 3, cgroup);
    assert_true(text_format(expected, sizeof(expected), "/%s\n", cgroup));
    assert_non_null(strstr(task_file(room, "seen"), expected));
    assert_true(text_format(path, sizeof(path), "/proc/%d/cgroup", room->result.shim.pid));
    assert_null(strstr(content_of(path), expected));
    assert_true(text_format(expected, sizeof(expected), "/cairn/%s/shims\n", room->node_mark));
    assert_non_null(strstr(content_of(path), expected));
    room_destroy(room, 3);
    room_run(room, 0, 1); /* it was reported as running, so its end is told */
    assert_int_equal(room->exit.signal, SIGKILL);
}

static void test_command_is_found_in_the_task_before_the_path(void **state)
{
    struct room *room = *state;
    char path[PATH_SIZE];
    struct err err = {0};
    struct stat status;

    room_need_root();
    room_open(room);
    assert_int_equal(path_join(path, room->task_dir, "local"), 0);
    assert_int_equal(directory_make_all(path, 0755, &err), 0);
    assert_int_equal(path_join(path, room->task_dir, "local/true"), 0);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644); /* not yet executable */
    assert_int_equal(write(fd, "#!/bin/sh\nexit 7\n", 17), 17);
    assert_return_code(close(fd), 0);
    room->task.config_json = "{\"command\": \"true\"}";
    room_start_running(room, 1);
    room_await_exit(room);
    assert_int_equal(room->exit.code, 7);
    assert_return_code(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
    room_destroy(room, 1);

    assert_return_code(unlink(path), 0);
    room_start_running(room, 2); /* the one in PATH */
    room_await_exit(room);
    assert_int_equal(room->exit.code, 0);
    room_destroy(room, 2);
}

static void test_payload_runs_as_its_user(void **state)
{
    struct room *room = *state;
    char expected[256];
    struct passwd *user = getpwnam("nobody");

    room_need_root();
    if (user == NULL) {
        print_message("skipped: no user nobody\n");
        skip();
    }
    room_open(room);
    assert_return_code(chmod(room->path, 0755), 0);
    assert_return_code(chmod(room->task_dir, 0777), 0);
    room_script(room, "id -u > seen; id -g >> seen; id -G >> seen");
    room->task.user = "nobody";
    room_start_running(room, 1);
    room_await_exit(room);
    assert_int_equal(room->exit.code, 0);
    (void)text_format(expected, sizeof(expected), "%u\n%u\n%u\n", user->pw_uid, user->pw_gid,
                      user->pw_gid);
    assert_string_equal(task_file(room, "seen"), expected);
    room_destroy(room, 1);
}

static void test_start_twice_under_one_key_gives_one_payload(void **state)
{
    struct room *room = *state;
    struct driver_start start;
    struct proc_identity payload;

    room_need_root();
    room_open(room);
    room_script(room, "echo x >> started; exec sleep 100");
    start = room_start_of(room, 1);
    driver_start(room->drivers, &start, room_on_done, room);
    driver_start(room->drivers, &start, room_on_done, room); /* before the first has completed */
    room_run(room, 2, 0);
    assert_int_equal(room->result.outcome, DRIVER_RUNNING);
    payload = room->result.payload;
    assert_int_equal(room_start(room, 1), DRIVER_RUNNING); /* and after */
    assert_int_equal(room->result.payload.pid, payload.pid);
    await_task_file(room, "started");
    assert_string_equal(task_file(room, "started"), "x\n");
    room_destroy(room, 1);
    assert_string_equal(task_file(room, "started"), "x\n");
}

static void test_many_short_tasks_leave_nothing(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    for (uint32_t i = 1; i <= 100; i++) {
        struct driver_start start;

        room_script(room, i % 2 == 0 ? "exit 3" : "exit 0");
        start = room_start_of(room, i);
        driver_start(room->drivers, &start, room_on_done, room);
    }
    room_run(room, 100, 100);
    for (uint32_t i = 1; i <= 100; i++) {
        struct driver_key key = room_key(room, i);

        driver_destroy(room->drivers, &key, room_on_done, room);
    }
    room_run(room, 200, 0);
    assert_int_equal(room->exits, 100); /* room_remove looks for the rest */
}

/* --- how it ends --- */

static void test_exit_codes_and_signals_are_true(void **state)
{
    static const struct {
        const char *script;
        int code, signal;
    } cases[] = {{"exit 0", 0, 0},
                 {"exit 3", 3, 0},
                 {"exit 255", 255, 0},
                 {"kill -TERM $$", 128 + SIGTERM, SIGTERM},
                 {"kill -KILL $$", 128 + SIGKILL, SIGKILL}};
    struct room *room = *state;

    room_need_root();
    room_open(room);
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        room_script(room, cases[i].script);
        room_start_running(room, i);
        room_run(room, 0, (int)i + 1);
        assert_true(room->exit.known);
        assert_int_equal(room->exit.code, cases[i].code);
        assert_int_equal(room->exit.signal, cases[i].signal);
        assert_true(room->exit.finished_unix_ns > 0);
        assert_string_equal(room->exit.message, "");
        room_destroy(room, i);
    }
    assert_int_equal(room->exits, (int)COUNT_OF(cases));
}

static void test_stop_sends_the_signal_and_keeps_the_code(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_script(room, "trap 'exit 42' INT; echo x > ready; while :; do sleep 0.01; done");
    room_start_running(room, 1);
    await_task_file(room, "ready");
    assert_int_equal(room_stop(room, 1, "", 60000), DRIVER_DONE); /* SIGINT unless told otherwise */
    room_run(room, 0, 1);
    assert_int_equal(room->exit.code, 42);
    assert_int_equal(room->exit.signal, 0);
    assert_int_equal(room_stop(room, 1, "", 60000), DRIVER_DONE); /* nothing left to do */
    room_destroy(room, 1);
}

static void test_stop_with_unknown_signal_fails(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_script(room, "exec sleep 100");
    room_start_running(room, 1);
    assert_int_equal(room_stop(room, 1, "SIGWHAT", 1000), DRIVER_FAILED);
    assert_non_null(strstr(room->result.error.text, "SIGWHAT"));
    assert_int_equal(room_signal(room, 1, "WHAT"), DRIVER_FAILED);
    assert_true(proc_is_alive(&room->result.shim) || room->exits == 0);
    room_destroy(room, 1);
}

static void test_stop_ignored_kills_everything_at_the_timeout(void **state)
{
    struct room *room = *state;
    char cgroup[CGROUP_NAME_SIZE];
    struct err err = {0};

    room_need_root();
    room_open(room);
    /* A grandchild in a session of its own ignores it, too, and holds the pipes. */
    room_script(room, "trap '' INT; (trap '' INT TERM HUP; setsid sleep 100 &) ; echo x > ready;"
                      "while :; do sleep 100; done");
    room_start_running(room, 1);
    await_task_file(room, "ready");
    assert_int_equal(room_stop(room, 1, "", 3600000), DRIVER_DONE);
    assert_int_equal(room->exits, 0);
    assert_int_equal(room_stop(room, 1, "", 50), DRIVER_DONE);      /* shortens */
    assert_int_equal(room_stop(room, 1, "", 3600000), DRIVER_DONE); /* does not lengthen */
    room_run(room, 0, 1);
    assert_int_equal(room->exit.signal, SIGKILL);
    assert_int_equal(room->exit.code, 128 + SIGKILL);
    room_cgroup(room, 1, cgroup);
    for (int i = 0; i < PATIENCE_MS && cgroup_populated(room->cgroup_mode, cgroup, &err) == 1; i++)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* signalled, and dying */
    assert_int_equal(cgroup_populated(room->cgroup_mode, cgroup, &err), 0);
    room_destroy(room, 1);
}

/* The completion of a stop that races with a start, whose own may come before or after. */
static void on_stopped(void *ctx, const struct driver_result *result)
{
    if (result->outcome != DRIVER_DONE)
        print_message("stop: %d %s\n", result->outcome, result->error.text);
    assert_int_equal(result->outcome, DRIVER_DONE);
    room_on_done(ctx, result);
}

static void test_stop_racing_with_the_natural_end_gives_the_true_code(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_script(room, "trap 'exit 9' INT; exit 9");
    for (uint32_t i = 1; i <= 60; i++) {
        struct driver_start start = room_start_of(room, i);
        struct driver_key key = room_key(room, i);
        int before = room->completions;

        driver_start(room->drivers, &start, room_on_done, room);
        if (i % 3 != 0)
            room_run(room, before + 1, 0);
        driver_stop(room->drivers, &key, i % 2 == 0 ? "SIGCONT" : "SIGWINCH", 60000, on_stopped,
                    room);
        room_run(room, before + 2, (int)i);
        assert_true(room->exit.known);
        assert_int_equal(room->exit.code, 9);
        assert_int_equal(room->exits, (int)i);
        room_destroy(room, i);
    }
}

static void test_signal_reaches_the_main_process(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_script(room, "trap 'echo got > signalled' USR1; echo x > ready; while :; do sleep 0.01; "
                      "done");
    assert_int_equal(room_signal(room, 1, "SIGUSR1"), DRIVER_FAILED); /* nothing runs */
    room_start_running(room, 1);
    await_task_file(room, "ready");
    assert_int_equal(room_signal(room, 1, "SIGUSR1"), DRIVER_DONE);
    await_task_file(room, "signalled");
    room_destroy(room, 1);
}

static void test_signal_of_one_number_is_sent_once(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_script(room, "trap 'echo got >> signalled' USR1; trap 'cp signalled until' USR2;"
                      "echo x > ready; while :; do sleep 0.01; done");
    room_start_running(room, 1);
    await_task_file(room, "ready");
    assert_int_equal(room_signal_once(room, 1, "SIGUSR1", 7), DRIVER_DONE);
    await_task_file(room, "signalled");
    assert_int_equal(room_signal_once(room, 1, "SIGUSR1", 7), DRIVER_DONE);
    assert_int_equal(room_signal_once(room, 1, "10", 7), DRIVER_DONE);
    assert_int_equal(room_signal_once(room, 1, "SIGUSR2", 7), DRIVER_DONE); /* another one is */
    await_task_file(room, "until");
    assert_string_equal(task_file(room, "until"), "got\n");
    room_destroy(room, 1);
}

static void test_destroy_of_what_never_was_is_done(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_destroy(room, 77);
    assert_int_equal(room->exits, 0);
}

static void test_without_cgroups_the_process_group_is_killed(void **state)
{
    struct room *room = *state;

    room_need_root();
    room->no_cgroups = true;
    room_open(room);
    room_script(room, "sleep 100 & echo $! > child; wait");
    room_start_running(room, 1);
    await_task_file(room, "child");
    struct proc_identity child;
    struct err err = {0};
    assert_int_equal(proc_identify(number_in(task_file(room, "child")), &child, &err), 0);
    assert_int_equal(room_stop(room, 1, "SIGKILL", 60000), DRIVER_DONE); /* of the leader alone */
    room_run(room, 0, 1);
    assert_int_equal(room->exit.signal, SIGKILL);
    for (int i = 0; i < PATIENCE_MS && proc_is_alive(&child); i++)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_false(proc_is_alive(&child));
    room_destroy(room, 1);
}

static void test_stats_count_the_payload(void **state)
{
    struct room *room = *state;
    struct driver_key key = room_key(room, 1);
    struct driver_stats stats;
    struct err err = {0};

    room_need_root();
    room_open(room);
    assert_int_equal(driver_stats(room->drivers, &key, &stats, &err), ERR_GONE);
    room_script(room, "echo x > ready; while :; do :; done");
    room_start_running(room, 1);
    await_task_file(room, "ready");
    assert_int_equal(driver_stats(room->drivers, &key, &stats, &err), 0);
    assert_true(stats.usage.memory_rss_bytes > 0);
    assert_int_equal(stats.usage.processes, 1);
    assert_true(stats.cpu_percent >= 0 && stats.cpu_percent <= 0); /* nothing to compare with */
    uint64_t until_ms = loop_now_ms() + 10000; /* a busy machine may let it wait */
    do
        assert_int_equal(driver_stats(room->drivers, &key, &stats, &err), 0);
    while (stats.cpu_percent <= 0 && loop_now_ms() < until_ms);
    assert_true(stats.cpu_percent > 0);
    room_destroy(room, 1);
}

static void test_payload_gets_its_oom_score_and_not_what_is_denied(void **state)
{
    struct room *room = *state;
    char config[512];

    room_need_root();
    room->denied_env = "NODE_*, OTHER";
    room->env[2] = (struct spec_pair){"NODE_SECRET", "1"};
    room->env[3] = (struct spec_pair){"TASK_SECRET", "2"};
    room->env[4] = (struct spec_pair){"SECRET_TASK", "3"};
    room->env_count = 5;
    room_open(room);
    assert_true(text_format(config, sizeof(config),
                            "{\"command\": \"/bin/sh\", \"args\": [\"-c\", \"echo $(cat "
                            "/proc/self/oom_score_adj) $GREETING $NODE_SECRET $TASK_SECRET "
                            "$SECRET_TASK > seen\"], \"oom_score_adj\": 321, "
                            "\"denied_envvars\": [\"TASK_*\"]}"));
    room->task.config_json = config;
    room_start_running(room, 1);
    room_await_exit(room);
    assert_string_equal(task_file(room, "seen"), "321 hello there 3\n");
    room_destroy(room, 1);
}

static void assert_user(struct room *room, const char *user, const char *why)
{
    static uint32_t generation = 3000;

    room->task.user = user;
    room_script(room, "true");
    enum driver_outcome outcome = room_start(room, ++generation);
    if (why == NULL) {
        assert_true(outcome == DRIVER_RUNNING || outcome == DRIVER_EXITED);
    } else {
        assert_int_equal(outcome, DRIVER_FAILED);
        assert_string_equal(room->result.error.text, why);
        assert_false(room->result.error.recoverable);
    }
    room_destroy(room, generation);
}

static void test_users_that_the_node_denies_run_nothing(void **state)
{
    struct room *room = *state;

    room_need_root();
    room->denied = (struct drivers_denied){.uids = "1, 60000-70000"};
    room_open(room);
    assert_user(room, "nobody", "running as uid 65534 is disallowed");
    assert_user(room, "daemon", "running as uid 1 is disallowed");
    assert_user(room, "bin", NULL);
    assert_user(room, "", NULL);
    room_close(room);
    room->denied = (struct drivers_denied){.uids = "0", .gids = "2"};
    room_open(room);
    assert_user(room, "", "running as uid 0 is disallowed");
    assert_user(room, "root", "running as uid 0 is disallowed");
    assert_user(room, "bin", "running as gid 2 is disallowed");
    assert_user(room, "daemon", NULL);
}

static void test_ranges_of_ids_are_checked(void **state)
{
    (void)state;
    assert_null(driver_ids_fault(""));
    assert_null(driver_ids_fault("0"));
    assert_null(driver_ids_fault("0, 5-7,4294967295"));
    assert_non_null(driver_ids_fault("7-5"));
    assert_non_null(driver_ids_fault("-5"));
    assert_non_null(driver_ids_fault("5-"));
    assert_non_null(driver_ids_fault("root"));
    assert_non_null(driver_ids_fault("1,,2"));
    assert_non_null(driver_ids_fault("4294967296"));
}

static struct driver_info info_of(const struct room *room, const char *name)
{
    struct driver_info infos[DRIVERS_MAX];
    size_t count = drivers_list(room->drivers, infos, COUNT_OF(infos));

    for (size_t i = 0; i < count; i++) {
        if (text_equal(infos[i].name, name))
            return infos[i];
    }
    fail_msg("no driver %s", name);
    return infos[0];
}

static void test_list_tells_health(void **state)
{
    struct room *room = *state;
    struct driver_info info;

    room_need_root();
    room_open(room);
    info = info_of(room, "raw_exec");
    assert_true(info.detected && info.healthy);
    assert_true(info_of(room, "exec").healthy);
    room_close(room);
    (void)text_copy(room->shim, sizeof(room->shim), "/nowhere/cairn-shim");
    room_open(room);
    info = info_of(room, "raw_exec");
    assert_true(info.detected);
    assert_false(info.healthy);
    room_script(room, "true");
    assert_int_equal(room_start(room, 1), DRIVER_FAILED);
    assert_non_null(strstr(room->result.error.text, "/nowhere/cairn-shim"));
    assert_true(room->result.error.recoverable);
    room_destroy(room, 1);
}

/* --- while a shim is being made --- */

static void test_what_is_asked_meanwhile_waits_for_the_shim(void **state)
{
    struct room *room = *state;
    struct driver_key key = room_key(room, 1);

    room_need_root();
    room_open(room);
    room_script(room, "trap 'exit 0' INT; while :; do sleep 0.01; done");
    struct driver_start start = room_start_of(room, 1);
    driver_start(room->drivers, &start, room_on_done, room);
    driver_stop(room->drivers, &key, "SIGKILL", 0, room_on_done, room);
    room_run(room, 2, 1); /* it was reported, and so was its end */
    room_destroy(room, 1);

    start = room_start_of(room, 2);
    key = room_key(room, 2);
    driver_start(room->drivers, &start, room_on_done, room);
    driver_destroy(room->drivers, &key, room_on_done, room);
    room_run(room, room->completions + 2, 0);
    assert_int_equal(room->result.outcome, DRIVER_DONE);
    assert_int_equal(room_recover(room, 2), DRIVER_LOST); /* nothing is left of it */
}

static void test_room_that_closes_meanwhile_leaves_the_shim_to_be_found(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_script(room, "echo x >> begun; exec sleep 100");
    struct driver_start start = room_start_of(room, 1);
    driver_start(room->drivers, &start, room_on_done, room);
    room_close(room);
    await_task_file(room, "begun");

    room_open(room);
    assert_int_equal(room_start(room, 1), DRIVER_RUNNING);
    assert_string_equal(task_file(room, "begun"), "x\n");
    room_destroy(room, 1);
}

static void test_shim_that_cannot_be_made_fails_this_start_only(void **state)
{
    struct room *room = *state;
    char program[PATH_SIZE];

    room_need_root();
    (void)text_copy(program, sizeof(program), room->shim); /* fits */
    assert_int_equal(path_join(room->shim, room->path, "cairn-shim"), 0);
    assert_return_code(symlink(program, room->shim), 0);
    room_open(room);
    room_script(room, "exec sleep 100");
    assert_return_code(unlink(room->shim), 0);
    assert_int_equal(room_start(room, 1), DRIVER_FAILED);
    assert_non_null(strstr(room->result.error.text, "could not run it"));
    assert_true(room->result.error.recoverable);
    assert_return_code(symlink(program, room->shim), 0);
    room_start_running(room, 1);
    room_destroy(room, 1);
}

static void test_more_starts_than_are_made_at_once_all_begin(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_script(room, "exec sleep 100");
    for (uint32_t generation = 1; generation <= BIRTHS_MAX * 2; generation++) {
        struct driver_start start = room_start_of(room, generation);

        (void)text_format(start.key.task, sizeof(start.key.task), "web%u", generation); /* fits */
        driver_start(room->drivers, &start, room_on_done, room);
    }
    room_run(room, BIRTHS_MAX * 2, 0);
    for (uint32_t generation = 1; generation <= BIRTHS_MAX * 2; generation++) {
        struct driver_key key = room_key(room, generation);

        (void)text_format(key.task, sizeof(key.task), "web%u", generation); /* fits */
        driver_destroy(room->drivers, &key, room_on_done, room);
    }
    room_run(room, room->completions + BIRTHS_MAX * 2, BIRTHS_MAX * 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_make_on, room_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_that_is_wrong_is_refused_with_the_reason),
        TEST(test_start_that_fails_says_why_each_time),
        TEST(test_start_refuses_keys_that_are_no_names),
        TEST(test_payload_gets_what_it_was_promised),
        TEST(test_arguments_may_be_numbers_and_truths),
        TEST(test_payload_is_alone_in_its_cgroup_and_shim_in_another),
        TEST(test_command_is_found_in_the_task_before_the_path),
        TEST(test_payload_runs_as_its_user),
        TEST(test_start_twice_under_one_key_gives_one_payload),
        TEST(test_what_is_asked_meanwhile_waits_for_the_shim),
        TEST(test_room_that_closes_meanwhile_leaves_the_shim_to_be_found),
        TEST(test_shim_that_cannot_be_made_fails_this_start_only),
        TEST(test_more_starts_than_are_made_at_once_all_begin),
        TEST(test_many_short_tasks_leave_nothing),
        TEST(test_exit_codes_and_signals_are_true),
        TEST(test_stop_sends_the_signal_and_keeps_the_code),
        TEST(test_stop_with_unknown_signal_fails),
        TEST(test_stop_ignored_kills_everything_at_the_timeout),
        TEST(test_stop_racing_with_the_natural_end_gives_the_true_code),
        TEST(test_signal_reaches_the_main_process),
        TEST(test_signal_of_one_number_is_sent_once),
        TEST(test_destroy_of_what_never_was_is_done),
        TEST(test_without_cgroups_the_process_group_is_killed),
        TEST(test_stats_count_the_payload),
        TEST(test_payload_gets_its_oom_score_and_not_what_is_denied),
        TEST(test_users_that_the_node_denies_run_nothing),
        cmocka_unit_test(test_ranges_of_ids_are_checked),
        TEST(test_list_tells_health),
    };

    room_mode = cgroup_mode();
    int failed = cmocka_run_group_tests_name("raw_exec", tests, NULL, NULL);
    return room_tries_v1()
               ? failed + cmocka_run_group_tests_name("raw_exec on v1", tests, NULL, NULL)
               : failed;
}
