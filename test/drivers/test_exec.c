/* exec as a payload sees it from inside: what it can see, signal, mount, open and exhaust. */
#include "test/drivers/room.h"

#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

/* As a node that is configured for nothing else. */
static struct spec_pair host_directories[] = {
    {"/bin", "/bin"},     {"/etc", "/etc"},         {"/lib", "/lib"},
    {"/lib64", "/lib64"}, {"/no/such", "/no/such"}, {"/usr", "/usr"},
};

static void open_exec(struct room *room)
{
    room_need_root();
    room->task.driver = "exec";
    room->exec = (struct drivers_exec){
        .allowed_capabilities = driver_default_capabilities,
        .root = {host_directories, COUNT_OF(host_directories)},
    };
    room_open(room);
    assert_return_code(chmod(room->path, 0755), 0);
}

/* The task's directory as hook task_dir makes it for a user. */
static void give_to_nobody(struct room *room)
{
    struct host_user nobody;

    assert_int_equal(host_user_find("nobody", &nobody, NULL), 0);
    assert_return_code(chown(room->task_dir, nobody.uid, nobody.gid), 0);
    room->task.user = "nobody";
}

/* Runs SCRIPT to its end and sees it succeed; what it wrote to "seen" is returned. */
static const char *look(struct room *room, const char *script)
{
    static uint32_t generation = 100;

    room_script(room, script);
    room_start_running(room, ++generation);
    room_await_exit(room);
    if (room->exit.code != 0)
        fail_msg("exit code %d of: %s; it said: %s", room->exit.code, script,
                 log_file(room, "web.stderr.0"));
    room_destroy(room, generation);
    return task_file(room, "seen");
}

static void assert_start_fails(struct room *room, const char *why)
{
    static uint32_t generation = 1000;

    assert_int_equal(room_start(room, ++generation), DRIVER_FAILED);
    if (strstr(room->result.error.text, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", room->result.error.text, why);
    room_destroy(room, generation);
}

static int count_mounts_below(const char *path)
{
    const char *table = content_of("/proc/self/mountinfo");
    int count = 0;

    for (const char *at = table; (at = strstr(at, path)) != NULL; at++)
        count++;
    return count;
}

/* --- config --- */

static void assert_refused(const char *config, const char *why)
{
    struct task_spec task = {
        .name = "web", .driver = "exec", .user = "", .config_json = config, .kill_signal = ""};
    struct err err = {0};

    assert_int_equal(driver_validate(NULL, &in_host, &task, &err), ERR_INVALID);
    if (strstr(err.text, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void test_config_that_is_wrong_is_refused_with_the_reason(void **state)
{
    (void)state;
    assert_refused("{}", "exec: \"command\" is required");
    assert_refused("{\"command\": \"x\", \"pid_mode\": \"none\"}", "\"private\" or \"host\"");
    assert_refused("{\"command\": \"x\", \"ipc_mode\": 1}", "\"ipc_mode\" must be a string");
    assert_refused("{\"command\": \"x\", \"cap_add\": [\"fly\"]}", "no capability \"fly\"");
    assert_refused("{\"command\": \"x\", \"cap_drop\": \"all\"}", "must be a list of strings");
    assert_refused("{\"command\": \"x\", \"work_dir\": \"local\"}", "absolute path");
    assert_refused("{\"command\": \"x\", \"image\": \"y\"}", "unknown key \"image\"");
}

/* What it is going to be is judged when the task starts. */
static void test_config_that_is_not_interpolated_yet_is_taken(void **state)
{
    static const char config[] =
        "{\"command\": \"x\", \"work_dir\": \"${NOMAD_TASK_DIR}/a\", \"pid_mode\": \"${meta.pid}\","
        " \"cap_add\": [\"${meta.cap}\", \"chown\"]}";
    static const char mock_config[] =
        "{\"run_for\": \"${NOMAD_META_for}\", \"exit_code\": \"${NOMAD_META_code}\","
        " \"start_error_recoverable\": \"${meta.b}\"}";
    struct task_spec task = {
        .name = "web", .driver = "exec", .user = "", .config_json = config, .kill_signal = ""};
    struct err err = {0};
    struct command command;

    (void)state;
    assert_int_equal(driver_validate(NULL, &in_host, &task, &err), 0);
    assert_int_equal(command_read(&exec_driver, &task, &command, &err), ERR_INVALID);
    task.driver = "mock_driver";
    task.config_json = mock_config;
    assert_int_equal(driver_validate(NULL, &in_host, &task, &err), 0);
    assert_int_equal(command_read(&mock_driver, &task, &command, &err), ERR_INVALID);
    assert_refused("{\"command\": \"x\", \"cap_add\": [\"${meta.cap}\", \"fly\"]}", "\"fly\"");
}

static void test_its_kind_is_what_hooks_make_its_tasks_ready_by(void **state)
{
    const struct spec_driver *exec = driver_kind(NULL, "exec"),
                             *raw = driver_kind(NULL, "raw_exec");

    (void)state;
    assert_int_equal(exec->isolation, ISOLATION_CHROOT);
    assert_true(exec->checks_user);
    assert_string_equal(exec->user, "nobody");
    assert_int_equal(raw->isolation, ISOLATION_NONE);
    assert_false(raw->checks_user);
    assert_string_equal(raw->user, "");
    assert_null(driver_kind(NULL, "abacus"));
}

static void test_what_a_kind_of_driver_cannot_do_is_refused_by_name(void **state)
{
    const struct spec_driver kind = {.name = "abacus", .isolation = ISOLATION_NONE, .user = ""};
    struct spec_driver able = kind;
    struct spec_template template = {.change = SPEC_CHANGE_RESTART};
    struct task_spec task = {.name = "web", .templates = &template, .templates_count = 1};
    struct err err = {0};

    (void)state;
    able.signals = able.runs_commands = true;
    assert_int_equal(driver_check_kind(&kind, &in_host, &task, &err), 0);
    template.change = SPEC_CHANGE_SIGNAL;
    assert_int_equal(driver_check_kind(&able, &in_host, &task, &err), 0);
    assert_int_equal(driver_check_kind(&kind, &in_host, &task, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "\"abacus\" for \"web\" does not support signals"));
    template.change = SPEC_CHANGE_SCRIPT;
    assert_int_equal(driver_check_kind(&able, &in_host, &task, &err), 0);
    assert_int_equal(driver_check_kind(&kind, &in_host, &task, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "does not support commands"));
    assert_int_equal(driver_check_signals(&able, &err), 0);
    assert_int_equal(driver_check_signals(&kind, &err), ERR_UNSUPPORTED);
    assert_int_equal(driver_check_commands(&able, &err), 0);
    assert_int_equal(driver_check_commands(&kind, &err), ERR_UNSUPPORTED);
}

static void test_capabilities_have_their_names(void **state)
{
    uint64_t set;

    (void)state;
    assert_true(driver_capability("CHOWN", &set));
    assert_int_equal(set, 1);
    assert_true(driver_capability("cap_kill", &set));
    assert_int_equal(set, 1 << 5);
    assert_true(driver_capability("all", &set));
    assert_int_equal(set & driver_default_capabilities, driver_default_capabilities);
    assert_false(driver_capability("", &set));
    assert_false(driver_capability("cap_", &set));
}

static void test_users_that_the_node_denies_run_nothing(void **state)
{
    struct room *room = *state;

    room_need_root();
    open_exec(room);
    room_close(room);
    room->exec.denied.gids = "65534";
    room_open(room);
    give_to_nobody(room);
    room_script(room, "true");
    assert_start_fails(room, "running as gid 65534 is disallowed");
}

/* --- what it sees --- */

static void test_root_is_its_own(void **state)
{
    struct room *room = *state;

    open_exec(room);
    assert_string_equal(look(room, "set -e; cd /; test -d alloc/logs; test -e etc/passwd; "
                                   "for f in root home var run mnt no tmp/cairn* srv; do "
                                   "  test ! -e $f; done; pwd > /seen; ls -d /proc/self >> /seen"),
                        "/\n/proc/self\n");
    assert_int_equal(count_mounts_below(room->path), 0); /* nothing of it is the host's */
}

static void test_processes_are_its_own(void **state)
{
    struct room *room = *state;
    char script[256];

    open_exec(room);
    assert_true(text_format(script, sizeof(script),
                            "set -e; echo $$ > seen; ! kill -0 %d; test ! -e /proc/%d; "
                            "set -- /proc/[0-9]*; echo $# >> seen",
                            (int)getpid(), (int)getpid()));
    assert_string_equal(look(room, script), "1\n1\n");
}

static void test_modes_share_with_the_host(void **state)
{
    struct room *room = *state;
    char script[256], here[64];
    ssize_t length = readlink("/proc/self/ns/ipc", here, sizeof(here) - 1);

    assert_true(length > 0);
    here[length] = '\0';
    open_exec(room);
    assert_string_not_equal(look(room, "readlink /proc/self/ns/ipc | tr -d '[:space:]' > seen"),
                            here);
    room_close(room);
    room->exec.shares_ipc = room->exec.shares_pids = true;
    room_open(room);
    assert_true(text_format(script, sizeof(script),
                            "set -e; kill -0 %d; readlink /proc/self/ns/ipc | tr -d '[:space:]' > "
                            "seen",
                            (int)getpid()));
    assert_string_equal(look(room, script), here);
}

static void test_starts_in_its_working_directory(void **state)
{
    struct room *room = *state;

    open_exec(room);
    room->task.config_json = "{\"command\": \"sh\", \"work_dir\": \"/alloc\", "
                             "\"args\": [\"-c\", \"pwd > data\"]}";
    room_start_running(room, 1);
    room_await_exit(room);
    room_destroy(room, 1);
    assert_string_equal(task_file(room, "../alloc/data"), "/alloc\n");
    room->task.config_json = "{\"command\": \"sh\", \"work_dir\": \"/usr/no/where\"}";
    assert_start_fails(room, "working directory"); /* nothing is made in what is the host's */
    assert_int_equal(access("/usr/no", F_OK), -1);
}

static void test_working_directory_that_is_missing_is_made(void **state)
{
    struct room *room = *state;

    open_exec(room);
    give_to_nobody(room);
    room->task.config_json = "{\"command\": \"sh\", \"work_dir\": \"/made/here\", "
                             "\"args\": [\"-c\", \"pwd > /data; stat -c '%U %a' . >> "
                             "/data\"]}";
    room_start_running(room, 1);
    room_await_exit(room);
    room_destroy(room, 1);
    assert_string_equal(task_file(room, "data"), "/made/here\nnobody 755\n");
}

/* A task has made the name a link, and a later start follows none. */
static void test_working_directory_is_made_through_no_link(void **state)
{
    struct room *room = *state;

    open_exec(room);
    assert_string_equal(look(room, "ln -s /tmp /elsewhere; echo done > seen"), "done\n");
    room->task.config_json = "{\"command\": \"sh\", \"work_dir\": \"/elsewhere/made\"}";
    assert_start_fails(room, "working directory");
}

static void test_is_told_of_its_user(void **state)
{
    struct room *room = *state;

    open_exec(room);
    give_to_nobody(room);
    room->env[1] = (struct spec_pair){"HOME", "/root"};
    assert_string_equal(look(room, "echo $USER $LOGNAME $HOME $(id -un) > seen"),
                        "nobody nobody /nonexistent nobody\n");
}

/* --- what it can do --- */

static void test_host_is_read_only(void **state)
{
    struct room *room = *state;

    open_exec(room);
    assert_string_equal(look(room,
                             "for d in /bin /etc /usr /usr/bin /sys /proc/sys /alloc/logs; do "
                             "  ! touch $d/x || exit 1; done; "
                             "touch /x /local.x /alloc/data; echo kept > seen"),
                        "kept\n");
    assert_int_not_equal(access("/etc/x", F_OK), 0);
}

/* With the capability to make devices, and as root: what it makes is none. */
static void test_devices_it_makes_are_none(void **state)
{
    struct room *room = *state;
    struct stat disk;
    char script[512];

    open_exec(room);
    assert_return_code(stat("/", &disk), 0);
    assert_true(text_format(script, sizeof(script),
                            "set -e; for d in / /alloc /dev /dev/shm; do mknod $d/disk b %u %u; "
                            "! head -c 1 $d/disk; done; mknod /null c 1 3; ! echo > /null; "
                            "echo > /dev/null; head -c 3 /dev/urandom | wc -c > seen",
                            major(disk.st_dev), minor(disk.st_dev)));
    assert_string_equal(look(room, script), "3\n");
}

static void test_cannot_mount_or_leave(void **state)
{
    struct room *room = *state;

    open_exec(room);
    assert_string_equal(look(room, "! mount -t tmpfs none /tmp; ! umount /proc; "
                                   "! mount -o remount,rw /etc; ! unshare -m true; "
                                   "! nsenter -t 1 -n true; ! hostname other; "
                                   "test ! -s /proc/kcore; echo kept > seen"),
                        "kept\n");
}

/* Even where it sees the host's processes, and as root, it can look into none that has more rights;
 * nor as another user signal any. */
static void test_processes_of_the_host_are_closed_to_it(void **state)
{
    struct room *room = *state;
    char script[768];

    open_exec(room);
    room_close(room);
    room->exec.shares_pids = true;
    room_open(room);
    assert_true(text_format(script, sizeof(script),
                            "set -e; test -d /proc/%d; for f in environ maps auxv io; do "
                            "! cat /proc/%d/$f; done; ! head -c 1 /proc/%d/mem; "
                            "! ls /proc/%d/root/ /proc/%d/cwd/ /proc/%d/fd/; echo kept > /seen",
                            (int)getpid(), (int)getpid(), (int)getpid(), (int)getpid(),
                            (int)getpid(), (int)getpid()));
    assert_string_equal(look(room, script), "kept\n");
    give_to_nobody(room);
    assert_true(text_format(script, sizeof(script), "! kill -0 %d && ! kill -9 %d && touch /out",
                            (int)getpid(), (int)getpid()));
    (void)look(room, script);
    assert_string_equal(task_file(room, "out"), "");
}

/* The way out of a root that every book tells: a second root, and up from where one was. */
static void test_a_second_root_leads_no_further_than_the_first(void **state)
{
    struct room *room = *state;

    open_exec(room);
    assert_return_code(access("/usr/bin/perl", X_OK), 0);
    assert_string_equal(look(room, "set -e; echo mine > /own; mkdir /in; "
                                   "perl -e 'chroot q(/in); chdir q(..) for 1..64; chroot q(.); "
                                   "print -e q(/own) ? 1 : 0, -e q(/root) ? 1 : 0' > /seen; "
                                   "! ls /proc/self/root/root"),
                        "10");
}

/* What it finds of names is where the host's own is, be that a link, as the two programs that make
 * such links make them; nowhere else are links followed. */
static void test_names_are_found_where_the_host_has_links(void **state)
{
    static const char *const links[] = {"../run/real", "/run/real"};
    struct room *room = *state;
    char etc[PATH_SIZE], run[PATH_SIZE], link[PATH_SIZE], real[PATH_SIZE], given[PATH_SIZE];
    struct spec_pair root[COUNT_OF(host_directories) + 2];

    open_exec(room);
    room_close(room);
    assert_true(text_format(etc, sizeof(etc), "%s/etc", room->path));
    assert_true(text_format(run, sizeof(run), "%s/run", room->path));
    assert_true(text_format(link, sizeof(link), "%s/resolv.conf", etc));
    assert_true(text_format(real, sizeof(real), "%s/real", run));
    assert_true(text_format(given, sizeof(given), "%s/given", room->path));
    assert_return_code(mkdir(etc, 0755), 0);
    assert_return_code(mkdir(run, 0755), 0);
    assert_int_equal(file_write_durable(real, "hosts\n", 6, 0644, NULL), 0);
    assert_int_equal(file_write_durable(given, "given\n", 6, 0644, NULL), 0);
    for (size_t i = 0; i < COUNT_OF(host_directories); i++) {
        bool is_etc = text_equal(host_directories[i].value, "/etc");

        root[i] = is_etc ? (struct spec_pair){etc, "/etc"} : host_directories[i];
    }
    root[COUNT_OF(host_directories)] = (struct spec_pair){run, "/run"};
    root[COUNT_OF(host_directories) + 1] = (struct spec_pair){given, "/etc/resolv.conf"};
    room->exec.root = (struct spec_pairs){root, COUNT_OF(root) - 1};
    room->resolv = given;
    room_open(room);
    for (size_t i = 0; i < COUNT_OF(links); i++) {
        (void)unlink(link);
        assert_return_code(symlink(links[i], link), 0);
        assert_string_equal(look(room, "cat /etc/resolv.conf > /seen"), "given\n");
    }
    (void)unlink(link);
    assert_return_code(symlink("/no/such", link), 0);
    assert_start_fails(room, "could not mount /etc/resolv.conf");
    (void)unlink(link);
    assert_return_code(symlink("/run/real", link), 0);
    room->resolv = NULL;
    room_close(room);
    room->exec.root.count++; /* a file of the node's word */
    room_open(room);
    assert_start_fails(room, "could not mount /etc/resolv.conf");
}

static void test_has_the_name_and_the_hosts_that_it_is_given(void **state)
{
    struct room *room = *state;
    char given[PATH_SIZE], here[256], there[256];

    open_exec(room);
    assert_return_code(gethostname(here, sizeof(here)), 0);
    assert_true(text_format(given, sizeof(given), "%s/given", room->path));
    assert_int_equal(file_write_durable(given, "127.0.0.1 own.example\n", 22, 0644, NULL), 0);
    room->hosts = given;
    room->hostname = "own.example";
    assert_string_equal(look(room, "uname -n > /seen; grep own /etc/hosts >> /seen; "
                                   "! echo > /etc/hosts; ! hostname other"),
                        "own.example\n127.0.0.1 own.example\n");
    assert_return_code(gethostname(there, sizeof(there)), 0);
    assert_string_equal(there, here);
}

/* --- what it might keep of us --- */

/* Keys go with a session, and whoever is in it may use them, whoever it is. */
static void test_keys_of_ours_are_not_its_own(void **state)
{
    struct room *room = *state;
    char script[256], own[32];
    long session = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);

    if (session < 0)
        skip(); /* the kernel has none */
    open_exec(room);
    assert_return_code(access("/usr/bin/perl", X_OK), 0);
    assert_true(text_format(script, sizeof(script),
                            "perl -e 'print syscall(%d, %d, -3, 0), qq(%%)' > /seen", SYS_keyctl,
                            KEYCTL_GET_KEYRING_ID));
    assert_true(text_format(own, sizeof(own), "%ld%%", session));
    const char *seen = look(room, script);
    assert_string_not_equal(seen, own);
    assert_string_not_equal(seen, "-1%");
}

/* Who is root in a namespace of users of its own has no more of the kernel's files for it. */
static void test_users_of_its_own_open_nothing(void **state)
{
    struct room *room = *state;
    const char *script = "! unshare -Urmp --fork mount -t proc none /alloc && "
                         "! unshare -Urm mount -t sysfs none /alloc && "
                         "! unshare -Urm mount -o remount,rw,bind /etc && "
                         "! unshare -Urm umount /proc/kcore && "
                         "! unshare -Ur sh -c 'echo b > /proc/sysrq-trigger' && "
                         "! unshare -Urm mount -o bind / /dev/full && "
                         "! head -c 1 /proc/kcore && echo kept > /alloc/seen";

    open_exec(room);
    (void)look(room, script);
    assert_string_equal(task_file(room, "../alloc/seen"), "kept\n");
    give_to_nobody(room);
    (void)look(room, "! unshare -Urmp --fork mount -t proc none /alloc && "
                     "! unshare -Urm umount /proc/kcore");
}

static void test_nothing_of_ours_is_left_open_in_it(void **state)
{
    struct room *room = *state;

    open_exec(room);
    room->task.config_json = "{\"command\": \"/bin/ls\", \"args\": [\"/proc/self/fd\"]}";
    room_start_running(room, 1);
    room_await_exit(room);
    room_destroy(room, 1);
    assert_string_equal(log_file(room, "web.stdout.0"), "0\n1\n2\n3\n"); /* what it lists */
}

/* What has no bound of its own on the host: memory by files, its own way out of memory's end, the
 * kernel's buttons, and the cgroups that bound all the rest. */
static void test_cannot_exhaust_or_unbind(void **state)
{
    struct room *room = *state;

    open_exec(room);
    assert_string_equal(look(room, "! head -c 80m /dev/zero > /dev/shm/x; rm /dev/shm/x; "
                                   "! head -c 1m /dev/zero > /dev/x; rm /dev/x; "
                                   "! echo -1000 > /proc/self/oom_score_adj; "
                                   "! echo b > /proc/sysrq-trigger; "
                                   "! echo 1 > /proc/sys/kernel/panic; "
                                   "test -z $(ls /sys/fs/cgroup); ! mkdir /sys/fs/cgroup/x; "
                                   "! mount -t cgroup2 none /tmp; echo kept > /seen"),
                        "kept\n");
}

static void test_capabilities_are_what_was_granted(void **state)
{
    struct room *room = *state;
    const char *script = "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status | "
                         "tr -d '[:blank:]' > seen";
    char config[512];

    open_exec(room);
    assert_string_equal(look(room, script),
                        "CapEff:00000000a80405fb\nCapBnd:00000000a80405fb\nNoNewPrivs:0\n");
    give_to_nobody(room);
    assert_true(text_format(config, sizeof(config), "%.400s/seen", room->task_dir));
    assert_return_code(unlink(config), 0); /* it is root's */
    assert_string_equal(look(room, script),
                        "CapEff:0000000000000400\nCapBnd:00000000a80405fb\nNoNewPrivs:1\n");
    assert_true(text_format(config, sizeof(config),
                            "{\"command\": \"/bin/sh\", \"args\": [\"-c\", \"%s\"], "
                            "\"cap_drop\": [\"all\"], \"cap_add\": [\"chown\"]}",
                            "grep -E '^Cap(Eff|Bnd)' /proc/self/status > seen"));
    room->task.config_json = config;
    room_start_running(room, 1);
    room_await_exit(room);
    room_destroy(room, 1);
    assert_string_equal(task_file(room, "seen"), "CapEff:\t0000000000000001\n"
                                                 "CapBnd:\t0000000000000001\n");
    room->task.config_json = "{\"command\": \"true\", \"cap_add\": [\"sys_admin\"]}";
    assert_start_fails(room, "does not allow the capability cap_sys_admin");
}

static void test_memory_is_bounded(void **state)
{
    struct room *room = *state;

    open_exec(room);
    room->task.resources = (struct spec_resources){.cpu_mhz = 100, .memory_mb = 32};
    room_script(room, "head -c 200m /dev/zero | tail -c 150m > /dev/null; exec sleep 100");
    room_start_running(room, 1);
    for (int i = 0; i < PATIENCE_MS / 10; i++) {
        char cgroup[CGROUP_NAME_SIZE];

        room_cgroup(room, 1, cgroup);
        if (cgroup_oom_killed(room->cgroup_mode, cgroup))
            break;
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    assert_int_equal(room_stop(room, 1, "SIGKILL", 0), DRIVER_DONE);
    if (room->exits == 0)
        room_await_exit(room);
    assert_true(room->exit.oom_killed);
    room_destroy(room, 1);
}

static void test_memory_without_a_limit_is_what_the_host_has(void **state)
{
    struct room *room = *state;

    open_exec(room);
    room->task.resources = (struct spec_resources){
        .cpu_mhz = 1000, .memory_mb = 32, .memory_max_mb = SPEC_MEMORY_UNLIMITED};
    room_script(room, "head -c 64m /dev/zero | tail -c 48m > /dev/null");
    room_start_running(room, 1);
    room_await_exit(room);
    assert_int_equal(room->exit.code, 0);
    assert_false(room->exit.oom_killed);
    room_destroy(room, 1);
}

/* --- ending --- */

static void test_all_ends_with_the_main_process(void **state)
{
    struct room *room = *state;

    open_exec(room);
    room_script(room, "for i in 1 2 3; do (trap '' TERM HUP INT; setsid sleep 1000 & ) ; done; "
                      "echo ready > ready; exec sleep 0.1");
    room_start_running(room, 1);
    room_await_exit(room);
    assert_int_equal(room->exit.code, 0);
    assert_string_equal(room->exit.message, ""); /* none of them was a stray */
    room_destroy(room, 1);
}

static void crash_here(struct room *room)
{
    room_open(room);
    room_start_running(room, 1);
}

static void test_is_found_again_after_a_crash(void **state)
{
    struct room *room = *state;

    open_exec(room);
    room_close(room);
    room_script(room, "trap 'exit 7' TERM; echo ready > ready; while :; do sleep 0.05; done");
    in_crashing_daemon(room, crash_here);
    await_task_file(room, "ready");
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
    assert_int_equal(room_stop(room, 1, "SIGTERM", 10000), DRIVER_DONE);
    if (room->exits == 0)
        room_await_exit(room);
    assert_int_equal(room->exit.code, 7);
    room_destroy(room, 1);
}

/* --- what is in the way --- */

static void test_start_that_fails_says_why(void **state)
{
    struct room *room = *state;

    open_exec(room);
    room->task.config_json = "{\"command\": \"no-such-program\"}";
    assert_start_fails(room, "command \"no-such-program\" not found in the task's root");
    room->task.config_json = "{\"command\": \"/etc/passwd\"}";
    assert_start_fails(room, "Permission denied");
}

/* The task's user put a link where a mount belongs: what it leads to stays as it was. */
static void test_link_in_the_way_leads_nowhere(void **state)
{
    struct room *room = *state;
    char victim[PATH_SIZE], link[PATH_SIZE];

    open_exec(room);
    assert_int_equal(path_join(victim, room->path, "victim"), 0);
    assert_return_code(mkdir(victim, 0755), 0);
    assert_int_equal(path_join(link, room->task_dir, "dev"), 0);
    assert_return_code(symlink(victim, link), 0);
    room->task.config_json = "{\"command\": \"true\"}";
    assert_start_fails(room, "could not mount /dev");
    assert_return_code(rmdir(victim), 0); /* empty */
}

static enum cgroup_mode tested;

static int make(void **state)
{
    int code = room_make(state);
    struct room *room = *state;

    room->cgroup_mode = tested;
    return code;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, room_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_that_is_wrong_is_refused_with_the_reason),
        cmocka_unit_test(test_config_that_is_not_interpolated_yet_is_taken),
        cmocka_unit_test(test_its_kind_is_what_hooks_make_its_tasks_ready_by),
        cmocka_unit_test(test_what_a_kind_of_driver_cannot_do_is_refused_by_name),
        cmocka_unit_test(test_capabilities_have_their_names),
        TEST(test_users_that_the_node_denies_run_nothing),
        TEST(test_root_is_its_own),
        TEST(test_processes_are_its_own),
        TEST(test_modes_share_with_the_host),
        TEST(test_starts_in_its_working_directory),
        TEST(test_working_directory_that_is_missing_is_made),
        TEST(test_working_directory_is_made_through_no_link),
        TEST(test_is_told_of_its_user),
        TEST(test_host_is_read_only),
        TEST(test_devices_it_makes_are_none),
        TEST(test_cannot_mount_or_leave),
        TEST(test_processes_of_the_host_are_closed_to_it),
        TEST(test_a_second_root_leads_no_further_than_the_first),
        TEST(test_names_are_found_where_the_host_has_links),
        TEST(test_has_the_name_and_the_hosts_that_it_is_given),
        TEST(test_keys_of_ours_are_not_its_own),
        TEST(test_users_of_its_own_open_nothing),
        TEST(test_nothing_of_ours_is_left_open_in_it),
        TEST(test_cannot_exhaust_or_unbind),
        TEST(test_capabilities_are_what_was_granted),
        TEST(test_memory_is_bounded),
        TEST(test_memory_without_a_limit_is_what_the_host_has),
        TEST(test_all_ends_with_the_main_process),
        TEST(test_is_found_again_after_a_crash),
        TEST(test_start_that_fails_says_why),
        TEST(test_link_in_the_way_leads_nowhere),
    };

    tested = cgroup_mode();
    int failed = cmocka_run_group_tests_name("exec", tests, NULL, NULL);
    if (tested != CGROUP_HYBRID || access("/sys/fs/cgroup/freezer/cgroup.procs", W_OK) != 0)
        return failed;
    tested = CGROUP_V1;
    return failed + cmocka_run_group_tests_name("exec on v1", tests, NULL, NULL);
}
