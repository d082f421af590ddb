/*
 * Ending what carries our mark but belongs to no machine (I-1): files, cgroups, and shims whose
 * file somebody deleted.
 *
 * Only by mark, never by looking like ours: what lies in the directory of all shims, in the cgroup
 * of this node, or holds a file that lay in this very directory.
 */
#include "drivers/part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct sweep {
    struct drivers *drivers;
    bool (*keep)(void *ctx, const struct driver_key *key);
    void *keep_ctx;
    struct call *call;             /* the sweep's own completion */
    size_t outstanding;            /* destroys */
    char parent[CGROUP_NAME_SIZE]; /* looked into */
    pid_t *at_hand;                /* shims by number, those that their files lead to; owned */
    size_t at_hand_count;
    struct err first; /* of the failures */
};

static void failed(struct sweep *sweep, const struct err *err)
{
    if (sweep->first.code == 0)
        sweep->first = *err;
}

static void settle(struct sweep *sweep)
{
    if (--sweep->outstanding > 0)
        return;
    if (sweep->first.code == 0)
        call_finish(sweep->drivers, sweep->call, DRIVER_DONE);
    else
        call_fail(sweep->drivers, sweep->call, &sweep->first);
    free(sweep->at_hand);
    free(sweep);
}

static void on_destroyed(void *ctx, const struct driver_result *result)
{
    struct sweep *sweep = ctx;

    if (result->outcome == DRIVER_FAILED)
        failed(sweep, &result->error);
    settle(sweep);
}

static void consider(struct sweep *sweep, const struct driver_key *key)
{
    if (sweep->keep(sweep->keep_ctx, key))
        return;
    sweep->outstanding++;
    driver_destroy(sweep->drivers, key, on_destroyed, sweep);
}

/* --- files --- */

static int sweep_files(struct sweep *sweep, struct err *err)
{
    DIR *directory = opendir(sweep->drivers->shim_dir);
    struct driver_key key;

    if (directory == NULL)
        return err_os(err, err_from_errno(errno), errno, "cannot list %s",
                      sweep->drivers->shim_dir);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (key_from_name(entry->d_name, &key))
            consider(sweep, &key);
    }
    (void)closedir(directory); /* only read from */
    return 0;
}

/* --- cgroups --- */

static bool sweep_cgroup(void *ctx, const char *name)
{
    struct sweep *sweep = ctx;
    enum cgroup_mode mode = sweep->drivers->config.cgroup_mode;
    char whole[CGROUP_NAME_SIZE];
    struct driver_key key;
    struct err err = {0};

    if (text_equal(name, "shims"))
        return true;
    if (key_from_name(name, &key)) {
        consider(sweep, &key);
        return true;
    }
    /* In our place, but not named by us: nothing there can belong to a machine. */
    if (!text_format(whole, sizeof(whole), "%s/%s", sweep->parent, name))
        return true;
    if (cgroup_kill(mode, whole, &err) != 0 || cgroup_remove(mode, whole, &err) != 0) {
        err.recoverable = true;
        failed(sweep, &err);
    }
    return true;
}

/* --- shims --- */

/* Where the kernel tells of the task's file that the shim PID holds. */
static void link_of_shim(pid_t pid, char to[PLACE_PATH_SIZE])
{
    check(text_format(to, PLACE_PATH_SIZE, "/proc/%d/fd/%d", (int)pid, SHIM_FD_TASK));
}

/* The name of that file; false if the shim has ended meanwhile, or is none. */
static bool file_of_shim(pid_t pid, char to[PATH_SIZE])
{
    char link[PLACE_PATH_SIZE];

    link_of_shim(pid, link);
    ssize_t length = readlink(link, to, PATH_SIZE - 1);
    if (length < 0)
        return false;
    to[length] = '\0';
    return true;
}

static bool has_lost_its_file(const struct sweep *sweep, pid_t pid)
{
    char target[PATH_SIZE];

    return file_of_shim(pid, target) && text_starts_with(target, sweep->drivers->shim_dir) &&
           text_ends_with(target, " (deleted)");
}

static int compare_pids(const void *a, const void *b)
{
    const pid_t *left = a, *right = b;

    return *left < *right ? -1 : *left > *right;
}

/* Who was found through its file has it: who wrote in it while it holds the lock, or who listens at
 * the other end, as the kernel says. */
static void note_at_hand(struct sweep *sweep)
{
    const struct drivers *drivers = sweep->drivers;
    struct ucred peer;

    sweep->at_hand = calloc(drivers->runs_count + 1, sizeof(*sweep->at_hand));
    check(sweep->at_hand != NULL);
    for (size_t i = 0; i < drivers->buckets_count; i++) {
        for (const struct run *run = drivers->buckets[i]; run != NULL; run = run->next) {
            socklen_t size = sizeof(peer);

            if (run->phase == RUN_FOUND)
                sweep->at_hand[sweep->at_hand_count++] = run->shim.pid;
            else if (run->is_found &&
                     getsockopt(run->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
                sweep->at_hand[sweep->at_hand_count++] = peer.pid;
        }
    }
    qsort(sweep->at_hand, sweep->at_hand_count, sizeof(pid_t), compare_pids);
}

static bool is_at_hand(const struct sweep *sweep, pid_t pid)
{
    return bsearch(&pid, sweep->at_hand, sweep->at_hand_count, sizeof(pid_t), compare_pids) != NULL;
}

/* Kills a shim whose file is gone: nobody can find it any more, nor be found by it. */
static bool sweep_shim(void *ctx, pid_t pid)
{
    struct sweep *sweep = ctx;
    struct proc_identity identity;
    struct err err = {0};

    if (is_at_hand(sweep, pid))
        return true;
    /* Once more when it is known who that is: the number may have become somebody else's. */
    if (has_lost_its_file(sweep, pid) && proc_identify(pid, &identity, NULL) == 0 &&
        has_lost_its_file(sweep, pid) && proc_signal(&identity, SIGKILL, &err) != 0 &&
        err.code != ERR_GONE)
        failed(sweep, &err);
    return true;
}

struct foreign {
    const struct drivers *drivers;
    struct stat here; /* where the shims of this directory are at work */
    unsigned count;
    char directory[PATH_SIZE]; /* of the last one */
};

static bool is_at_work_here(const struct foreign *foreign, pid_t pid)
{
    char path[PLACE_PATH_SIZE];
    struct stat there;

    check(text_format(path, sizeof(path), "/proc/%d/cwd", (int)pid));
    return stat(path, &there) == 0 && there.st_ino == foreign->here.st_ino &&
           there.st_dev == foreign->here.st_dev;
}

static bool find_foreign(void *ctx, pid_t pid)
{
    struct foreign *foreign = ctx;
    char link[PLACE_PATH_SIZE], target[PATH_SIZE];
    struct stat file, ours;

    link_of_shim(pid, link);
    if (is_at_work_here(foreign, pid) || !file_of_shim(pid, target) || stat(link, &file) != 0 ||
        file.st_nlink == 0)
        return true;
    char *slash = strrchr(target, '/');
    if (slash == NULL ||
        (fstatat(foreign->drivers->shim_fd, slash + 1, &ours, AT_SYMLINK_NOFOLLOW) == 0 &&
         ours.st_ino == file.st_ino && ours.st_dev == file.st_dev))
        return true;
    *slash = '\0';
    foreign->count++;
    (void)text_copy(foreign->directory, sizeof(foreign->directory), target); /* of the same size */
    return true;
}

int drivers_foreign(const struct drivers *drivers, struct err *err)
{
    struct foreign foreign = {.drivers = drivers};
    char shims[CGROUP_NAME_SIZE];

    if (fstat(drivers->shim_fd, &foreign.here) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot look at %s", drivers->shim_dir);
    shims_cgroup(drivers, shims);
    int code = cgroup_each_process(drivers->config.cgroup_mode, shims, find_foreign, &foreign, err);
    if (code == 0 && foreign.count > 0)
        code = err_set(err, ERR_REFUSED,
                       "%u tasks of this node run from %.60s: this directory is a copy. Start it "
                       "once with -take-over to end them and go on here, or move its state "
                       "directory away to make it another node",
                       foreign.count, foreign.directory);
    return code;
}

void drivers_sweep(struct drivers *drivers, bool (*keep)(void *ctx, const struct driver_key *key),
                   void *keep_ctx, driver_done *done, void *ctx)
{
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    enum cgroup_mode mode = drivers->config.cgroup_mode;
    char shims[CGROUP_NAME_SIZE];
    struct err err = {0};

    check(sweep != NULL);
    *sweep = (struct sweep){.drivers = drivers,
                            .keep = keep,
                            .keep_ctx = keep_ctx,
                            .call = call_new(CALL_DESTROY, done, ctx),
                            .outstanding = 1};
    shims_cgroup(drivers, shims);
    note_at_hand(sweep);
    strays_look(drivers);
    int code = sweep_files(sweep, &err);
    if (code == 0)
        code = cgroup_each_process(mode, shims, sweep_shim, sweep, &err);
    for (int cores = 0; code == 0 && cores < 2 && keys_cgroup(drivers, cores == 1, sweep->parent);
         cores++)
        code = cgroup_each_child(mode, sweep->parent, sweep_cgroup, sweep, &err);
    if (code != 0)
        failed(sweep, &err);
    settle(sweep);
}
