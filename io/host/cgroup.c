/*
 * Cgroups: what belongs together, and ending all of it.
 *
 * A payload may fork, daemonise and change its session as it likes: it stays in its cgroup.  That
 * is why the cgroup, and not a pid, is what a task owns (I-1, I-2).  Three kinds of machine: v2,
 * v1, and hybrid, where the v1 controllers are mounted beside a v2 hierarchy that tracks and kills
 * better.  The name of a cgroup is the same on all of them.
 */
#include "io/host/cgroup.h"

#include "io/host/part.h"
#include "io/host/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"

/* Creating a parent races with the removal of its last other child. */
enum { CREATE_ATTEMPTS_MAX = 8 };

static enum cgroup_mode mode_found;
static bool mode_known;

static bool is_mounted(const char *path, long magic)
{
    struct statfs status;

    return statfs(path, &status) == 0 && status.f_type == magic && access(path, W_OK) == 0;
}

static enum cgroup_mode mode_look(void)
{
    if (is_mounted(ROOT, CGROUP2_SUPER_MAGIC))
        return CGROUP_V2;
    if (is_mounted(ROOT "/unified", CGROUP2_SUPER_MAGIC))
        return CGROUP_HYBRID;
    if (is_mounted(ROOT "/freezer", CGROUP_SUPER_MAGIC))
        return CGROUP_V1;
    return CGROUP_NONE;
}

enum cgroup_mode cgroup_mode(void)
{
    if (!mode_known)
        cgroup_use_mode(mode_look());
    return mode_found;
}

void cgroup_use_mode(enum cgroup_mode mode)
{
    mode_found = mode;
    mode_known = true;
}

const char *cgroup_mode_name(enum cgroup_mode mode)
{
    switch (mode) {
    case CGROUP_NONE:
        return "none";
    case CGROUP_V2:
        return "v2";
    case CGROUP_HYBRID:
        return "hybrid";
    case CGROUP_V1:
        return "v1";
    }
    unreachable("a mode without a name");
}

/* --- paths --- */

static const char *root_of(enum cgroup_mode mode)
{
    return mode == CGROUP_V2 ? ROOT : mode == CGROUP_V1 ? ROOT "/freezer" : ROOT "/unified";
}

int cgroup_path_of(const char *name, struct cgroup_path *ret_path, struct err *err)
{
    if (*name == '\0' || *name == '/' || strstr(name, "..") != NULL || strchr(name, '\n') != NULL ||
        strlen(name) >= CGROUP_NAME_SIZE)
        return err_set(err, ERR_INVALID, "\"%s\" does not name a cgroup", name);

    check(
        text_format(ret_path->text, sizeof(ret_path->text), "%s/%s", root_of(cgroup_mode()), name));
    return 0;
}

bool cgroup_controller_path(enum cgroup_controller controller, const char *name,
                            struct cgroup_path *ret_path)
{
    static const char *const names[CONTROLLER_COUNT] = {
        [CONTROLLER_MEMORY] = "memory", [CONTROLLER_CPU] = "cpu", [CONTROLLER_CPUACCT] = "cpuacct"};

    if (cgroup_mode() != CGROUP_HYBRID && cgroup_mode() != CGROUP_V1)
        return false;
    return text_format(ret_path->text, sizeof(ret_path->text), ROOT "/%s/%s", names[controller],
                       name);
}

void cgroup_directory(const char *name, char *to, size_t size)
{
    struct cgroup_path path = {.text = ""};

    if (cgroup_mode() == CGROUP_V2 || cgroup_mode() == CGROUP_HYBRID)
        (void)cgroup_path_of(name, &path, NULL); /* "" if it is no name */
    check(text_copy(to, size, path.text));
}

/* --- making, entering, limiting --- */

/* On v2 a child has the controllers that its parent hands down.  What the machine does not give is
 * not used, so failing is fine. */
static void hand_down_controllers(const char *directory)
{
    struct cgroup_path file;

    if (cgroup_mode() == CGROUP_V2 &&
        text_format(file.text, sizeof(file.text), "%s/cgroup.subtree_control", directory)) {
        (void)small_file_write(AT_FDCWD, file.text, "+memory"); /* see above */
        (void)small_file_write(AT_FDCWD, file.text, "+cpu");
        (void)small_file_write(AT_FDCWD, file.text, "+pids");
    }
}

/* Makes PATH and the parents it lacks below the hierarchy's root. */
static int make_path(struct cgroup_path *path)
{
    for (int attempt = 0; attempt < CREATE_ATTEMPTS_MAX; attempt++) {
        if (mkdir(path->text, 0755) == 0 || errno == EEXIST)
            return 0;
        if (errno != ENOENT)
            return -errno;
        for (char *slash = strchr(path->text + strlen(ROOT) + 1, '/'); slash != NULL;
             slash = strchr(slash + 1, '/')) {
            *slash = '\0';
            int made = mkdir(path->text, 0755);
            int os = errno;
            if (made == 0 || os == EEXIST)
                hand_down_controllers(path->text);
            *slash = '/';
            if (made != 0 && os != EEXIST && os != ENOENT)
                return -os;
        }
    }
    return -EAGAIN;
}

int cgroup_create(const char *name, struct err *err)
{
    struct cgroup_path path;
    int code = cgroup_path_of(name, &path, err);

    if (code != 0 || cgroup_mode() == CGROUP_NONE)
        return code;
    code = make_path(&path);
    if (code != 0)
        return err_os(err, err_from_errno(-code), -code, "cannot create the cgroup %s", name);
    return 0;
}

static int enter_path(const struct cgroup_path *path, pid_t pid)
{
    char number[16];
    scoped_fd int fd = open(path->text, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    (void)text_format(number, sizeof(number), "%d", (int)pid); /* fits */
    return small_file_write(fd, "cgroup.procs", number);
}

int cgroup_enter(const char *name, pid_t pid, struct err *err)
{
    struct cgroup_path path;
    int code = cgroup_path_of(name, &path, err);

    if (code != 0 || cgroup_mode() == CGROUP_NONE)
        return code;
    if (pid < 0)
        return err_set(err, ERR_INVALID, "%d is not a process", (int)pid);
    code = enter_path(&path, pid);
    for (int i = 0; code == 0 && i < CONTROLLER_COUNT; i++) {
        if (!cgroup_controller_path((enum cgroup_controller)i, name, &path))
            break;
        code = enter_path(&path, pid);
        code = code == -ENOENT ? 0 : code; /* no limit was set there */
    }
    if (code != 0)
        return err_os(err, err_from_errno(-code), -code, "cannot enter the cgroup %s", name);
    return 0;
}

static int limit_write(const struct cgroup_path *directory, const char *file, uint64_t value)
{
    char number[24];
    scoped_fd int fd = open(directory->text, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    (void)text_format(number, sizeof(number), "%llu", (unsigned long long)value); /* fits */
    int code = small_file_write(fd, file, number);
    return code == -ENOENT ? 0 : code; /* the hierarchy has no such controller */
}

static int limit_v1(enum cgroup_controller controller, const char *name, const char *file,
                    uint64_t value)
{
    struct cgroup_path path, root;

    if (!cgroup_controller_path(controller, name, &path) ||
        !cgroup_controller_path(controller, ".", &root) ||
        !is_mounted(root.text, CGROUP_SUPER_MAGIC))
        return 0;
    int code = make_path(&path);
    return code != 0 ? code : limit_write(&path, file, value);
}

int cgroup_limit(const char *name, const struct cgroup_limits *limits, struct err *err)
{
    struct cgroup_path path;
    int code = cgroup_path_of(name, &path, err);
    bool v2 = cgroup_mode() == CGROUP_V2;

    if (code != 0 || cgroup_mode() == CGROUP_NONE)
        return code;
    if (limits->memory_bytes_max > 0)
        code = v2 ? limit_write(&path, "memory.max", limits->memory_bytes_max)
                  : limit_v1(CONTROLLER_MEMORY, name, "memory.limit_in_bytes",
                             limits->memory_bytes_max);
    if (code == 0 && limits->cpu_shares >= 2) {
        /* The kernel's own mapping of shares (2..262144) to weights (1..10000). */
        uint64_t shares = limits->cpu_shares > 262144 ? 262144 : limits->cpu_shares;
        uint64_t weight = 1 + (shares - 2) * 9999 / 262142;

        code = v2 ? limit_write(&path, "cpu.weight", weight)
                  : limit_v1(CONTROLLER_CPU, name, "cpu.shares", shares);
    }
    if (code != 0)
        return err_os(err, err_from_errno(-code), -code, "cannot limit the cgroup %s", name);
    return 0;
}

/* --- asking, killing, removing --- */

int cgroup_events_open(const char *name, int *ret_fd, struct err *err)
{
    struct cgroup_path path;
    int code = cgroup_path_of(name, &path, err);

    if (code != 0)
        return code;
    if (cgroup_mode() != CGROUP_V2 && cgroup_mode() != CGROUP_HYBRID)
        return err_set(err, ERR_UNSUPPORTED, "cgroups of kind %s do not tell when they are empty",
                       cgroup_mode_name(cgroup_mode()));

    scoped_fd int directory = open(path.text, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = directory < 0 ? -1 : openat(directory, "cgroup.events", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot watch the cgroup %s", name);
    *ret_fd = fd;
    return 0;
}

static bool stop_at_first(void *ctx, pid_t pid)
{
    *(bool *)ctx = pid > 0;
    return false;
}

static int look_for_process(void *ctx, int fd, const char *name)
{
    (void)name;
    return *(bool *)ctx ? 0 : cgroup_walk_processes(fd, stop_at_first, ctx);
}

int cgroup_populated(const char *name, struct err *err)
{
    struct cgroup_path path;
    char text[128];
    bool found = false;
    int code = cgroup_path_of(name, &path, err);

    if (code != 0 || cgroup_mode() == CGROUP_NONE)
        return code;

    scoped_fd int fd = open(path.text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        code = -errno;
    } else if (cgroup_mode() == CGROUP_V1) {
        code = cgroup_walk(fd, 0, look_for_process, &found);
    } else {
        code = small_file_read(fd, "cgroup.events", text, sizeof(text));
        found = code > 0 && strstr(text, "populated 1") != NULL;
    }
    if (code == -ENOENT || code == -ENODEV)
        return 0;
    if (code < 0)
        return err_os(err, err_from_errno(-code), -code, "cannot look into the cgroup %s", name);
    return found ? 1 : 0;
}

int cgroup_kill(const char *name, struct err *err)
{
    struct cgroup_path path;
    int code = cgroup_path_of(name, &path, err);

    if (code != 0 || cgroup_mode() == CGROUP_NONE)
        return code;
    if (cgroup_mode() == CGROUP_V1)
        return cgroup_kill_frozen(name, &path, err);

    scoped_fd int fd = open(path.text, O_PATH | O_DIRECTORY | O_CLOEXEC);
    code = fd < 0 ? -errno : small_file_write(fd, "cgroup.kill", "1");
    if (code == -ENOENT && fd >= 0)
        return cgroup_kill_frozen(name, &path, err); /* before Linux 5.14 */
    if (code != 0 && code != -ENOENT && code != -ENODEV)
        return err_os(err, err_from_errno(-code), -code, "cannot kill the cgroup %s", name);
    return 0;
}

static int remove_child(void *ctx, int fd, const char *name)
{
    (void)ctx;
    if (*name == '\0')
        return 0; /* the top goes by its path */

    scoped_fd int parent = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0 || unlinkat(parent, name, AT_REMOVEDIR) != 0)
        return errno == ENOENT ? 0 : -errno;
    return 0;
}

static int remove_path(const struct cgroup_path *path)
{
    if (rmdir(path->text) == 0 || errno == ENOENT)
        return 0;
    if (errno != EBUSY && errno != ENOTEMPTY)
        return -errno;

    scoped_fd int fd = open(path->text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = fd < 0 ? -errno : cgroup_walk(fd, 0, remove_child, NULL);
    if (code == 0 && rmdir(path->text) != 0)
        code = -errno;
    return code == -ENOENT ? 0 : code;
}

/* Parents stay while they have other children; their directories cannot be lost by this. */
static void remove_empty_parents(struct cgroup_path *path, size_t root_length)
{
    for (;;) {
        char *slash = strrchr(path->text, '/');

        if (slash == NULL || (size_t)(slash - path->text) <= root_length)
            return;
        *slash = '\0';
        if (rmdir(path->text) != 0)
            return;
    }
}

int cgroup_remove(const char *name, struct err *err)
{
    struct cgroup_path path, root;
    int code = cgroup_path_of(name, &path, err);

    if (code != 0 || cgroup_mode() == CGROUP_NONE)
        return code;
    code = remove_path(&path);
    if (code == 0)
        remove_empty_parents(&path, strlen(root_of(cgroup_mode())));
    for (int i = 0; code == 0 && i < CONTROLLER_COUNT; i++) {
        if (!cgroup_controller_path((enum cgroup_controller)i, name, &path) ||
            !cgroup_controller_path((enum cgroup_controller)i, "", &root))
            break;
        if (access(path.text, F_OK) != 0)
            continue; /* no limit was set there */
        code = remove_path(&path);
        if (code == 0)
            remove_empty_parents(&path, strlen(root.text) - 1);
    }
    if (code == -EBUSY || code == -ENOTEMPTY)
        return err_set(err, ERR_AGAIN, "something still lives in the cgroup %s", name);
    if (code != 0)
        return err_os(err, err_from_errno(-code), -code, "cannot remove the cgroup %s", name);
    return 0;
}
