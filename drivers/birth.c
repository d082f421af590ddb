/*
 * Making shims: on the pool's threads, a few at once.
 *
 * Who makes a process waits until its program runs, which on a busy machine takes milliseconds,
 * most of them in the queue for a processor.  The loop has better things to do.
 */
#include "drivers/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { INHERITED = 3 };

struct birth {
    struct io_work work;
    struct run *run; /* NULL: it is gone, with all of them; the shim is found by its key */
    birth_done *done;
    int connection;     /* our end */
    int fds[INHERITED]; /* the shim's: the task's file with its lock, its end, the launch record */
    enum cgroup_mode cgroup_mode;
    char *path, *directory; /* owned: the room may close meanwhile */
    char name[KEY_NAME_SIZE], shims[CGROUP_NAME_SIZE];
    uint64_t files_soft;
    pid_t pid;
    struct err err;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* a socket, a lock that the shim has, a record in memory */
    *fd = -1;
}

static void birth_free(struct birth *birth)
{
    close_fd(&birth->connection);
    for (int i = 0; i < INHERITED; i++)
        close_fd(&birth->fds[i]);
    free(birth->path);
    free(birth->directory);
    free(birth);
}

static void spawn(struct io_work *work)
{
    struct birth *birth = work->ctx;
    char cgroup[CGROUP_NAME_SIZE + 64];
    char *const argv[] = {(char[]){"cairn-shim"}, birth->name, NULL}, *const envp[] = {NULL};

    cgroup_directory(birth->cgroup_mode, birth->shims, cgroup, sizeof(cgroup));
    struct proc_spawn spawn = {.path = birth->path,
                               .argv = argv,
                               .envp = envp,
                               .directory = birth->directory,
                               .fds = birth->fds,
                               .fds_count = INHERITED,
                               .cgroup = cgroup[0] == '\0' ? NULL : cgroup,
                               .files_soft = birth->files_soft};
    int code = proc_spawn(&spawn, &birth->pid, NULL, &birth->err);
    if (code == ERR_GONE && cgroup_create(birth->cgroup_mode, birth->shims, NULL) == 0) {
        birth->err = (struct err){0}; /* somebody tidied up our cgroup */
        code = proc_spawn(&spawn, &birth->pid, NULL, &birth->err);
    }
    if (code != 0)
        birth->err.recoverable = true; /* not the job's fault */
    for (int i = 0; i < INHERITED; i++)
        close_fd(&birth->fds[i]); /* so that a shim that ends at once is seen to have ended */
}

static void on_born(struct io_work *work)
{
    struct birth *birth = work->ctx;
    struct run *run = birth->run;

    if (run != NULL) {
        struct drivers *drivers = run->drivers;
        int fd = birth->connection;

        run->birth = NULL;
        drivers->births--;
        birth->connection = -1;
        if (birth->err.code != 0)
            close_fd(&fd);
        else
            run->shim = (struct proc_identity){.pid = birth->pid};
        birth->done(run, fd, &birth->err);
        if (drivers->begin_go_on != NULL)
            drivers->begin_go_on(drivers);
    }
    birth_free(birth);
}

/* Both ends of the connection, of which ours lasts as long as the payload. */
static int connect_ends(struct birth *birth, int shim_fd, struct err *err)
{
    int ends[2];
    int made = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);

    if (made == 0) {
        birth->connection = ends[0];
        birth->fds[1] = ends[1];
    }
    if (made == 0 && fd_is_kept_back(shim_fd, ends[0])) {
        made = -1;
        errno = EMFILE;
    }
    return made == 0 ? 0 : err_os(err, err_from_errno(errno), errno, "cannot make a socket");
}

static int give(struct birth *birth, struct plan *plan, int task_fd, struct err *err)
{
    int code = plan_open(plan, &birth->fds[2], err);

    if (code != 0)
        return code;
    birth->fds[0] = fcntl(task_fd, F_DUPFD_CLOEXEC, 0);
    if (birth->fds[0] < 0)
        code = err_os(err, err_from_errno(errno), errno, "cannot copy a descriptor");
    else
        code = connect_ends(birth, birth->run->drivers->shim_fd, err);
    if (code != 0)
        err->recoverable = true;
    return code;
}

int birth_begin(struct run *run, struct plan *plan, int task_fd, birth_done *done, struct err *err)
{
    struct drivers *drivers = run->drivers;
    struct birth *birth = malloc(sizeof(*birth));

    check(birth != NULL);
    *birth = (struct birth){.run = run,
                            .done = done,
                            .connection = -1,
                            .fds = {-1, -1, -1},
                            .cgroup_mode = drivers->config.cgroup_mode,
                            .path = strdup(drivers->shim_path),
                            .directory = strdup(drivers->shim_dir),
                            .files_soft = drivers->config.files_soft};
    check(birth->path != NULL && birth->directory != NULL);
    check(key_name(&run->key, birth->name, NULL) == 0);
    shims_cgroup(drivers->node_mark, birth->shims);
    int code = give(birth, plan, task_fd, err);
    if (code != 0) {
        birth_free(birth);
        return code;
    }
    check(shim_greet(birth->connection)); /* an empty socket takes it */
    run->birth = birth;
    run->phase = RUN_MAKING;
    drivers->births++;
    io_work_submit_ahead(drivers->config.loop, &birth->work, spawn, on_born, birth);
    return 0;
}

void birth_leave(struct birth *birth)
{
    birth->run = NULL;
}
