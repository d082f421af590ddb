/* Mounts of the host in the root of a task of exec: what is in them, who may write, what spreads
 * through them, what is in their way. */
#include "test/drivers/room.h"

#include <sys/mount.h>
#include <sys/sysmacros.h>

static char volume[PATH_SIZE]; /* a directory of the host */

static struct spec_pair host_directories[] = {
    {"/bin", "/bin"},     {"/etc", "/etc"}, {"/lib", "/lib"},
    {"/lib64", "/lib64"}, {"/usr", "/usr"}, {volume, "/of-root"},
};

static const char *in_volume(const char *name)
{
    static char path[PATH_SIZE];

    assert_int_equal(path_join(path, volume, name), 0);
    return path;
}

static void write_in_volume(const char *name, const char *text)
{
    FILE *file = fopen(in_volume(name), "we");

    assert_non_null(file);
    assert_int_equal(fputs(text, file) < 0, 0);
    assert_int_equal(fclose(file), 0);
}

/* With so many of the host's directories in the root. */
static void open_exec_with(struct room *room, size_t directories_count)
{
    room_need_root();
    room->task.driver = "exec";
    room->exec = (struct drivers_exec){
        .allowed_capabilities = driver_default_capabilities | (uint64_t)1 << 21, /* sys_admin */
        .root = {host_directories, directories_count},
    };
    room_open(room);
    assert_return_code(chmod(room->path, 0755), 0);
    assert_int_equal(path_join(volume, room->path, "volume"), 0);
    assert_return_code(mkdir(volume, 0755), 0);
}

static void open_exec(struct room *room)
{
    open_exec_with(room, COUNT_OF(host_directories) - 1);
}

static void add_mount(struct room *room, const char *host, const char *inside, bool read_only,
                      enum spec_propagation propagation)
{
    room->mounts[room->mounts_count++] = (struct spec_mount){
        .host = host, .inside = inside, .read_only = read_only, .propagation = propagation};
}

/* The volume is a file system of its own, whose mounts spread. */
static void make_shared(void)
{
    assert_return_code(mount("tmpfs", volume, "tmpfs", 0, "size=1m"), 0);
    assert_return_code(mount(NULL, volume, NULL, MS_SHARED, NULL), 0);
    assert_return_code(mkdir(in_volume("sub"), 0755), 0);
}

static void unmake_shared(void)
{
    (void)umount2(in_volume("sub"), MNT_DETACH); /* if a test has mounted something */
    assert_return_code(umount2(volume, MNT_DETACH), 0);
}

/* Runs SCRIPT to its end, which succeeds. */
static void run(struct room *room, const char *script)
{
    static uint32_t generation = 100;

    room_script(room, script);
    room_start_running(room, ++generation);
    room_await_exit(room);
    if (room->exit.code != 0)
        fail_msg("exit code %d of: %s; it said: %s", room->exit.code, script,
                 log_file(room, "web.stderr.0"));
    room_destroy(room, generation);
}

static void assert_start_fails(struct room *room, const char *why)
{
    static uint32_t generation = 1000;

    room->task.config_json = "{\"command\": \"true\"}";
    assert_int_equal(room_start(room, ++generation), DRIVER_FAILED);
    if (strstr(room->result.error.text, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", room->result.error.text, why);
    room_destroy(room, generation);
}

/* --- what is in them --- */

static void test_directories_and_files_are_where_they_were_asked_for(void **state)
{
    struct room *room = *state;
    static char file[PATH_SIZE];

    open_exec(room);
    write_in_volume("there", "before\n");
    assert_true(text_copy(file, sizeof(file), in_volume("there")));
    add_mount(room, volume, "/alloc/shared/volume", false, PROPAGATION_PRIVATE);
    add_mount(room, volume, "/srv/data", false, PROPAGATION_PRIVATE);
    add_mount(room, file, "/srv/data/one.conf", true, PROPAGATION_PRIVATE);
    add_mount(room, volume, "/tmp", false, PROPAGATION_PRIVATE);
    write_in_volume("one.conf", "hidden\n");
    run(room, "set -e; cd /srv/data; test $(cat there) = before; echo mine > new; "
              "test $(cat /tmp/new) = mine; test $(cat one.conf) = before; "
              "! echo x > one.conf; test -e /alloc/shared/volume/new");
    assert_string_equal(content_of(in_volume("new")), "mine\n");
    assert_string_equal(content_of(in_volume("one.conf")), "hidden\n");
    assert_null(strstr(content_of("/proc/self/mountinfo"), volume));
}

static void test_read_only_holds_for_all_that_is_mounted_below(void **state)
{
    struct room *room = *state;

    open_exec(room);
    make_shared();
    assert_return_code(mount("tmpfs", in_volume("sub"), "tmpfs", 0, "size=1m"), 0);
    add_mount(room, volume, "/srv", true, PROPAGATION_PRIVATE);
    run(room, "set -e; ! touch /srv/x; ! touch /srv/sub/x; ! mount -o remount,rw /srv; "
              "! touch /srv/x; test -d /srv/sub");
    assert_int_not_equal(access(in_volume("x"), F_OK), 0);
    unmake_shared();
}

/* As anything else of the host's: a way to more rights is none, a device neither. */
static void test_files_in_them_give_no_rights(void **state)
{
    struct room *room = *state;
    struct host_user nobody;
    struct stat disk;

    open_exec(room);
    assert_return_code(stat("/", &disk), 0);
    assert_return_code(mknod(in_volume("disk"), S_IFBLK | 0666, disk.st_dev), 0);
    add_mount(room, volume, "/srv", false, PROPAGATION_PRIVATE);
    run(room, "set -e; cp /usr/bin/id /srv/id; chmod 4755 /srv/id");
    assert_int_equal(host_user_find("nobody", &nobody, NULL), 0);
    assert_return_code(chown(room->task_dir, nobody.uid, nobody.gid), 0);
    room->task.user = "nobody";
    run(room, "set -e; test $(/srv/id -un) = nobody; ! head -c 1 /srv/disk");
}

/* --- what spreads --- */

/* A task that waits for "go", then looks whether what the host has mounted on SUB is there. */
static bool sees_what_the_host_mounts(struct room *room, enum spec_propagation propagation)
{
    static uint32_t generation = 200;

    room->mounts_count = 0;
    add_mount(room, volume, "/srv", false, propagation);
    room_script(room, "echo > /ready; while test ! -e /go; do sleep 0.02; done; "
                      "test -e /srv/sub/hosts");
    room_start_running(room, ++generation);
    await_task_file(room, "ready");
    assert_return_code(mount("tmpfs", in_volume("sub"), "tmpfs", 0, "size=1m"), 0);
    write_in_volume("sub/hosts", "");
    char go[PATH_SIZE];
    assert_int_equal(path_join(go, room->task_dir, "go"), 0);
    assert_return_code(mknod(go, S_IFREG | 0644, 0), 0);
    room_await_exit(room);
    room_destroy(room, generation);
    assert_return_code(unlink(go), 0);
    assert_int_equal(path_join(go, room->task_dir, "ready"), 0);
    assert_return_code(unlink(go), 0);
    assert_return_code(umount(in_volume("sub")), 0);
    return room->exit.code == 0;
}

/* A volume that is a block device: given by its own name, and not in a directory. */
static void test_device_that_is_mounted_itself_can_be_used(void **state)
{
    struct room *room = *state;
    static char device[PATH_SIZE];
    struct host_user nobody;

    open_exec(room);
    assert_true(text_copy(device, sizeof(device), in_volume("disk")));
    assert_return_code(mknod(device, S_IFBLK | 0666, makedev(7, 0)), 0); /* /dev/loop0 */
    assert_return_code(chmod(device, 0666), 0);
    int fd = open(device, O_RDONLY | O_CLOEXEC);
    if (fd < 0) { /* devices mean nothing here */
        print_message("skipped: %s\n", strerror(errno));
        skip();
    }
    assert_int_equal(close(fd), 0);
    assert_int_equal(host_user_find("nobody", &nobody, NULL), 0);
    assert_return_code(chown(room->task_dir, nobody.uid, nobody.gid), 0);
    room->task.user = "nobody";
    add_mount(room, device, "/srv/disk", true, PROPAGATION_PRIVATE);
    run(room, "set -e; test -b /srv/disk; : < /srv/disk");
}

/* The host's /dev, as a storage plugin is given it: for one that may mount.  Others have their own.
 */
static void test_devices_of_the_host_are_for_who_may_mount(void **state)
{
    struct room *room = *state;

    open_exec(room);
    assert_return_code(mknod(in_volume("null"), S_IFCHR | 0666, makedev(1, 3)), 0);
    assert_return_code(chmod(in_volume("null"), 0666), 0);
    int fd = open(in_volume("null"), O_WRONLY | O_CLOEXEC);
    if (fd < 0) { /* devices mean nothing here */
        print_message("skipped: %s\n", strerror(errno));
        skip();
    }
    assert_int_equal(close(fd), 0);
    write_in_volume("hosts", "");
    add_mount(room, volume, "/dev", false, PROPAGATION_PRIVATE);
    room->mounts[0].has_devices = true;
    run(room, "set -e; test ! -e /dev/hosts; : > /dev/null");
    room->task.config_json = "{\"command\": \"/bin/sh\", \"cap_add\": [\"sys_admin\"], \"args\": "
                             "[\"-c\", \"set -e; test -e /dev/hosts; : > /dev/null\"]}";
    room_start_running(room, 2);
    room_await_exit(room);
    assert_int_equal(room->exit.code, 0);
    room_destroy(room, 2);
}

static void test_mounts_of_the_host_come_as_was_asked(void **state)
{
    struct room *room = *state;

    open_exec(room);
    make_shared();
    assert_false(sees_what_the_host_mounts(room, PROPAGATION_PRIVATE));
    assert_true(sees_what_the_host_mounts(room, PROPAGATION_HOST_TO_TASK));
    assert_true(sees_what_the_host_mounts(room, PROPAGATION_BIDIRECTIONAL));
    unmake_shared();
}

/* True if what a task mounts in the volume is there for the host, too, and stays. */
static bool host_sees_what_it_mounts(struct room *room, enum spec_propagation propagation)
{
    static uint32_t generation = 300;

    room->mounts_count = 0;
    add_mount(room, volume, "/srv", false, propagation);
    room->task.config_json = "{\"command\": \"/bin/sh\", \"cap_add\": [\"sys_admin\"], \"args\": "
                             "[\"-c\", \"mount -t tmpfs none /srv/sub && touch /srv/sub/tasks\"]}";
    room_start_running(room, ++generation);
    room_await_exit(room);
    assert_int_equal(room->exit.code, 0);
    room_destroy(room, generation);
    bool seen = access(in_volume("sub/tasks"), F_OK) == 0;
    assert_int_equal(mount_is_point(AT_FDCWD, in_volume("sub"), NULL), seen);
    if (seen)
        assert_return_code(umount(in_volume("sub")), 0);
    return seen;
}

static void test_mounts_of_a_task_go_to_the_host_only_if_asked(void **state)
{
    struct room *room = *state;

    open_exec(room);
    make_shared();
    assert_false(host_sees_what_it_mounts(room, PROPAGATION_PRIVATE));
    assert_false(host_sees_what_it_mounts(room, PROPAGATION_HOST_TO_TASK));
    assert_true(host_sees_what_it_mounts(room, PROPAGATION_BIDIRECTIONAL));
    unmake_shared();
}

/* What a root has of the host is the node's to say, and not for tasks to mount in. */
static void test_mounts_in_the_rest_of_a_root_come_but_do_not_go(void **state)
{
    struct room *room = *state;

    open_exec_with(room, COUNT_OF(host_directories));
    make_shared();
    room->task.config_json =
        "{\"command\": \"/bin/sh\", \"cap_add\": [\"sys_admin\"], \"args\": [\"-c\", \"mount -t "
        "tmpfs none /of-root/sub && touch /of-root/sub/tasks\"]}";
    room_start_running(room, 1);
    room_await_exit(room);
    assert_int_equal(room->exit.code, 0);
    room_destroy(room, 1);
    assert_int_not_equal(access(in_volume("sub/tasks"), F_OK), 0);
    assert_int_equal(mount_is_point(AT_FDCWD, in_volume("sub"), NULL), 0);
    room_script(room, "until test -e /of-root/sub/hosts; do sleep 0.01; done");
    room_start_running(room, 2);
    assert_return_code(mount("tmpfs", in_volume("sub"), "tmpfs", 0, "size=1m"), 0);
    write_in_volume("sub/hosts", "");
    room_await_exit(room);
    room_destroy(room, 2);
    unmake_shared();
}

/* --- what is in the way --- */

static void test_what_is_not_there_fails_the_start_by_name(void **state)
{
    struct room *room = *state;

    open_exec(room);
    add_mount(room, "/no/such/volume", "/srv", false, PROPAGATION_PRIVATE);
    assert_start_fails(room, "could not open /no/such/volume");
    room->mounts_count = 0;
    add_mount(room, volume, "/usr/nothing/here", false, PROPAGATION_PRIVATE);
    assert_start_fails(room, "could not mount /usr/nothing/here");
    assert_int_not_equal(access("/usr/nothing", F_OK), 0);
}

/* A volume whose mount somebody has taken away is mounted again before the next try. */
static void test_place_of_a_volume_is_no_volume(void **state)
{
    static const char why[] = "a volume is not mounted any more: could not open ";
    struct room *room = *state;

    open_exec(room);
    add_mount(room, volume, "/srv", false, PROPAGATION_PRIVATE);
    room->mounts[0].is_mount = true;
    assert_start_fails(room, why);
    make_shared();
    run(room, "echo mine > /srv/sub/new");
    assert_string_equal(content_of(in_volume("sub/new")), "mine\n");
    unmake_shared();
    assert_int_equal(room_start(room, 1), DRIVER_FAILED);
    assert_true(room->result.error.recoverable);
    room_destroy(room, 1);
    assert_return_code(rmdir(volume), 0);
    assert_start_fails(room, why);
}

/* The task's user puts a link where a volume goes: nothing is mounted on, or made in, what it leads
 * to, and the next start fails. */
static void test_links_of_the_task_lead_a_mount_nowhere(void **state)
{
    struct room *room = *state;

    open_exec(room);
    run(room, "ln -s /etc /srv; ln -s ../../.. /up");
    add_mount(room, volume, "/srv/made", false, PROPAGATION_PRIVATE);
    assert_start_fails(room, "could not mount /srv/made");
    room->mounts_count = 0;
    add_mount(room, volume, "/up/made", false, PROPAGATION_PRIVATE);
    assert_start_fails(room, "could not mount /up/made");
    assert_int_not_equal(access("/etc/made", F_OK), 0);
    assert_int_not_equal(access(in_volume("made"), F_OK), 0);
}

static void test_drivers_that_mount_nothing_say_so(void **state)
{
    static struct spec_volume_mount wanted = {"data", "/srv", false, PROPAGATION_PRIVATE};
    struct task_spec task = {.name = "web",
                             .driver = "raw_exec",
                             .user = "",
                             .config_json = "{\"command\": \"true\"}",
                             .kill_signal = "",
                             .volume_mounts = &wanted,
                             .volume_mounts_count = 1};
    struct err err = {0};

    (void)state;
    assert_int_equal(driver_validate(NULL, &in_host, &task, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "\"raw_exec\" for \"web\" does not support host volumes"));
    struct spec_volume claims[] = {{.name = "other", .type = VOLUME_CSI}, {.name = "data"}};
    struct alloc_spec alloc = in_host;
    alloc.volumes = claims;
    alloc.volumes_count = COUNT_OF(claims);
    assert_int_equal(driver_validate(NULL, &alloc, &task, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "does not support host volumes"));
    claims[1].type = VOLUME_CSI;
    assert_int_equal(driver_validate(NULL, &alloc, &task, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "\"raw_exec\" for \"web\" does not support CSI"));
    task.driver = "mock_driver";
    task.config_json = "{}";
    assert_int_equal(driver_validate(NULL, &in_host, &task, &err), ERR_INVALID);
    task.driver = "exec";
    task.config_json = "{\"command\": \"true\"}";
    assert_int_equal(driver_validate(NULL, &in_host, &task, &err), 0);
}

/* A volume is claimed for a group; one task that can see it is enough. */
static void test_volumes_that_no_task_can_see_are_refused(void **state)
{
    struct spec_volume volumes[] = {{.name = "disk", .type = VOLUME_HOST}};
    struct task_spec tasks[] = {
        {.name = "web", .driver = "raw_exec", .config_json = "{\"command\": \"true\"}"},
        {.name = "side", .driver = "raw_exec", .config_json = "{\"command\": \"true\"}"},
    };
    struct alloc_spec alloc = in_host;
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(tasks); i++)
        tasks[i].user = tasks[i].kill_signal = "";
    alloc.volumes = volumes;
    alloc.volumes_count = COUNT_OF(volumes);
    alloc.tasks = tasks;
    alloc.tasks_count = COUNT_OF(tasks);
    assert_int_equal(driver_validate(NULL, &alloc, &tasks[0], &err), 0);
    volumes[0].type = VOLUME_CSI;
    assert_int_equal(driver_validate(NULL, &alloc, &tasks[0], &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "\"raw_exec\" for \"web\" does not support CSI, and no task"));
    tasks[1].driver = "exec";
    assert_int_equal(driver_validate(NULL, &alloc, &tasks[0], &err), 0);
    assert_int_equal(driver_validate(NULL, &alloc, &tasks[1], &err), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_make, room_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_directories_and_files_are_where_they_were_asked_for),
        TEST(test_read_only_holds_for_all_that_is_mounted_below),
        TEST(test_files_in_them_give_no_rights),
        TEST(test_device_that_is_mounted_itself_can_be_used),
        TEST(test_devices_of_the_host_are_for_who_may_mount),
        TEST(test_mounts_of_the_host_come_as_was_asked),
        TEST(test_mounts_of_a_task_go_to_the_host_only_if_asked),
        TEST(test_mounts_in_the_rest_of_a_root_come_but_do_not_go),
        TEST(test_what_is_not_there_fails_the_start_by_name),
        TEST(test_place_of_a_volume_is_no_volume),
        TEST(test_links_of_the_task_lead_a_mount_nowhere),
        cmocka_unit_test(test_drivers_that_mount_nothing_say_so),
        cmocka_unit_test(test_volumes_that_no_task_can_see_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
