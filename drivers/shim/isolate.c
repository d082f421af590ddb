/*
 * What an isolated payload is left with: a root of its own, and no rights but those it was granted.
 *
 * Follows nomad v2.0.5 drivers/shared/executor/executor_linux_cgo.go in what is there: the task's
 * directory is the root, with the directories of the host that the node's chroot_env names, /alloc,
 * /proc, /sys and a small /dev.  Three things are other than there.  Nothing is copied or linked:
 * the host's directories are mounted, to be read only, so that a start costs the same on every
 * machine and root in the payload does not change the host.  No mount of it knows devices but the
 * few that are mounted one by one, so that a device that root makes in it is no device, whatever
 * kind of cgroups the machine has.  And root has what was granted, as any other user, and not all.
 *
 * What is mounted of the host is copied while its mounts are seen.  Then they are left for a
 * namespace with nothing in it, which its root is brought into: what else is mounted on the host,
 * and for how many tasks, costs nothing here and is never seen from within.
 *
 * Names in the task's directory are its user's to exchange.  So all of it is reached beneath
 * descriptors; what is in the way of a mount fails the start of that task and of no other.
 */
#include "drivers/shim/shim.h"

#include "io/host.h"
#include "io/kernel.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OWN = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, CAPABILITIES_MAX = 64 };

static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                      "/dev/random", "/dev/urandom", "/dev/tty"};

/* Copies of what the host has, mounted nowhere yet; -1: it is not there, and need not be. */
struct copies {
    int root, binds[LAUNCH_BINDS_MAX], devices[COUNT_OF(devices)];
};

struct root {
    int fd;             /* the payload's root, mounted */
    int proc, sys, dev; /* and what is mounted in it, once it is */
    char *what;         /* is being done, for the message if it fails */
};

static void doing(const struct root *root, const char *what, const char *name)
{
    (void)text_format(root->what, STEP_TEXT_SIZE, "%s %s", what, name); /* may be cut */
}

/* --- places to mount on --- */

/* Opens NAME in DIRECTORY_FD, made if it is missing: a directory, or an empty file. */
static int make_name(int directory_fd, const char *name, bool is_directory)
{
    int made = is_directory ? mkdirat(directory_fd, name, 0755)
                            : mknodat(directory_fd, name, S_IFREG | 0444, 0);

    if (made != 0 && errno != EEXIST)
        return -errno;
    return beneath_open(directory_fd, name, is_directory ? O_PATH | O_DIRECTORY : O_PATH, 0);
}

/* The place INSIDE, an absolute path, in the payload's root, with the directories that lead to it.
 */
static int make_place(const struct root *root, const char *inside, bool is_directory)
{
    scoped_fd int above = -1;
    char path[PATH_MAX];
    char *rest = path, *name;

    if (!text_copy(path, sizeof(path), inside))
        return -ENAMETOOLONG;
    while ((name = strsep(&rest, "/")) != NULL) {
        if (*name == '\0' || text_equal(name, "."))
            continue;
        bool is_last = rest == NULL || rest[strspn(rest, "/")] == '\0';
        int fd = make_name(above < 0 ? root->fd : above, name, is_directory || !is_last);
        if (fd < 0)
            return fd;
        scope_close_fd(&above);
        above = fd;
    }
    return above < 0 ? -EEXIST : take_fd(&above); /* the root itself is there already */
}

/* NAME is seen from PLACE_FD; "": there itself. */
static int attach(int mount_fd, int place_fd, const char *name)
{
    return move_mount(mount_fd, "", place_fd, name,
                      MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0
               ? 0
               : -errno;
}

/* A copy of what is mounted at PATH, seen from FD, and below it, with ATTRIBUTES added; and what it
 * has to do from then on with what is mounted and unmounted where it was taken. */
static int copy_mount(int fd, const char *path, uint64_t attributes, uint64_t propagation)
{
    struct mount_attr change = {.attr_set = attributes, .propagation = propagation};
    scoped_fd int copy =
        open_tree(fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);

    if (copy < 0 ||
        ((attributes | propagation) != 0 &&
         mount_setattr(copy, "", AT_EMPTY_PATH | AT_RECURSIVE, &change, sizeof(change)) != 0))
        return -errno;
    return take_fd(&copy);
}

/* --- the host's --- */

/* What the link INSIDE leads to in the payload's root, as the payload would find it. */
static int follow(const struct root *root, const char *inside)
{
    char above[PATH_MAX], target[PATH_MAX];
    int fd = beneath_follow(root->fd, inside, O_PATH);

    if (fd != -EXDEV || !text_copy(above, sizeof(above), inside))
        return fd;
    char *name = strrchr(above, '/');
    *name++ = '\0'; /* it is absolute */
    scoped_fd int place = beneath_open(root->fd, above, O_PATH | O_DIRECTORY, 0);
    ssize_t length = place < 0 ? -1 : readlinkat(place, name, target, sizeof(target) - 1);
    if (length <= 0 || target[0] != '/')
        return -EXDEV;
    target[length] = '\0';
    return beneath_follow(root->fd, target, O_PATH);
}

/* Mounts COPY as INSIDE, which is made as what it is, or FOLLOWS a link that is there. */
static int mount_copy(const struct root *root, int copy, const char *inside, bool follows)
{
    struct stat status;

    if (fstat(copy, &status) != 0)
        return -errno;
    scoped_fd int place = make_place(root, inside, S_ISDIR(status.st_mode));
    if (place == -ELOOP && follows)
        place = follow(root, inside);
    return place < 0 ? place : attach(copy, place, "");
}

static uint64_t attributes_of(const struct launch_bind *bind)
{
    return OWN | ((bind->flags & LAUNCH_BIND_READ_ONLY) != 0 ? MOUNT_ATTR_RDONLY : 0u);
}

/* What the host mounts or unmounts there later may come to the payload. */
static int copy_bind(const struct launch_bind *bind, int alloc_fd)
{
    bool in_alloc = (bind->flags & LAUNCH_BIND_IN_ALLOC) != 0;
    scoped_fd int fd = in_alloc ? beneath_open(alloc_fd, bind->host, O_PATH, 0) : -1;
    return !in_alloc ? copy_mount(AT_FDCWD, bind->host, attributes_of(bind), MS_SLAVE)
           : fd < 0  ? fd
                     : copy_mount(fd, "", attributes_of(bind), MS_SLAVE);
}

/* --- what the task has asked for --- */

/* Devices in a directory that is mounted are none to the task, as a rule, but one that is mounted
 * itself is there to be used. */
static uint64_t attributes_of_mount(const struct launch_bind *bind, int host_fd)
{
    struct stat status;
    uint64_t attributes = attributes_of(bind);

    return (bind->flags & LAUNCH_BIND_DEVICES) != 0 ||
                   (fstat(host_fd, &status) == 0 && S_ISBLK(status.st_mode))
               ? attributes & ~(uint64_t)MOUNT_ATTR_NODEV
               : attributes;
}

/* Opens the host's side of BIND; what is said of the descriptor is true of what is copied from it,
 * whoever unmounts it in between. */
static int open_host(const struct launch_bind *bind)
{
    struct statx status;
    bool is_mount = (bind->flags & LAUNCH_BIND_IS_MOUNT) != 0;
    scoped_fd int fd = open(bind->host, O_PATH | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT && is_mount ? -ESTALE : -errno;
    if (is_mount && statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &status) != 0)
        return -errno;
    return !is_mount || (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 ? take_fd(&fd)
                                                                             : -ESTALE;
}

static bool is_mount(const struct launch_bind *bind)
{
    return (bind->flags & LAUNCH_BIND_MOUNT) != 0;
}

/* A copy goes on being one with what is mounted on the host, unless it is told not to. */
static int copy_volume(const struct launch_bind *bind)
{
    bool both = (bind->flags & LAUNCH_BIND_BIDIRECTIONAL) != 0;
    bool follows = (bind->flags & LAUNCH_BIND_HOST_TO_TASK) != 0;
    scoped_fd int fd = open_host(bind);

    return fd < 0 ? fd
                  : copy_mount(fd, "", attributes_of_mount(bind, fd),
                               both      ? 0
                               : follows ? MS_SLAVE
                                         : MS_PRIVATE);
}

/* --- leaving the host's mounts --- */

static int copy_binds(const struct root *root, const struct launch *launch, int alloc_fd, int fds[])
{
    for (size_t i = 0; i < launch->binds_count; i++) {
        const struct launch_bind *bind = &launch->binds[i];

        doing(root, is_mount(bind) ? "open" : "mount", is_mount(bind) ? bind->host : bind->inside);
        fds[i] = is_mount(bind) ? copy_volume(bind) : copy_bind(bind, alloc_fd);
        if (fds[i] == -ENOENT && (bind->flags & LAUNCH_BIND_IF_THERE) != 0)
            fds[i] = -1;
        else if (fds[i] < 0)
            return fds[i];
    }
    return 0;
}

static int copy_devices(const struct root *root, int fds[])
{
    for (size_t i = 0; i < COUNT_OF(devices); i++) {
        doing(root, "mount", devices[i]);
        fds[i] = copy_mount(AT_FDCWD, devices[i], MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, MS_SLAVE);
        if (fds[i] < 0)
            return fds[i];
    }
    return 0;
}

/* The task's directory: what it is for the payload, with the mounts below it, which are the task's
 * own. */
static int copy_root(const struct root *root, const struct launch *launch, int alloc_fd)
{
    scoped_fd int place = beneath_open(alloc_fd, launch->task_in_alloc, O_PATH | O_DIRECTORY, 0);

    doing(root, "open", "its directory");
    return place < 0 ? place : copy_mount(place, "", OWN, MS_SLAVE);
}

static int copy_all(const struct root *root, const struct launch *launch, struct copies *copies)
{
    scoped_fd int alloc_fd = open(launch->alloc_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    doing(root, "open", "its directory");
    if (alloc_fd < 0)
        return -errno;
    int code = copy_binds(root, launch, alloc_fd, copies->binds);
    if (code == 0)
        code = copies->root = copy_root(root, launch, alloc_fd);
    return code < 0 ? code : copy_devices(root, copies->devices);
}

/* Into a mount namespace of our own with nothing in it.  One that is made of the host's begins with
 * copies of all mounts of the host, among them those of all other tasks, and ends them again. */
static int leave_host(const struct root *root)
{
    doing(root, "leave", "the host's mounts");
    return setns(SHIM_FD_NOTHING, CLONE_NEWNS) == 0 && unshare(CLONE_NEWNS) == 0 ? 0 : -errno;
}

static int mount_binds(const struct root *root, const struct launch *launch, const int fds[],
                       bool mounts)
{
    for (size_t i = 0; i < launch->binds_count; i++) {
        const struct launch_bind *bind = &launch->binds[i];

        if (is_mount(bind) != mounts || fds[i] < 0)
            continue;
        doing(root, "mount", bind->inside);
        int code = mount_copy(root, fds[i], bind->inside,
                              !mounts && (bind->flags & LAUNCH_BIND_FOLLOW) != 0);
        if (code != 0)
            return code;
    }
    return 0;
}

/* --- the kernel's --- */

static const char *name_of(const char *inside)
{
    return strrchr(inside, '/') + 1;
}

/* A new mount as INSIDE, whose directory is open.  What it shows is ours alone, so that names in it
 * are nobody's to exchange. */
static int mount_new(const struct root *root, int directory_fd, const char *type,
                     const char *inside, const struct mount_option *options, uint64_t attributes)
{
    doing(root, "mount", inside);
    scoped_fd int made = mount_make(type, options, (unsigned)attributes);
    if (made < 0)
        return made;
    scoped_fd int place = make_name(directory_fd, name_of(inside), true);
    int code = place < 0 ? place : attach(made, place, "");
    return code != 0 ? code : take_fd(&made);
}

static int mount_kernel(struct root *root)
{
    static const struct mount_option none[] = {{NULL, NULL}};
    static const struct mount_option dev[] = {{"mode", "0755"}, {"size", "64k"}, {NULL, NULL}};
    static const struct mount_option pts[] = {
        {"ptmxmode", "0666"}, {"mode", "0620"}, {"gid", "5"}, {NULL, NULL}};
    static const struct mount_option shm[] = {{"mode", "1777"}, {"size", "65536k"}, {NULL, NULL}};
    const struct {
        const char *type, *inside;
        int *above, *ret_fd;
        const struct mount_option *options;
        uint64_t attributes;
    } mounts[] = {
        {"proc", "/proc", &root->fd, &root->proc, none, OWN | MOUNT_ATTR_NOEXEC},
        {"sysfs", "/sys", &root->fd, &root->sys, none, OWN | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY},
        {"tmpfs", "/dev", &root->fd, &root->dev, dev, OWN | MOUNT_ATTR_NOEXEC},
        {"devpts", "/dev/pts", &root->dev, NULL, pts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC},
        {"tmpfs", "/dev/shm", &root->dev, NULL, shm, OWN | MOUNT_ATTR_NOEXEC},
        {"mqueue", "/dev/mqueue", &root->dev, NULL, none, OWN | MOUNT_ATTR_NOEXEC},
    };

    for (size_t i = 0; i < COUNT_OF(mounts); i++) {
        scoped_fd int fd = mount_new(root, *mounts[i].above, mounts[i].type, mounts[i].inside,
                                     mounts[i].options, mounts[i].attributes);

        if (fd < 0)
            return fd;
        if (mounts[i].ret_fd != NULL)
            *mounts[i].ret_fd = take_fd(&fd);
    }
    return 0;
}

static int mount_devices(const struct root *root, const int fds[])
{
    static const char *const links[][2] = {{"/proc/self/fd", "/dev/fd"},
                                           {"/proc/self/fd/0", "/dev/stdin"},
                                           {"/proc/self/fd/1", "/dev/stdout"},
                                           {"/proc/self/fd/2", "/dev/stderr"},
                                           {"pts/ptmx", "/dev/ptmx"}};
    int code = 0;

    for (size_t i = 0; i < COUNT_OF(devices) && code == 0; i++) {
        const char *name = name_of(devices[i]);

        doing(root, "mount", devices[i]);
        code = mknodat(root->dev, name, S_IFREG | 0444, 0) != 0 ? -errno
                                                                : attach(fds[i], root->dev, name);
    }
    for (size_t i = 0; i < COUNT_OF(links) && code == 0; i++) {
        doing(root, "make", links[i][1]);
        code = symlinkat(links[i][0], root->dev, name_of(links[i][1])) == 0 ? 0 : -errno;
    }
    return code;
}

/* What of the kernel's files tells or does too much.  A kernel has not all of them. */
static int cover_kernel(const struct root *root)
{
    static const struct mount_option empty[] = {{"mode", "0555"}, {"size", "4k"}, {NULL, NULL}};
    const struct {
        const char *what, *inside;
        int in;
        enum { READ_ONLY, NO_FILE, NO_DIRECTORY } cover;
    } covers[] = {
        {"protect", "/proc/bus", root->proc, READ_ONLY},
        {"protect", "/proc/fs", root->proc, READ_ONLY},
        {"protect", "/proc/irq", root->proc, READ_ONLY},
        {"protect", "/proc/sys", root->proc, READ_ONLY},
        {"protect", "/proc/sysrq-trigger", root->proc, READ_ONLY},
        {"hide", "/proc/kcore", root->proc, NO_FILE},
        {"hide", "/proc/keys", root->proc, NO_FILE},
        {"hide", "/proc/timer_list", root->proc, NO_FILE},
        {"hide", "/sys/firmware", root->sys, NO_DIRECTORY},
    };

    for (size_t i = 0; i < COUNT_OF(covers); i++) {
        const char *name = name_of(covers[i].inside);

        doing(root, covers[i].what, covers[i].inside);
        if (faccessat(covers[i].in, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        scoped_fd int cover =
            covers[i].cover == READ_ONLY ? copy_mount(covers[i].in, name, MOUNT_ATTR_RDONLY, 0)
            : covers[i].cover == NO_FILE ? copy_mount(root->dev, "null", MOUNT_ATTR_RDONLY, 0)
                                         : mount_make("tmpfs", empty, OWN | MOUNT_ATTR_RDONLY);
        int code = cover < 0 ? cover : attach(cover, covers[i].in, name);
        if (code != 0)
            return code;
    }
    return 0;
}

/* --- the root --- */

/* A missing one is made and is the user's, who could not write to one of root as Nomad's can, with
 * the capabilities that he has there.  Why it cannot be is found when it is entered. */
static void make_work_dir(const struct root *root, const struct launch *launch)
{
    scoped_fd int there =
        launch->work_dir == NULL ? -1 : beneath_follow(root->fd, launch->work_dir, O_PATH);
    bool missing = launch->work_dir != NULL && there == -ENOENT;
    scoped_fd int made = missing ? make_place(root, launch->work_dir, true) : -1;

    if (made >= 0 && launch->switch_user)
        (void)fchownat(made, "", launch->user_id, launch->group_id, AT_EMPTY_PATH);
}

/* Nothing of the host can be reached any more, but by descriptors, which end with the exec. */
static int enter(const struct root *root)
{
    doing(root, "enter", "its root");
    if (fchdir(root->fd) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 ||
        umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
        return -errno;
    return 0;
}

int isolate_root(const struct launch *launch, char ret_what[STEP_TEXT_SIZE])
{
    struct root root = {.fd = -1, .proc = -1, .sys = -1, .dev = -1, .what = ret_what};
    struct copies copies; /* closed by the exec, as what is in ROOT, or with the process */
    int code = copy_all(&root, launch, &copies);

    if (code == 0)
        code = leave_host(&root);
    if (code == 0)
        code = attach(copies.root, AT_FDCWD, "/");
    root.fd = copies.root;
    if (code == 0)
        code = mount_binds(&root, launch, copies.binds, false);
    if (code == 0)
        code = mount_kernel(&root);
    if (code == 0)
        code = mount_devices(&root, copies.devices);
    if (code == 0)
        code = cover_kernel(&root);
    if (code == 0) /* all else is there by now, so that it may be mounted within */
        code = mount_binds(&root, launch, copies.binds, true);
    if (code != 0)
        return code;
    make_work_dir(&root, launch);
    return enter(&root);
}

/* --- rights --- */

static bool has(uint64_t set, int capability)
{
    return (set >> capability & 1) != 0;
}

/* What is not in the bounding set can never be had again, by no program's bits and no user. */
static int bound(const struct launch *launch)
{
    for (int i = 0; i < CAPABILITIES_MAX; i++) {
        if (has(launch->bounding, i) || prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0)
            continue;
        if (errno == EINVAL)
            return 0; /* the kernel knows no more */
        if (prctl(PR_CAPBSET_READ, i, 0, 0, 0) != 0)
            return -EPERM;
    }
    return 0;
}

/* Of root's the exec makes what the bounding set allows; of anybody else's, the ambient set. */
static int keep(const struct launch *launch)
{
    uint64_t kept = launch->ambient & launch->bounding;
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};

    for (int i = 0; i < 2; i++)
        data[i].permitted = data[i].effective = data[i].inheritable = (uint32_t)(kept >> (32 * i));
    if (syscall(SYS_capset, &head, data) != 0)
        return -errno;
    for (int i = 0; i < CAPABILITIES_MAX; i++) {
        if (has(kept, i) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0) != 0)
            return -errno;
    }
    return 0;
}

/* The keys of the session that the daemon was started in are not the payload's; whoever forbids us
 * to leave them, or has none, keeps the payload off them as well. */
static int leave_keys(void)
{
    long session = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);

    return session >= 0 || errno == ENOSYS || errno == EPERM ? 0 : -errno;
}

int isolate_user(const struct launch *launch)
{
    bool bounded = launch->isolation != 0;
    bool is_root = !launch->switch_user || launch->user_id == 0;
    int code = bounded ? leave_keys() : 0;

    if (code == 0 && bounded)
        code = bound(launch);
    if (code != 0)
        return code;
    if (bounded && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0)
        return -errno;
    if (launch->switch_user &&
        (setgroups(launch->groups_count, launch->groups) != 0 ||
         setresgid(launch->group_id, launch->group_id, launch->group_id) != 0 ||
         setresuid(launch->user_id, launch->user_id, launch->user_id) != 0))
        return -errno;
    if (!bounded)
        return 0;
    code = keep(launch);
    /* A program with another's bits must not make more of a user than it is. */
    if (code == 0 && !is_root && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        code = -errno;
    return code;
}
