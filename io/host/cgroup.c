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
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Creating a parent races with the removal of its last other child. */
enum { CREATE_ATTEMPTS_MAX = 8 };

/* --- making, entering, limiting --- */

/* On v2 a child has the controllers that its parent hands down.  What the machine does not give is
 * not used, so failing is fine.  But where processes are, which memory refuses first, the others
 * would be handed down to threads, and no child could have a process any more. */
static void hand_down_controllers(enum cgroup_mode mode, const char *directory)
{
    struct cgroup_path file;

    if (mode == CGROUP_V2 &&
        text_format(file.text, sizeof(file.text), "%s/cgroup.subtree_control", directory)) {
        if (small_file_write(AT_FDCWD, file.text, "+memory") == -EBUSY)
            return;
        (void)small_file_write(AT_FDCWD, file.text, "+cpu"); /* see above */
        (void)small_file_write(AT_FDCWD, file.text, "+pids");
        (void)small_file_write(AT_FDCWD, file.text, "+cpuset");
    }
}

/* Makes PATH and the parents it lacks below the hierarchy's root. */
static int make_path(enum cgroup_mode mode, struct cgroup_path *path)
{
    for (int attempt = 0; attempt < CREATE_ATTEMPTS_MAX; attempt++) {
        if (mkdir(path->text, 0755) == 0 || errno == EEXIST)
            return 0;
        if (errno != ENOENT)
            return -errno;
        hand_down_controllers(mode, CGROUP_ROOT); /* systemd needs not all of them */
        for (char *slash = strchr(path->text + strlen(CGROUP_ROOT) + 1, '/'); slash != NULL;
             slash = strchr(slash + 1, '/')) {
            *slash = '\0';
            int made = mkdir(path->text, 0755);
            int os = errno;
            if (made == 0 || os == EEXIST)
                hand_down_controllers(mode, path->text);
            *slash = '/';
            if (made != 0 && os != EEXIST && os != ENOENT)
                return -os;
        }
    }
    return -EAGAIN;
}

int cgroup_create(enum cgroup_mode mode, const char *name, struct err *err)
{
    struct cgroup_path path;
    int code = cgroup_path_of(mode, name, &path, err);

    if (code != 0 || mode == CGROUP_NONE)
        return code;
    code = make_path(mode, &path);
    if (code != 0)
        return err_os(err, err_from_errno(-code), -code, "cannot create the cgroup %s", name);
    return 0;
}

static int enter_path(const struct cgroup_path *path, const char *file, pid_t pid)
{
    char number[16];
    scoped_fd int fd = open(path->text, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    (void)text_format(number, sizeof(number), "%d", (int)pid); /* fits */
    return small_file_write(fd, file, number);
}

/* A thread that moves itself waits for nobody; for a whole process the kernel first waits until no
 * other process forks or ends, for milliseconds. */
static const char *entrance(pid_t pid)
{
    return pid == 0 ? "tasks" : "cgroup.procs";
}

int cgroup_enter_controllers(enum cgroup_mode mode, const char *name, pid_t pid, struct err *err)
{
    struct cgroup_path path;

    for (int i = 0; i < CONTROLLER_COUNT; i++) {
        if (!cgroup_controller_path(mode, (enum cgroup_controller)i, name, &path))
            break;
        int code = enter_path(&path, entrance(pid), pid);
        if (code != 0 && code != -ENOENT) /* no limit was set there */
            return err_os(err, err_from_errno(-code), -code, "cannot enter the cgroup %s", name);
    }
    return 0;
}

int cgroup_enter(enum cgroup_mode mode, const char *name, pid_t pid, struct err *err)
{
    struct cgroup_path path;
    int code = cgroup_path_of(mode, name, &path, err);

    if (code != 0 || mode == CGROUP_NONE)
        return code;
    if (pid < 0)
        return err_set(err, ERR_INVALID, "%d is not a process", (int)pid);
    code = enter_path(&path, mode == CGROUP_V1 ? entrance(pid) : "cgroup.procs", pid);
    if (code != 0)
        return err_os(err, err_from_errno(-code), -code, "cannot enter the cgroup %s", name);
    return cgroup_enter_controllers(mode, name, pid, err);
}

/* Into the cgroup that NAME's first LENGTH bytes are, or the nearest one above that is there. */
static int enter_nearest(const char *hierarchy, const char *name, size_t length)
{
    struct cgroup_path path;
    int code = -ENOENT;

    for (;; length--) {
        if (name[length] != '/' && name[length] != '\0' && length > 0)
            continue;
        if (text_format(path.text, sizeof(path.text), CGROUP_ROOT "/%s/%.*s", hierarchy,
                        (int)length, name))
            code = enter_path(&path, entrance(0), 0);
        if (code != -ENOENT || length == 0)
            return code;
    }
}

void cgroup_enter_unit(enum cgroup_mode mode, const char *name)
{
    /* The first is systemd's own; cpuset and freezer it leaves alone. */
    static const char *const hierarchies[] = {"systemd", "memory", "cpu",    "cpuacct",
                                              "pids",    "blkio",  "devices"};
    struct cgroup_path path;
    size_t length = 0;

    if (mode != CGROUP_HYBRID && mode != CGROUP_V1)
        return;
    /* from above: most machines have none of them, and one that is not there has none below it */
    while (name[length] != '\0') {
        size_t longer = length + 1 + strcspn(name + length + 1, "/");
        if (!text_format(path.text, sizeof(path.text), CGROUP_ROOT "/systemd/%.*s", (int)longer,
                         name) ||
            access(path.text, F_OK) != 0)
            break;
        length = longer;
    }
    for (size_t i = 0; length > 0 && i < COUNT_OF(hierarchies); i++)
        (void)enter_nearest(hierarchies[i], name, length); /* else we stay where we are */
}

/* A cpuset of v1 that has nothing of FILE gets what the cgroup above it has. */
static int inherit(const char *directory, const char *file)
{
    char path[CGROUP_PATH_SIZE + 32], text[256];

    (void)text_format(path, sizeof(path), "%s/%s", directory, file); /* fits */
    int code = small_file_read(AT_FDCWD, path, text, sizeof(text));
    if (code < 0 || text[strspn(text, "\n")] != '\0')
        return code < 0 ? code : 0;
    (void)text_format(path, sizeof(path), "%s/../%s", directory, file); /* fits */
    code = small_file_read(AT_FDCWD, path, text, sizeof(text));
    (void)text_format(path, sizeof(path), "%s/%s", directory, file); /* fits */
    return code < 0 ? code : small_file_write(AT_FDCWD, path, text);
}

/* On v1 one has to have memory, and all above it processors, before it can have any of them. */
static int inherit_all(struct cgroup_path *path, size_t root_length)
{
    int code = 0;

    for (char *slash = path->text + root_length; slash != NULL && code == 0;) {
        slash = strchr(slash + 1, '/');
        if (slash != NULL)
            *slash = '\0';
        code = inherit(path->text, "cpuset.mems");
        if (code == 0 && slash != NULL)
            code = inherit(path->text, "cpuset.cpus");
        if (slash != NULL)
            *slash = '/';
    }
    return code;
}

/* Opens the directory of NAME in which what CONTROLLER bounds is written down, and on v1 makes it:
 * mostly those above are there, and nothing else is asked.  -1 when the machine has no such
 * controller. */
static int open_limits(enum cgroup_mode mode, enum cgroup_controller controller, const char *name,
                       int *ret_fd)
{
    struct cgroup_path path, root;
    int code = 0;

    *ret_fd = -1;
    if (mode == CGROUP_V2) {
        code = cgroup_path_of(mode, name, &path, NULL);
    } else if (!cgroup_controller_path(mode, controller, name, &path) ||
               !cgroup_controller_path(mode, controller, ".", &root)) {
        return 0;
    } else if (mkdir(path.text, 0755) != 0 && errno != EEXIST) {
        if (!cgroup_is_mounted(root.text, CGROUP_SUPER_MAGIC))
            return 0;
        code = make_path(mode, &path);
    }
    if (code == 0 && mode != CGROUP_V2 && controller == CONTROLLER_CPUSET)
        code = inherit_all(&path, strlen(root.text) - 2);
    if (code == 0)
        *ret_fd = open(path.text, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return code != 0 || *ret_fd >= 0 ? code : -errno;
}

static int limit_write(int directory_fd, const char *file, const char *text)
{
    int code = small_file_write(directory_fd, file, text);

    return code == -ENOENT ? 0 : code; /* the hierarchy has no such controller */
}

static void write_number(char to[24], uint64_t value)
{
    (void)text_format(to, 24, "%llu", (unsigned long long)value); /* fits */
}

int cgroup_limit(enum cgroup_mode mode, const char *name, const struct cgroup_limits *limits,
                 struct err *err)
{
    bool bounded = limits->memory_bytes_max > 0;
    uint64_t part = mode == CGROUP_V2 ? limits->cpu_weight : limits->cpu_shares;
    char numbers[3][24];
    const struct {
        bool wanted;
        enum cgroup_controller controller;
        const char *file_v1, *file_v2, *text;
    } settings[] = {
        {bounded, CONTROLLER_MEMORY, "memory.limit_in_bytes", "memory.max", numbers[0]},
        {bounded, CONTROLLER_MEMORY, "memory.swappiness", "memory.swap.max", "0"},
        {limits->memory_bytes_low > 0, CONTROLLER_MEMORY, "memory.soft_limit_in_bytes",
         "memory.low", numbers[1]},
        {part > 0, CONTROLLER_CPU, "cpu.shares", "cpu.weight", numbers[2]},
        {limits->cpus != NULL, CONTROLLER_CPUSET, "cpuset.cpus", "cpuset.cpus", limits->cpus},
    };
    struct cgroup_path path;
    scoped_fd int fd = -1;
    int opened = -1, code = cgroup_path_of(mode, name, &path, err);

    if (code != 0 || mode == CGROUP_NONE)
        return code;
    write_number(numbers[0], limits->memory_bytes_max);
    write_number(numbers[1], limits->memory_bytes_low);
    write_number(numbers[2], part);
    for (size_t i = 0; i < COUNT_OF(settings) && code == 0; i++) {
        if (!settings[i].wanted)
            continue;
        if (opened < 0 || (mode != CGROUP_V2 && opened != (int)settings[i].controller)) {
            if (fd >= 0)
                (void)close(fd);
            code = open_limits(mode, settings[i].controller, name, &fd);
            opened = (int)settings[i].controller;
        }
        if (code == 0 && fd >= 0)
            code = limit_write(fd, mode == CGROUP_V2 ? settings[i].file_v2 : settings[i].file_v1,
                               settings[i].text);
    }
    if (code != 0)
        return err_os(err, err_from_errno(-code), -code, "cannot limit the cgroup %s", name);
    return 0;
}

/* --- processors --- */

bool cgroup_has_own_cpus(enum cgroup_mode mode, const char *name)
{
    char file[CGROUP_PATH_SIZE + 32], text[64];
    struct cgroup_path path;

    if (mode != CGROUP_V2)
        return cgroup_controller_path(mode, CONTROLLER_CPUSET, name, &path) &&
               access(path.text, F_OK) == 0;
    if (cgroup_path_of(mode, name, &path, NULL) != 0)
        return false;
    (void)text_format(file, sizeof(file), "%s/cpuset.cpus", path.text); /* fits */
    return small_file_read(AT_FDCWD, file, text, sizeof(text)) > 0 &&
           text[strspn(text, "\n")] != '\0';
}

bool cgroup_has_cpus_of(const char *name, pid_t pid)
{
    char file[32], text[CGROUP_NAME_SIZE + 2];

    (void)text_format(file, sizeof(file), "/proc/%d/cpuset", (int)pid); /* fits */
    if (small_file_read(AT_FDCWD, file, text, sizeof(text)) <= 0)
        return false;
    text[strcspn(text, "\n")] = '\0';
    return text[0] == '/' && text_equal(text + 1, name);
}

/* --- asking, killing, removing --- */

int cgroup_events_open(enum cgroup_mode mode, const char *name, int *ret_fd, struct err *err)
{
    struct cgroup_path path;
    int code = cgroup_path_of(mode, name, &path, err);

    if (code != 0)
        return code;
    if (mode != CGROUP_V2 && mode != CGROUP_HYBRID)
        return err_set(err, ERR_UNSUPPORTED, "cgroups of kind %s do not tell when they are empty",
                       cgroup_mode_name(mode));

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

static int look_for_process(void *ctx, int fd)
{
    return *(bool *)ctx ? 0 : cgroup_walk_processes(fd, stop_at_first, ctx);
}

int cgroup_populated(enum cgroup_mode mode, const char *name, struct err *err)
{
    struct cgroup_path path;
    char text[128];
    bool found = false;
    int code = cgroup_path_of(mode, name, &path, err);

    if (code != 0 || mode == CGROUP_NONE)
        return code;

    scoped_fd int fd = open(path.text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        code = -errno;
    } else if (mode == CGROUP_V1) {
        code = cgroup_walk(fd, look_for_process, &found);
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

int cgroup_kill(enum cgroup_mode mode, const char *name, struct err *err)
{
    struct cgroup_path path;
    int code = cgroup_path_of(mode, name, &path, err);

    if (code != 0 || mode == CGROUP_NONE)
        return code;
    if (mode == CGROUP_V1)
        return cgroup_kill_frozen(mode, name, &path, err);

    scoped_fd int fd = open(path.text, O_PATH | O_DIRECTORY | O_CLOEXEC);
    code = fd < 0 ? -errno : small_file_write(fd, "cgroup.kill", "1");
    if (code == -ENOENT && fd >= 0)
        return cgroup_kill_frozen(mode, name, &path, err); /* before Linux 5.14 */
    if (code != 0 && code != -ENOENT && code != -ENODEV)
        return err_os(err, err_from_errno(-code), -code, "cannot kill the cgroup %s", name);
    return 0;
}

static int remove_path(const struct cgroup_path *path)
{
    if (rmdir(path->text) == 0 || errno == ENOENT)
        return 0;
    if (errno != EBUSY && errno != ENOTEMPTY)
        return -errno;

    scoped_fd int fd = open(path->text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = fd < 0 ? -errno : cgroup_remove_below(fd);
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

int cgroup_remove(enum cgroup_mode mode, const char *name, struct err *err)
{
    struct cgroup_path path, root;
    int code = cgroup_path_of(mode, name, &path, err);

    if (code != 0 || mode == CGROUP_NONE)
        return code;
    code = remove_path(&path);
    if (code == 0)
        remove_empty_parents(&path, strlen(cgroup_root(mode)));
    for (int i = 0; code == 0 && i < CONTROLLER_COUNT; i++) {
        if (!cgroup_controller_path(mode, (enum cgroup_controller)i, name, &path) ||
            !cgroup_controller_path(mode, (enum cgroup_controller)i, "", &root))
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
