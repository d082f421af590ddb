/* Mounts as the kernel's table shows them, with every character a path can have; host facts. */
#include "test/io/scratch.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

static void need_root(void)
{
    if (geteuid() != 0) {
        print_message("skipped: mounting needs root\n");
        skip();
    }
}

static void test_what_is_not_mounted_is_no_point(void **state)
{
    struct scratch *scratch = *state;

    assert_int_equal(mount_is_point(AT_FDCWD, scratch->path, &scratch->err), 0);
    assert_int_equal(mount_is_point(AT_FDCWD, at(scratch, "none"), &scratch->err), 0);
    assert_int_equal(mount_is_point(AT_FDCWD, at(scratch, "no/where"), &scratch->err), 0);
    assert_int_equal(mount_is_point(AT_FDCWD, "/", &scratch->err), 1);
    assert_int_equal(mount_is_point(AT_FDCWD, "/proc", &scratch->err), 1);
    assert_false(mount_is_point_at_once(at(scratch, "no/where")));
    assert_false(mount_is_point_at_once(scratch->path));
    assert_true(mount_is_point_at_once("/proc"));
}

static void test_remove_of_what_is_not_mounted_is_success(void **state)
{
    struct scratch *scratch = *state;

    assert_int_equal(mount_remove(AT_FDCWD, at(scratch, "none"), &scratch->err), 0);
    need_root();
    assert_int_equal(mount_remove(AT_FDCWD, scratch->path, &scratch->err), 0);
}

static void test_tmpfs_has_its_size_mode_and_flags(void **state)
{
    struct scratch *scratch = *state;
    struct statvfs status;

    need_root();
    assert_int_equal(mount_small(at(scratch, "none"), 1 << 20, 0700, &scratch->err), ERR_GONE);
    assert_return_code(mkdir(at(scratch, "t"), 0755), 0);
    assert_int_equal(mount_small(at(scratch, "t"), 1 << 20, 0711, &scratch->err), 0);
    assert_int_equal(mount_is_point(AT_FDCWD, at(scratch, "t"), &scratch->err), 1);
    assert_int_equal(mode_of(at(scratch, "t")), 0711);
    assert_return_code(statvfs(at(scratch, "t"), &status), 0);
    assert_int_equal(status.f_blocks * status.f_frsize, 1 << 20);
    assert_true((status.f_flag & ST_NOSUID) != 0);
    assert_true((status.f_flag & ST_NOEXEC) != 0);
    assert_true((status.f_flag & ST_NODEV) != 0);

    /* Again is success and does not stack a second one that would hide the first. */
    put_file(at(scratch, "t/secret"), "kept");
    assert_int_equal(mount_small(at(scratch, "t"), 1 << 20, 0711, &scratch->err), 0);
    assert_file_is(at(scratch, "t/secret"), "kept");
    assert_int_equal(mount_remove(AT_FDCWD, at(scratch, "t"), &scratch->err), 0);
    assert_int_equal(mount_is_point(AT_FDCWD, at(scratch, "t"), &scratch->err), 0);
    assert_int_equal(mount_remove(AT_FDCWD, at(scratch, "t"), &scratch->err), 0);
}

static void test_tmpfs_on_another_file_system_is_refused(void **state)
{
    struct scratch *scratch = *state;

    need_root();
    assert_return_code(mkdir(at(scratch, "t"), 0755), 0);
    assert_return_code(mount("proc", at(scratch, "t"), "proc", 0, NULL), 0);
    assert_int_equal(mount_small(at(scratch, "t"), 1 << 20, 0700, &scratch->err), ERR_EXISTS);
    assert_int_equal(mount_remove(AT_FDCWD, at(scratch, "t"), &scratch->err), 0);
}

/* A process in a namespace of mounts of its own says when it is there, and ends with its input. */
static pid_t start_elsewhere(const char *unmounted, int ret_pipes[2])
{
    int ready[2], end[2];
    char byte;

    assert_return_code(pipe(ready), errno);
    assert_return_code(pipe(end), errno);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(end[1]);
        if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            (unmounted != NULL && umount(unmounted) != 0) || write(ready[1], "", 1) != 1)
            _exit(1);
        (void)!read(end[0], &byte, 1);
        _exit(0);
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(end[0]);
    ret_pipes[0] = ready[0];
    ret_pipes[1] = end[1];
    return pid;
}

static void end_elsewhere(pid_t pid, const int pipes[2])
{
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_mounts_that_another_process_sees_are_brought_here(void **state)
{
    struct scratch *scratch = *state;
    struct proc_identity other, own;
    int pipes[2], fd;

    need_root();
    assert_return_code(mkdir(at(scratch, "t"), 0755), 0);
    assert_int_equal(mount_small(at(scratch, "t"), 1 << 20, 0711, &scratch->err), 0);
    put_file(at(scratch, "t/secret"), "kept");
    pid_t pid = start_elsewhere(NULL, pipes);
    assert_int_equal(proc_identify(pid, &other, &scratch->err), 0);
    assert_int_equal(proc_identify(getpid(), &own, &scratch->err), 0);
    assert_int_equal(mount_remove(AT_FDCWD, at(scratch, "t"), &scratch->err), 0);

    assert_int_equal(mount_seen_by(&own, at(scratch, "t"), &fd, &scratch->err), 0);
    assert_int_equal(fd, -1);
    assert_int_equal(mount_seen_by(&other, scratch->path, &fd, &scratch->err), 0);
    assert_int_equal(fd, -1); /* no mount */
    assert_int_equal(mount_seen_by(&other, at(scratch, "none"), &fd, &scratch->err), 0);
    assert_int_equal(fd, -1);
    assert_return_code(symlink("t", at(scratch, "link")), errno);
    assert_int_not_equal(mount_seen_by(&other, at(scratch, "link"), &fd, &scratch->err), 0);

    assert_int_equal(mount_seen_by(&other, at(scratch, "t"), &fd, &scratch->err), 0);
    assert_true(fd >= 0);
    assert_int_equal(mount_attach(fd, AT_FDCWD, at(scratch, "t"), &scratch->err), 0);
    assert_return_code(close(fd), errno);
    assert_file_is(at(scratch, "t/secret"), "kept");
    end_elsewhere(pid, pipes);
    assert_int_equal(mount_seen_by(&other, at(scratch, "t"), &fd, &scratch->err), ERR_GONE);
    assert_file_is(at(scratch, "t/secret"), "kept");
    assert_int_equal(mount_remove(AT_FDCWD, at(scratch, "t"), &scratch->err), 0);
}

static void test_mount_that_another_process_does_not_see_is_none(void **state)
{
    struct scratch *scratch = *state;
    struct proc_identity other;
    int pipes[2], fd;

    need_root();
    assert_return_code(mkdir(at(scratch, "t"), 0755), 0);
    assert_int_equal(mount_small(at(scratch, "t"), 1 << 20, 0711, &scratch->err), 0);
    pid_t pid = start_elsewhere(at(scratch, "t"), pipes);
    assert_int_equal(proc_identify(pid, &other, &scratch->err), 0);
    assert_int_equal(mount_seen_by(&other, at(scratch, "t"), &fd, &scratch->err), 0);
    assert_int_equal(fd, -1);
    end_elsewhere(pid, pipes);
    assert_int_equal(mount_remove(AT_FDCWD, at(scratch, "t"), &scratch->err), 0);
}

static void test_busy_mount_is_said_to_be_busy(void **state)
{
    struct scratch *scratch = *state;

    need_root();
    assert_return_code(mkdir(at(scratch, "t"), 0755), 0);
    assert_int_equal(mount_small(at(scratch, "t"), 1 << 20, 0700, &scratch->err), 0);
    int fd = open(at(scratch, "t"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(mount_remove(AT_FDCWD, at(scratch, "t"), &scratch->err), ERR_AGAIN);
    assert_int_equal(scratch->err.os, EBUSY);
    assert_return_code(close(fd), 0);
    assert_int_equal(mount_remove(AT_FDCWD, at(scratch, "t"), &scratch->err), 0);
}

static void test_remove_does_not_follow_a_link_to_a_mount(void **state)
{
    struct scratch *scratch = *state;
    char target[PATH_SIZE];

    need_root();
    assert_return_code(mkdir(at(scratch, "t"), 0755), 0);
    (void)text_copy(target, sizeof(target), scratch->text);
    assert_return_code(symlink(target, at(scratch, "link")), 0);
    assert_int_equal(mount_small(target, 1 << 20, 0700, &scratch->err), 0);
    assert_int_equal(mount_is_point(AT_FDCWD, at(scratch, "link"), &scratch->err), 0);
    assert_int_equal(mount_remove(AT_FDCWD, at(scratch, "link"), &scratch->err), 0);
    assert_int_equal(mount_is_point(AT_FDCWD, target, &scratch->err), 1);
    assert_int_equal(mount_remove(AT_FDCWD, target, &scratch->err), 0);
}

struct seen {
    char points[8][PATH_SIZE];
    size_t count, stop_after;
};

static bool see(void *ctx, const char *point)
{
    struct seen *seen = ctx;

    assert_true(seen->count < COUNT_OF(seen->points));
    (void)text_copy(seen->points[seen->count++], PATH_SIZE, point);
    return seen->count != seen->stop_after;
}

static void assert_points(struct scratch *scratch, const struct seen *seen, size_t count,
                          const char *const *names)
{
    assert_int_equal(seen->count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(seen->points[i], at(scratch, names[i]));
}

static void test_each_below_finds_odd_names_and_no_neighbours(void **state)
{
    struct scratch *scratch = *state;
    static struct seen seen;
    const char *names[] = {"a/tab\there\\and#", "a/with space", "a", "ab"};

    need_root();
    assert_return_code(mkdir(at(scratch, "a"), 0755), 0);
    assert_return_code(mkdir(at(scratch, "ab"), 0755), 0);
    for (size_t i = COUNT_OF(names); i > 0; i--) {
        (void)mkdir(at(scratch, names[i - 1]), 0755); /* a and ab are there */
        assert_int_equal(mount_small(scratch->text, 1 << 20, 0755, &scratch->err), 0);
    }
    seen = (struct seen){0};
    assert_int_equal(mount_each_below(AT_FDCWD, at(scratch, "a/"), see, &seen, &scratch->err), 0);
    assert_points(scratch, &seen, 3, names); /* children first; "ab" is not below "a" */
    seen = (struct seen){.stop_after = 1};
    assert_int_equal(mount_each_below(AT_FDCWD, at(scratch, "a"), see, &seen, &scratch->err), 0);
    assert_int_equal(seen.count, 1);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_int_equal(mount_remove(AT_FDCWD, at(scratch, names[i]), &scratch->err), 0);
}

static size_t count_below(struct scratch *scratch, const char *name)
{
    static struct seen seen;

    seen = (struct seen){0};
    assert_int_equal(mount_each_below(AT_FDCWD, at(scratch, name), see, &seen, &scratch->err), 0);
    return seen.count;
}

/* The table is not read again unless it has changed, whoever changed it, and in what namespace. */
static void test_each_below_sees_every_change(void **state)
{
    struct scratch *scratch = *state;

    need_root();
    assert_return_code(mkdir(at(scratch, "a"), 0755), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(count_below(scratch, "a"), 0);
        assert_return_code(mount("none", at(scratch, "a"), "tmpfs", 0, NULL), 0);
        assert_int_equal(count_below(scratch, "a"), 1);
        assert_int_equal(count_below(scratch, "a"), 1);
        pid_t other = fork();
        if (other == 0)
            _exit(umount(at(scratch, "a")) == 0 ? 0 : 1);
        int status;
        assert_int_equal(waitpid(other, &status, 0), other);
        assert_int_equal(status, 0);
        assert_int_equal(count_below(scratch, "a"), 0);
    }
    pid_t apart = fork();
    if (apart == 0) {
        bool sees = unshare(CLONE_NEWNS) == 0 &&
                    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                    mount("none", at(scratch, "a"), "tmpfs", 0, NULL) == 0 &&
                    count_below(scratch, "a") == 1;
        _exit(sees ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(apart, &status, 0), apart);
    assert_int_equal(status, 0);
    assert_int_equal(count_below(scratch, "a"), 0);
}

static void test_each_below_gives_an_order_to_unmount_in(void **state)
{
    struct scratch *scratch = *state;
    static struct seen seen;
    char old[PATH_SIZE];

    need_root();
    /* An old mount moved into a younger one, and a third one that hides both. */
    assert_return_code(mkdir(at(scratch, "old"), 0755), 0);
    assert_return_code(mkdir(at(scratch, "top"), 0755), 0);
    assert_int_equal(mount_small(at(scratch, "old"), 1 << 20, 0755, &scratch->err), 0);
    assert_return_code(mount(NULL, scratch->text, NULL, MS_PRIVATE, NULL), 0);
    (void)text_copy(old, sizeof(old), scratch->text);
    assert_int_equal(mount_small(at(scratch, "top"), 1 << 20, 0755, &scratch->err), 0);
    assert_return_code(mkdir(at(scratch, "top/in"), 0755), 0);
    int moved = mount(old, at(scratch, "top/in"), NULL, MS_MOVE, NULL);
    if (moved != 0) /* a shared parent forbids moving */
        assert_int_equal(mount_remove(AT_FDCWD, old, &scratch->err), 0);
    assert_return_code(mount("tmpfs", at(scratch, "top"), "tmpfs", 0, NULL), 0);

    seen = (struct seen){0};
    assert_int_equal(mount_each_below(AT_FDCWD, at(scratch, "top"), see, &seen, &scratch->err), 0);
    assert_points(scratch, &seen, moved == 0 ? 3 : 2,
                  moved == 0 ? (const char *[]){"top", "top/in", "top"}
                             : (const char *[]){"top", "top"});
    for (size_t i = 0; i < seen.count; i++)
        assert_return_code(umount2(seen.points[i], UMOUNT_NOFOLLOW), 0);
    assert_int_equal(mount_is_point(AT_FDCWD, at(scratch, "top"), &scratch->err), 0);
}

static void test_each_below_follows_links_in_the_directory_and_keeps_its_name(void **state)
{
    struct scratch *scratch = *state;
    static struct seen seen;
    char real[PATH_SIZE];

    need_root();
    assert_int_equal(directory_make_all(at(scratch, "real/t"), 0755, &scratch->err), 0);
    (void)text_copy(real, sizeof(real), at(scratch, "real"));
    assert_return_code(symlink(real, at(scratch, "data")), 0);
    assert_int_equal(mount_small(at(scratch, "data/t"), 1 << 20, 0755, &scratch->err), 0);
    seen = (struct seen){0};
    assert_int_equal(mount_each_below(AT_FDCWD, at(scratch, "data/t"), see, &seen, &scratch->err),
                     0);
    assert_points(scratch, &seen, 1, (const char *[]){"data/t"});
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "data/t"), &scratch->err), ERR_AGAIN);
    assert_int_equal(mount_remove(AT_FDCWD, at(scratch, "data/t"), &scratch->err), 0);
}

static void test_facts_agree_with_the_machine(void **state)
{
    struct scratch *scratch = *state;
    struct host_facts facts;
    char hostname[256] = "";

    assert_int_equal(host_read_facts(at(scratch, "none"), &facts, &scratch->err), ERR_GONE);
    assert_int_equal(host_read_facts(scratch->path, &facts, &scratch->err), 0);
    assert_return_code(gethostname(hostname, sizeof(hostname) - 1), 0);
    assert_string_equal(facts.hostname, hostname);
    assert_string_equal(facts.kernel_name, "Linux");
    assert_int_equal(facts.cpu_cores, sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(facts.cpu_mhz >= 1);
    assert_int_equal(facts.memory_bytes / 4096, sysconf(_SC_PHYS_PAGES));
    assert_true(facts.disk_bytes > facts.disk_free_bytes);
    assert_true(facts.disk_device[0] != '\0');
    assert_true(facts.disk_mountpoint[0] == '/');
    assert_true(facts.ip_address[0] != '\0');
    assert_true(facts.network_interface[0] != '\0');
    assert_int_equal(facts.numa_count > 0, access("/sys/devices/system/node/node0", F_OK) == 0);
    for (size_t i = 0; i < facts.numa_count; i++)
        assert_true(i == 0 || facts.numa[i].number > facts.numa[i - 1].number);
    if (facts.numa_count == 1 && facts.cpu_cores > 1 &&
        facts.cpu_cores == sysconf(_SC_NPROCESSORS_CONF)) { /* then all are in it */
        char all[32];

        assert_true(text_format(all, sizeof(all), "0-%u", facts.cpu_cores - 1));
        assert_string_equal(facts.numa[0].cores, all);
    }
}

static void test_stats_add_up(void **state)
{
    struct scratch *scratch = *state;
    struct host_cpu_times cpu = {0};
    struct host_stats stats;

    assert_int_equal(host_read_stats(at(scratch, "none"), &cpu, &stats, &scratch->err), ERR_GONE);
    for (int i = 0; i < 2;
         i++) { /* the second call has no time between and must not divide by it */
        assert_int_equal(host_read_stats(scratch->path, &cpu, &stats, &scratch->err), 0);
        assert_true(stats.memory_used < stats.memory_total);
        assert_true(stats.memory_available <= stats.memory_total);
        assert_true(stats.disk_used + stats.disk_available <= stats.disk_size);
        assert_true(stats.inodes_used <= stats.inodes);
        assert_true(stats.uptime_s > 0);
        assert_true(stats.cpu.total >= 0 && stats.cpu.total <= 100);
        assert_true(stats.cpu.user + stats.cpu.system + stats.cpu.idle <= 100.01);
        assert_int_equal(stats.cpus_count, sysconf(_SC_NPROCESSORS_ONLN));
        for (unsigned c = 0; c < stats.cpus_count; c++) {
            assert_true(stats.cpus[c].total >= 0 && stats.cpus[c].total <= 100);
            assert_true(c == 0 || stats.cpus[c].number > stats.cpus[c - 1].number);
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_not_mounted_is_no_point),
        TEST(test_remove_of_what_is_not_mounted_is_success),
        TEST(test_tmpfs_has_its_size_mode_and_flags),
        TEST(test_tmpfs_on_another_file_system_is_refused),
        TEST(test_mounts_that_another_process_sees_are_brought_here),
        TEST(test_mount_that_another_process_does_not_see_is_none),
        TEST(test_busy_mount_is_said_to_be_busy),
        TEST(test_remove_does_not_follow_a_link_to_a_mount),
        TEST(test_each_below_finds_odd_names_and_no_neighbours),
        TEST(test_each_below_sees_every_change),
        TEST(test_each_below_gives_an_order_to_unmount_in),
        TEST(test_each_below_follows_links_in_the_directory_and_keeps_its_name),
        TEST(test_facts_agree_with_the_machine),
        TEST(test_stats_add_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
