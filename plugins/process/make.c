/*
 * Making the process of a plugin: its environment, its descriptors, its cgroup.
 *
 * Follows go-plugin 1.8.0 client.go (Start) but for the environment, of which a plugin gets what
 * programs need and not all that the daemon has, and for pipes, of which it gets none.
 */
#include "plugins/process/part.h"

#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 256, VARIABLES_MAX = 32, VARIABLE_SIZE = 4096 };

static const char cookie[] = "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255";

/* Of the daemon's own; proxies are named in both ways. */
static const char *const passed[] = {
    "HOME",     "LANG",       "LC_ALL",      "TZ",       "LD_LIBRARY_PATH", "HTTP_PROXY",
    "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY",
};

struct environment {
    char *items[VARIABLES_MAX + 1]; /* owned */
    size_t count;
};

static void add(struct environment *environment, const char *name, const char *value)
{
    size_t size = strlen(name) + strlen(value) + 2;
    char *text = malloc(size);

    check(text != NULL);
    check(environment->count < VARIABLES_MAX);
    check(text_format(text, size, "%s=%s", name, value));
    environment->items[environment->count++] = text;
}

static void fill(struct environment *environment, const char *sockets)
{
    const char *path = getenv("PATH");

    for (size_t i = 0; i < COUNT_OF(passed); i++) {
        const char *value = getenv(passed[i]);

        if (value != NULL && strlen(value) < VARIABLE_SIZE)
            add(environment, passed[i], value);
    }
    add(environment, "PATH",
        path != NULL ? path : "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    add(environment, "NOMAD_PLUGIN_MAGIC_COOKIE", cookie);
    add(environment, "PLUGIN_PROTOCOL_VERSIONS", "2");
    add(environment, "PLUGIN_MIN_PORT", "10000"); /* go-plugin's own, for who wants to know */
    add(environment, "PLUGIN_MAX_PORT", "25000");
    add(environment, "TMPDIR", sockets); /* where those before 1.5 make theirs */
    add(environment, "PLUGIN_UNIX_SOCKET_DIR", sockets);
}

/* A file of DIRECTORY that begins empty. */
static int open_new(const char *directory, const char *name, int *ret_fd, struct err *err)
{
    char path[PATH_SIZE];

    check(path_join(path, directory, name) == 0); /* it is shorter than that of a socket */
    *ret_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    return *ret_fd >= 0 ? 0 : err_os(err, err_from_errno(errno), errno, "cannot make %s", path);
}

static int spawn(const struct making *making, const struct proc_spawn *spawn,
                 struct proc_identity *ret_identity, int *ret_pidfd, struct err *err)
{
    pid_t pid;
    int code = proc_spawn(spawn, &pid, ret_pidfd, err);

    if (code != 0)
        return code;
    if (proc_identify(pid, ret_identity, NULL) != 0) /* our child, a zombie at worst */
        *ret_identity = (struct proc_identity){.pid = pid};
    if (spawn->cgroup == NULL) /* of v1: it is moved there, for what it starts to be found */
        (void)cgroup_enter(making->cgroup_mode, making->cgroup, pid, NULL);
    return 0;
}

int make_process(const struct making *making, int record_fd, struct proc_identity *ret_identity,
                 int *ret_pidfd, struct err *err)
{
    char sockets[PATH_SIZE], cgroup[CGROUP_NAME_SIZE + 64];
    const char *argv[ARGUMENTS_MAX + 2] = {making->program};
    struct environment environment = {.count = 0};
    scoped_fd int out = -1;
    scoped_fd int log = -1;

    check(path_join(sockets, making->directory, "sockets") == 0); /* as above */
    for (size_t i = 0; making->arguments[i] != NULL; i++) {
        if (i == ARGUMENTS_MAX)
            return err_set(err, ERR_LIMIT, "it has more than %d arguments", ARGUMENTS_MAX);
        argv[i + 1] = making->arguments[i];
    }
    if (access(making->program, X_OK) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot run %s", making->program);
    int code = sockets_clear(sockets, making->keeps_sockets, err);
    if (code == 0)
        code = directory_make_all(sockets, 0700, err);
    if (code == 0)
        code = open_new(making->directory, "out", &out, err);
    if (code == 0)
        code = open_new(making->directory, "log", &log, err);
    if (code == 0)
        code = cgroup_create(making->cgroup_mode, making->cgroup, err);
    if (code != 0)
        return code;
    cgroup_directory(making->cgroup_mode, making->cgroup, cgroup, sizeof(cgroup));
    fill(&environment, sockets);
    const struct proc_spawn plan = {
        .path = making->program,
        .argv = (char *const *)(uintptr_t)argv,
        .envp = environment.items,
        .directory = making->directory,
        .cgroup = cgroup[0] == '\0' ? NULL : cgroup,
        .out_fd = out,
        .err_fd = log,
        .note_fd = record_fd,
        .note_at = offsetof(struct record, identity),
    };
    code = spawn(making, &plan, ret_identity, ret_pidfd, err);
    for (size_t i = 0; i < environment.count; i++)
        free(environment.items[i]);
    return code;
}
