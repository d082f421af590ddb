/*
 * What a key is called on disk and in the cgroup tree, and who holds its lock.
 *
 * Alloc and task come from outside: they become parts of paths only after it was checked that they
 * are plain names.
 */
#include "drivers/private.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static bool is_plain(const char *name)
{
    if (*name == '\0' || *name == '.')
        return false;
    for (const char *at = name; *at != '\0'; at++) {
        if (*at == '/' || iscntrl((unsigned char)*at))
            return false;
    }
    return true;
}

int key_path(const struct driver_key *key, char to[KEY_PATH_SIZE], struct err *err)
{
    if (!uuid_is_valid(key->alloc))
        return err_set(err, ERR_INVALID, "\"%s\" is not the id of an alloc", key->alloc);
    if (!is_plain(key->task))
        return err_set(err, ERR_INVALID, "\"%s\" is not a name for a task", key->task);
    check(text_format(to, KEY_PATH_SIZE, "%s/%s.%u", key->alloc, key->task, key->generation));
    return 0;
}

bool key_from_parts(const char *alloc, const char *name, struct driver_key *ret_key)
{
    struct driver_key key = {.driver = ""};
    const char *dot = strrchr(name, '.');
    uint64_t generation;

    if (dot == NULL || !uuid_is_valid(alloc) || !text_to_u64(dot + 1, &generation) ||
        generation > UINT32_MAX || (size_t)(dot - name) >= sizeof(key.task))
        return false;
    (void)text_copy(key.alloc, sizeof(key.alloc), alloc); /* an id: fits */
    memcpy(key.task, name, (size_t)(dot - name));
    key.generation = (uint32_t)generation;
    if (!is_plain(key.task))
        return false;
    *ret_key = key;
    return true;
}

void key_cgroup(const char *node_mark, const struct driver_key *key, char to[CGROUP_NAME_SIZE])
{
    check(text_format(to, CGROUP_NAME_SIZE, "cairn/%s/%s.%s.%u", node_mark, key->alloc, key->task,
                      key->generation));
}

void shims_cgroup(const char *node_mark, char to[CGROUP_NAME_SIZE])
{
    check(text_format(to, CGROUP_NAME_SIZE, "cairn/%s/shims", node_mark));
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

static int make_directories(int shim_fd, const struct driver_key *key, const char *path)
{
    if (mkdirat(shim_fd, path, 0700) == 0 || errno == EEXIST)
        return 0;
    if (errno != ENOENT || (mkdirat(shim_fd, key->alloc, 0700) != 0 && errno != EEXIST))
        return -errno;
    return mkdirat(shim_fd, path, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

int key_lock_take(int shim_fd, const struct driver_key *key, bool create,
                  enum lock_state *ret_state, int *ret_fd, bool *ret_begun, struct err *err)
{
    char path[KEY_PATH_SIZE], lock[KEY_PATH_SIZE + 8];
    struct stat status;
    int code = key_path(key, path, err);

    if (code != 0)
        return code;
    check(text_format(lock, sizeof(lock), "%s/" TASK_FILE, path));
    if (create)
        code = make_directories(shim_fd, key, path);
    int fd = code != 0 ? -1
                       : openat(shim_fd, lock,
                                O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
    if (fd < 0) {
        int os = code != 0 ? -code : errno;

        if (os == ENOENT && !create) {
            *ret_state = LOCK_ABSENT;
            return 0;
        }
        return err_os(err, err_from_errno(os), os, "cannot open the lock of %s", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &status) != 0) {
        int os = errno;

        (void)close(fd); /* nothing was written */
        if (os != EWOULDBLOCK)
            return err_os(err, err_from_errno(os), os, "cannot lock %s", path);
        *ret_state = LOCK_HELD;
        return 0;
    }
    *ret_state = LOCK_FREE;
    *ret_fd = fd;
    *ret_begun = status.st_size > 0;
    return 0;
}

bool key_was_begun(int shim_fd, const struct driver_key *key)
{
    char path[KEY_PATH_SIZE], file[KEY_PATH_SIZE + 8];
    struct stat status;

    if (key_path(key, path, NULL) != 0)
        return false;
    check(text_format(file, sizeof(file), "%s/" TASK_FILE, path));
    return fstatat(shim_fd, file, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_size > 0;
}

int started_read(int shim_fd, const struct driver_key *key, struct started_record *ret_record)
{
    char path[KEY_PATH_SIZE], file[KEY_PATH_SIZE + 8];
    int code = key_path(key, path, NULL);

    if (code != 0)
        return code;
    check(text_format(file, sizeof(file), "%s/" TASK_FILE, path));
    int fd = openat(shim_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_from_errno(errno);
    code = task_file_get(fd, TASK_STARTED_AT, RECORD_MAGIC_STARTED, ret_record, sizeof(*ret_record),
                         NULL);
    (void)close(fd); /* only read from */
    return code;
}

int shim_connect(int shim_fd, const struct driver_key *key, int *ret_fd, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[KEY_PATH_SIZE];
    int code = key_path(key, path, err);

    if (code != 0)
        return code;

    /* Through the directory's descriptor: its own path may be longer than a socket's can be. */
    int directory = openat(shim_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    check(text_format(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" TASK_SOCKET,
                      directory));
    if (directory < 0 || fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        code = err_os(err, err_from_errno(errno), errno, "cannot reach the supervisor of %s", path);
        if (fd >= 0)
            (void)close(fd); /* not connected */
    } else {
        *ret_fd = fd;
    }
    if (directory >= 0)
        (void)close(directory); /* only a name */
    return code;
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

int shim_find(int shim_fd, const char *node_mark, const struct driver_key *key,
              struct proc_identity *ret_identity, struct err *err)
{
    char path[KEY_PATH_SIZE], lock[KEY_PATH_SIZE + 8], shims[CGROUP_NAME_SIZE];
    struct search search = {.found = {.pid = 0}};
    int code = key_path(key, path, err);

    if (code != 0)
        return code;
    check(text_format(lock, sizeof(lock), "%s/" TASK_FILE, path));
    if (fstatat(shim_fd, lock, &search.lock, AT_SYMLINK_NOFOLLOW) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot look at the lock of %s", path);
    shims_cgroup(node_mark, shims);
    code = cgroup_each_process(shims, holds_lock, &search, err);
    if (code != 0)
        return code;
    if (search.found.pid == 0)
        return err_set(err, ERR_GONE, "no supervisor holds the lock of %s", path);
    *ret_identity = search.found;
    return 0;
}

int key_remove_directory(int shim_fd, const char *shim_dir, const struct driver_key *key,
                         struct err *err)
{
    static const char *const names[] = {TASK_SOCKET, TASK_FILE};
    char path[KEY_PATH_SIZE], whole[PATH_SIZE];
    int code = key_path(key, path, err);

    if (code != 0)
        return code;
    int directory = openat(shim_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0 && errno != ENOENT)
        return err_os(err, err_from_errno(errno), errno, "cannot open the directory of %s", path);
    if (directory >= 0) {
        for (size_t i = 0; i < COUNT_OF(names); i++)
            (void)unlinkat(directory, names[i], 0); /* what matters is the rmdir below */
        (void)close(directory);
        if (unlinkat(shim_fd, path, AT_REMOVEDIR) != 0 && errno != ENOENT) {
            code = path_join(whole, shim_dir, path); /* something else lies in it */
            if (code == 0)
                code = tree_remove(whole, err);
            if (code != 0)
                return err_wrap(err, "cannot delete the directory of %s", path);
        }
    }
    (void)unlinkat(shim_fd, key->alloc, AT_REMOVEDIR); /* refuses while other tasks are in it */
    return 0;
}
