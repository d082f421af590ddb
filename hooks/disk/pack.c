/* Packing the disk of an alloc for another node: cairn-fetch does it, in a process of its own. */
#include "hooks/fetch/modes.h"
#include "hooks/fetching.h"
#include "hooks/part.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DESCRIPTORS = 1024, ARGUMENTS = 4 };

int hooks_disk_pack(const struct hooks *hooks, const char *alloc_id, const char *const *tasks,
                    size_t tasks_count, struct hooks_packing *ret_packing, struct err *err)
{
    const char *none[] = {NULL};
    struct hooks_paths paths;
    int ends[2];
    int code = hooks->fetch == NULL ? err_set(err, ERR_UNSUPPORTED, "this agent packs no disks")
                                    : hooks_paths(hooks, alloc_id, NULL, &paths, err);

    if (code != 0)
        return code;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return err_os(err, ERR_AGAIN, errno, "cannot make a pipe");
    const char **argv = calloc(ARGUMENTS + tasks_count + 1, sizeof(*argv));
    check(argv != NULL);
    argv[0] = "cairn-fetch";
    argv[1] = FETCH_SNAPSHOT;
    argv[2] = paths.root;
    argv[3] = alloc_id;
    for (size_t i = 0; i < tasks_count; i++)
        argv[ARGUMENTS + i] = tasks[i];
    const struct proc_spawn spawn = {
        .path = hooks->fetch->program,
        .argv = (char *const *)(uintptr_t)argv,
        .envp = (char *const *)(uintptr_t)none,
        .directory = "/",
        .fds = &ends[1],
        .fds_count = 1,
        .files_soft = DESCRIPTORS,
    };
    code = proc_spawn(&spawn, &ret_packing->pid, &ret_packing->pidfd, err);
    free(argv);
    (void)close(ends[1]); /* it has its own */
    if (code != 0)
        (void)close(ends[0]); /* nothing was read from it */
    else
        check(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0); /* a pipe can */
    ret_packing->bytes = ends[0];
    return code;
}

void hooks_packing_stop(const struct hooks_packing *packing)
{
    (void)syscall(SYS_pidfd_send_signal, packing->pidfd, SIGKILL, NULL, 0); /* or it has ended */
}

bool hooks_packing_end(struct hooks_packing *packing, bool waits, int *ret_code)
{
    siginfo_t info = {0};

    if (waitid(P_PIDFD, (id_t)packing->pidfd, &info, WEXITED | (waits ? 0 : WNOHANG)) == 0 &&
        info.si_pid == 0)
        return false;
    *ret_code = info.si_code != CLD_EXITED          ? ERR_IO
                : info.si_status == 0               ? 0
                : info.si_status == FETCH_EXIT_GONE ? ERR_GONE
                                                    : ERR_IO;
    (void)close(packing->bytes); /* only read from */
    (void)close(packing->pidfd);
    *packing = (struct hooks_packing){.bytes = -1, .pidfd = -1};
    return true;
}
