/*
 * What a key is called on disk and in the cgroup tree, and who holds its lock.
 *
 * Alloc and task come from outside: they become parts of paths only after it was checked that they
 * may (spec/names.h).
 */
#include "drivers/part.h"

#include "spec/names.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int key_name(const struct driver_key *key, char to[KEY_NAME_SIZE], struct err *err)
{
    if (!uuid_is_valid(key->alloc))
        return err_set(err, ERR_INVALID, "\"%s\" is not the id of an alloc", key->alloc);
    if (spec_task_name_fault(key->task) != NULL)
        return err_set(err, ERR_INVALID, "\"%s\" is not a name for a task", key->task);
    check(text_format(to, KEY_NAME_SIZE, "%s.%s.%u", key->alloc, key->task, key->generation));
    return 0;
}

bool key_from_name(const char *name, struct driver_key *ret_key)
{
    struct driver_key key = {.driver = ""};
    uint64_t generation;

    (void)text_copy(key.alloc, sizeof(key.alloc), name); /* cut to the length of an id */
    if (!uuid_is_valid(key.alloc) || name[UUID_TEXT_SIZE - 1] != '.')
        return false;
    name += UUID_TEXT_SIZE;
    const char *dot = strrchr(name, '.');
    if (dot == NULL || !text_to_u64(dot + 1, &generation) || generation > UINT32_MAX ||
        (size_t)(dot - name) >= sizeof(key.task))
        return false;
    memcpy(key.task, name, (size_t)(dot - name));
    key.generation = (uint32_t)generation;
    if (spec_task_name_fault(key.task) != NULL)
        return false;
    *ret_key = key;
    return true;
}

bool keys_cgroup(const struct drivers *drivers, bool cores, char to[CGROUP_NAME_SIZE])
{
    check(text_format(to, CGROUP_NAME_SIZE, cores ? "%s/%s-cores" : "%s/%s", drivers->cgroup_parent,
                      drivers->node_mark));
    return !cores || drivers->config.cgroup_mode == CGROUP_V2;
}

void key_cgroup(const struct drivers *drivers, const struct driver_key *key, bool cores,
                char to[CGROUP_NAME_SIZE])
{
    char parent[CGROUP_NAME_SIZE], name[KEY_NAME_SIZE], directory[CGROUP_NAME_SIZE + 64];

    check(key_name(key, name, NULL) == 0);
    if (keys_cgroup(drivers, true, parent)) {
        check(text_format(to, CGROUP_NAME_SIZE, "%s/%s", parent, name));
        cgroup_directory(drivers->config.cgroup_mode, to, directory, sizeof(directory));
        if (cores || access(directory, F_OK) == 0)
            return;
    }
    (void)keys_cgroup(drivers, false, parent); /* which is used everywhere */
    check(text_format(to, CGROUP_NAME_SIZE, "%s/%s", parent, name));
}

void shims_cgroup(const struct drivers *drivers, char to[CGROUP_NAME_SIZE])
{
    check(text_format(to, CGROUP_NAME_SIZE, "%s/%s/shims", drivers->cgroup_parent,
                      drivers->node_mark));
}

uint64_t key_digest(const struct driver_key *key)
{
    uint64_t digest = hash_bytes(0, key->alloc, strlen(key->alloc));

    digest = hash_bytes(digest, key->task, strlen(key->task));
    return hash_u64(digest, key->generation);
}

bool key_equal(const struct driver_key *a, const struct driver_key *b)
{
    return a->generation == b->generation && text_equal(a->alloc, b->alloc) &&
           text_equal(a->task, b->task);
}

int key_lock_take(int shim_fd, const struct driver_key *key, bool create,
                  enum lock_state *ret_state, int *ret_fd, bool *ret_begun, struct err *err)
{
    char name[KEY_NAME_SIZE];
    struct stat status;
    int code = key_name(key, name, err);

    if (code != 0)
        return code;
    /* It is ours: that it is read need not be written down. */
    int fd = openat(shim_fd, name,
                    O_RDWR | O_NOATIME | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
    if (fd < 0 && errno == EROFS && !create) /* to find and stop what runs it need not be written */
        fd = openat(shim_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT && !create) {
        *ret_state = LOCK_ABSENT;
        return 0;
    }
    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot open the file of %s", name);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &status) != 0) {
        int os = errno;

        if (os != EWOULDBLOCK) {
            (void)close(fd); /* nothing was written */
            return err_os(err, err_from_errno(os), os, "cannot lock %s", name);
        }
        *ret_state = LOCK_HELD;
        *ret_fd = fd;
        return 0;
    }
    *ret_state = LOCK_FREE;
    *ret_fd = fd;
    *ret_begun = status.st_size > 0;
    return 0;
}

bool key_was_begun(int shim_fd, const struct driver_key *key)
{
    char name[KEY_NAME_SIZE];
    struct stat status;
    bool begun;

    if (key_name(key, name, NULL) != 0)
        return false;
    int fd = openat(shim_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno != ENOENT; /* what cannot be looked at may have been */
    begun = flock(fd, LOCK_SH | LOCK_NB) != 0 || fstat(fd, &status) != 0 || status.st_size > 0;
    (void)close(fd); /* only read from; releases the lock */
    return begun;
}

int started_read(int shim_fd, const struct driver_key *key, struct started_record *ret_record)
{
    char name[KEY_NAME_SIZE];
    int code = key_name(key, name, NULL);

    if (code != 0)
        return code;
    int fd = openat(shim_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_from_errno(errno);
    code = task_file_get(fd, TASK_STARTED_AT, RECORD_MAGIC_STARTED, ret_record, sizeof(*ret_record),
                         NULL);
    (void)close(fd); /* only read from */
    return code;
}

bool fd_is_kept_back(int shim_fd, int fd)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur <= (rlim_t)shim_fd)
        return false;
    rlim_t half = (files.rlim_cur - (rlim_t)shim_fd) / 2, kept = FILES_KEPT;
    return (rlim_t)fd >= files.rlim_cur - (half < kept ? half : kept);
}

int shim_connect(int shim_fd, const struct driver_key *key, int *ret_fd, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    /* Through the directory's descriptor: its own path may be longer than an address can be. */
    check(text_format(address.sun_path, sizeof(address.sun_path),
                      "/proc/self/fd/%d/" TASK_SOCKET_FORMAT, shim_fd,
                      (unsigned long long)key_digest(key)));
    if (fd >= 0 && fd_is_kept_back(shim_fd, fd)) {
        (void)close(fd); /* not connected */
        fd = -1;
        errno = EMFILE;
    }
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        int code = err_os(err, err_from_errno(errno), errno, "cannot reach the task's supervisor");

        if (fd >= 0)
            (void)close(fd); /* not connected */
        return code;
    }
    *ret_fd = fd;
    return 0;
}

bool shim_greet(int fd)
{
    struct shim_hello hello = {.head = {.kind = SHIM_HELLO},
                               .oldest = SHIM_PROTOCOL_OLDEST,
                               .newest = SHIM_PROTOCOL_NEWEST};

    return send(fd, &hello, sizeof(hello), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(hello);
}

struct search {
    struct stat lock;
    struct proc_identity found;
};

static bool holds_lock(void *ctx, pid_t pid)
{
    struct search *search = ctx;
    struct proc_identity identity;
    struct stat status;
    char path[48];

    check(text_format(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, SHIM_FD_TASK));
    if (proc_identify(pid, &identity, NULL) != 0 || stat(path, &status) != 0 ||
        status.st_dev != search->lock.st_dev || status.st_ino != search->lock.st_ino ||
        !proc_is_alive(&identity))
        return true;
    search->found = identity;
    return false;
}

int shim_find(const struct drivers *drivers, const struct driver_key *key,
              struct proc_identity *ret_identity, struct err *err)
{
    char name[KEY_NAME_SIZE], shims[CGROUP_NAME_SIZE];
    struct search search = {.found = {.pid = 0}};
    int code = key_name(key, name, err);

    if (code != 0)
        return code;
    if (fstatat(drivers->shim_fd, name, &search.lock, AT_SYMLINK_NOFOLLOW) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot look at the file of %s", name);
    shims_cgroup(drivers, shims);
    code = cgroup_each_process(drivers->config.cgroup_mode, shims, holds_lock, &search, err);
    if (code != 0)
        return code;
    if (search.found.pid == 0)
        return err_set(err, ERR_GONE, "no supervisor holds the lock of %s", name);
    *ret_identity = search.found;
    return 0;
}

int key_remove_files(int shim_fd, const struct driver_key *key, struct err *err)
{
    static const char *const ends[] = {"sock", "out", "err"}; /* of TASK_SOCKET_FORMAT, and of
                                                               * external/output.c */
    char name[KEY_NAME_SIZE];
    int code = key_name(key, name, err);

    if (code != 0)
        return code;
    /* The file last: as long as it is there, somebody will come to delete the socket and pipes.
     * Where nothing can be deleted it stays, for the sweep of a daemon that can. */
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        char beside[TASK_SOCKET_SIZE];

        check(text_format(beside, sizeof(beside), "%016llx.%s", (unsigned long long)key_digest(key),
                          ends[i]));
        if (unlinkat(shim_fd, beside, 0) != 0 && errno != ENOENT && errno != EROFS)
            return err_os(err, err_from_errno(errno), errno, "cannot delete the files of %s", name);
    }
    if (unlinkat(shim_fd, name, 0) != 0 && errno != ENOENT && errno != EROFS)
        return err_os(err, err_from_errno(errno), errno, "cannot delete the files of %s", name);
    return 0;
}
