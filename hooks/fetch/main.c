/*
 * cairn-fetch: gets the artifacts of one task, and ends.
 *
 * Bytes of strangers are read here and nowhere in the daemon.  For each artifact there are two
 * processes, one after the other.  The first talks to the network, or runs git, as a user that
 * neither a task is, not even one that runs as nobody, nor who fetches for another, and can write
 * to one file that has no name.  The second reads that file, checks it, and writes the task's
 * files: as the user of the task, without any capability, and with the task's directory, or the one
 * that its alloc shares, for its root and no network, so that whatever an archive makes of it can
 * do there only what the task may.  This one stays between them, looks at no such byte, and is
 * stopped by the daemon with both.
 *
 * usage: cairn-fetch UID GID, with the descriptors of fetch.h.  Exit 0: all are there; else the
 * last line of the report says which is not, and why.  Who is not root does the same without the
 * walls.
 *
 * What it gets may also be the disk of an alloc on another node: then the second process makes what
 * is in it whosever it was, in a directory that nobody else has.  In a mode of its own
 * (hooks/fetch/pack.c) it packs such a disk for others, and in another one it runs the checks of
 * services: "cairn-fetch checks", with the socket of hooks/services/wire.h.
 */
#include "hooks/fetch/fetch.h"
#include "hooks/services/wire.h"
#include "io/host.h"
#include "io/proc.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <locale.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
    FETCHERS = 1900000000, /* and the number of a process: a range that systemd gives to nobody */
    EXIT_FAILED = 1,
    EXIT_USAGE = FETCH_EXIT_USAGE,
    GRACE_MS = 60000, /* for what comes beside the download */
    SOURCE_SHOWN = 120,
    DIRECTORY_MODE = 0755,
};

/* To make files and directories that belong to others. */
#define GIVING                                                                                     \
    ((uint64_t)1 << CAP_CHOWN | (uint64_t)1 << CAP_DAC_OVERRIDE | (uint64_t)1 << CAP_FOWNER)

/* Where a repository is cloned, and where git finds that: a directory that there is on each
 * machine, and that nothing is cloned from. */
static const char staging[] = ".cairn-fetch", git_place[] = "/boot";

/* --- one process --- */

struct step {
    struct fetch *fetch;
    const json_t *artifact;
    int (*run)(struct step *step, struct err *err);
    uint64_t namespaces;
    bool is_unpacking;
    int alive; /* the end of a pipe whose other end this program has and its children do not */
};

/* Whoever asked for us is gone, then nobody is to go on. */
static void end_with_parent(const struct step *step)
{
    struct pollfd parent = {.fd = step->alive, .events = POLLIN};

    check(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    if (poll(&parent, 1, 0) != 0)
        _exit(EXIT_FAILED);
}

/* The directory that the artifact goes into. */
static int place_of(const struct step *step)
{
    return json_is_true(json_object_get(step->artifact, "shared")) ? FETCH_SHARED : FETCH_PLACE;
}

static bool be_alone(struct fetch *fetch)
{
    fetch->is_alone = fetch_be(fetch->fetcher, fetch->fetcher);
    return fetch->is_alone;
}

/* Becomes who may do little; what fails here must not go on. */
static int become(const struct step *step, struct err *err)
{
    struct fetch *fetch = step->fetch;
    const struct rlimit none = {0, 0};

    (void)umask(022);
    if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return err_os(err, ERR_IO, errno, "cannot lay down privileges");
    bool gives = step->is_unpacking && fetch->snapshot != NULL;
    if (geteuid() == 0 &&
        ((step->is_unpacking && (fchdir(place_of(step)) != 0 || chroot(".") != 0 ||
                                 (!gives && !fetch_be(fetch->uid, fetch->gid)))) ||
         (!step->is_unpacking && !be_alone(fetch) && !fetch_be(FETCH_NOBODY, FETCH_NOBODY)) ||
         fetch_keep_capabilities(gives ? GIVING : 0) != 0))
        return err_os(err, ERR_IO, errno, "cannot lay down privileges");
    end_with_parent(step);    /* a change of the user ends what was said of it before */
    (void)close(FETCH_ORDER); /* what other artifacts are asked for with, and the directories: */
    (void)close(FETCH_PLACE); /* who needs one is in it */
    (void)close(FETCH_SHARED);
    return 0;
}

/* A pipe takes so much at once. */
static void report(const char *text)
{
    ssize_t done = write(FETCH_REPORT, text, strlen(text));

    (void)done; /* who is to read it is gone, and so are we */
}

static void child(struct step *step, int other_end)
{
    struct err err = {0};

    (void)close(other_end); /* it is the parent's */
    end_with_parent(step);
    if (step->run(step, &err) == 0)
        _exit(0);
    report(err.text);
    _exit(EXIT_FAILED);
}

/* Waits for the end of PID; ERR_TIMEOUT after LIMIT_MS, and it is ended then. */
static int await(pid_t pid, uint64_t limit_ms, int *ret_status, struct err *err)
{
    scoped_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    int limit = limit_ms > INT32_MAX ? INT32_MAX : (int)limit_ms;
    int ready = pidfd < 0 ? 1 : poll(&end, 1, limit);

    if (ready == 0)
        (void)kill(pid, SIGKILL); /* ours, and not reaped yet */
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    return ready == 0 ? err_set(err, ERR_TIMEOUT, "it takes longer than it may") : 0;
}

/* Runs STEP in a process of its own.  ERR_CANCELED: it failed and has said why. */
static int perform(struct step *step, struct err *err)
{
    int ends[2], status = 0;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return err_os(err, ERR_IO, errno, "cannot make a pipe");
    step->alive = ends[0];
    int code = proc_fork(NULL, geteuid() == 0 ? step->namespaces : 0, &pid, err);
    if (code == 0 && pid == 0)
        child(step, ends[1]);
    if (code == 0)
        code = await(pid, step->fetch->timeout_ms + GRACE_MS, &status, err);
    (void)close(ends[0]); /* nothing is written to it */
    (void)close(ends[1]);
    if (code != 0)
        return code;
    if (WIFSIGNALED(status))
        return err_set(err, ERR_IO, "the process that did it ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? 0 : ERR_CANCELED;
}

/* --- the two of them --- */

static bool is_repository(const json_t *artifact)
{
    return text_starts_with(fetch_text(artifact, "source"), "git::");
}

/* The staging directory is at another place for this process alone.  It is opened by its path: what
 * was opened before is mounted elsewhere, and cannot be mounted here. */
static int enter_staging(struct err *err)
{
    char path[PATH_SIZE];
    ssize_t length = readlink(FETCH_PLACE_PATH, path, sizeof(path) - 1);

    path[length < 0 ? 0 : length] = '\0';
    scoped_fd int task = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    scoped_fd int place = openat(task, staging, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (place < 0 || fchdir(place) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot enter the directory for git");
    if (geteuid() != 0)
        return 0;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(".", git_place, NULL, MS_BIND, NULL) != 0 || chdir(git_place) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot mount the directory for git");
    return 0;
}

static int download(struct step *step, struct err *err)
{
    int code = is_repository(step->artifact) ? enter_staging(err) : 0;

    if (code == 0)
        code = become(step, err);
    return code == 0 ? fetch_download(step->fetch, step->artifact, err) : code;
}

/* Makes and enters each directory of PATH, which leads through no link. */
static int enter(const char *path, struct err *err)
{
    while (*path != '\0') {
        size_t length = strcspn(path, "/");
        char name[NAME_SIZE];

        if (length >= sizeof(name))
            return err_set(err, ERR_LIMIT, "the destination is too long");
        (void)text_format(name, sizeof(name), "%.*s", (int)length, path); /* fits */
        path += length + (path[length] == '/');
        if (length == 0 || text_equal(name, "."))
            continue;
        if (mkdir(name, DIRECTORY_MODE) != 0 && errno != EEXIST)
            return err_os(err, err_from_errno(errno), errno, "cannot make %.80s", name);
        scoped_fd int fd = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fchdir(fd) != 0)
            return err_os(err, err_from_errno(errno), errno, "cannot enter %.80s", name);
    }
    return 0;
}

/* As DIRECTORY is, or its last name is the file's. */
static int enter_destination(const struct step *step, bool is_file, const char **ret_name,
                             struct err *err)
{
    const char *destination = fetch_text(step->artifact, "destination");
    const char *last = strrchr(destination, '/');
    char directory[PATH_SIZE];

    if (!is_file)
        return enter(destination, err);
    *ret_name = last == NULL ? destination : last + 1;
    (void)text_format(directory, sizeof(directory), "%.*s",
                      (int)(last == NULL ? 0 : last - destination), destination); /* fits */
    return enter(directory, err);
}

static int place(const struct step *step, const struct source *source, struct err *err)
{
    bool is_file = text_equal(fetch_text(step->artifact, "mode"), "file");
    const char *name = source->name;
    int code = enter_destination(step, is_file, &name, err);

    if (code != 0)
        return code;
    if (source->part[0] != '\0' && (is_file || source->kind == ARCHIVE_NONE))
        return err_set(err, ERR_INVALID, "%s: there is no directory %.80s in it",
                       is_file ? "mode is \"file\"" : "this is no archive", source->part);
    if (!is_file && source->kind != ARCHIVE_NONE)
        return fetch_unpack(step->fetch, source->kind, source->part, err);
    if (text_equal(fetch_text(step->artifact, "mode"), "dir"))
        return err_set(err, ERR_INVALID, "mode is \"dir\", and this is no archive");
    if (*name == '\0' || strchr(name, '/') != NULL || text_equal(name, ".") ||
        text_equal(name, ".."))
        return err_set(err, ERR_INVALID,
                       "there is no name for the file: write options { filename = \"name\" }");
    return fetch_unpack_file(step->fetch, source->kind, name, err);
}

/* What is asked for, in the words of the job; only if these name a file that holds it, in those of
 * who read that. */
static int check_sum(const struct fetch *fetch, const struct source *source, struct err *err)
{
    char told[CHECKSUM_SIZE];

    if (source->checksum[0] == '\0')
        return 0;
    if (source_sums(source) == NULL)
        return fetch_check_sum(fetch, source->checksum, err);
    memcpy(told, fetch->told->checksum, sizeof(told)); /* no more is heard */
    told[sizeof(told) - 1] = '\0';
    return fetch_check_sum(fetch, told, err);
}

/* Somebody will say that a disk is there whole, and what says so may outlive the machine's power.
 */
static int keep(struct err *err)
{
    scoped_fd int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || syncfs(fd) != 0
               ? err_os(err, err_from_errno(errno), errno, "cannot write it to the disk")
               : 0;
}

static int unpack(struct step *step, struct err *err)
{
    static struct source source;

    if (geteuid() != 0 && fchdir(place_of(step)) != 0)
        return err_os(err, ERR_IO, errno, "cannot enter the task's directory");
    int code = become(step, err);
    if (code == 0)
        code = fetch_source(step->artifact, &source, err);
    if (code == 0)
        code = check_sum(step->fetch, &source, err);
    if (code == 0)
        code = place(step, &source, err);
    return code == 0 && step->fetch->snapshot != NULL ? keep(err) : code;
}

/* --- one artifact --- */

/* A file without a name on the disk of the task. */
static int open_data(int *ret_fd, struct err *err)
{
    static const char name[] = ".cairn-fetch-data";
    int fd = openat(FETCH_PLACE, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

    if (fd < 0) {                             /* not every file system knows such */
        (void)unlinkat(FETCH_PLACE, name, 0); /* left by nobody; else the next call fails */
        fd = openat(FETCH_PLACE, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0)
            (void)unlinkat(FETCH_PLACE, name, 0); /* it goes with its descriptor */
    }
    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno,
                      "cannot make a file in the task's directory");
    *ret_fd = fd;
    return 0;
}

static int make_staging(const struct fetch *fetch, struct err *err)
{
    if (tree_remove(FETCH_PLACE, staging, err) != 0)
        return err_wrap(err, "the directory for git");
    if (mkdirat(FETCH_PLACE, staging, 0700) != 0 ||
        (geteuid() == 0 &&
         fchownat(FETCH_PLACE, staging, fetch->fetcher, fetch->fetcher, AT_SYMLINK_NOFOLLOW) != 0 &&
         fchownat(FETCH_PLACE, staging, FETCH_NOBODY, FETCH_NOBODY, AT_SYMLINK_NOFOLLOW) != 0))
        return err_os(err, err_from_errno(errno), errno, "cannot make the directory for git");
    return 0;
}

static int fetch_one(struct fetch *fetch, const json_t *artifact, struct err *err)
{
    scoped_fd int data = -1;
    bool stages = is_repository(artifact);
    struct step getting = {.fetch = fetch,
                           .artifact = artifact,
                           .run = download,
                           .namespaces = CLONE_NEWPID | (stages ? CLONE_NEWNS : 0)};
    struct step unpacking = {.fetch = fetch,
                             .artifact = artifact,
                             .run = unpack,
                             .namespaces = CLONE_NEWPID | CLONE_NEWNET,
                             .is_unpacking = true};
    int code = open_data(&data, err);

    fetch->data = data;
    memset(fetch->told, 0, sizeof(*fetch->told));
    if (code == 0 && stages)
        code = make_staging(fetch, err);
    if (code == 0)
        code = perform(&getting, err);
    if (stages)
        (void)tree_remove(FETCH_PLACE, staging, NULL); /* else the next one does */
    return code == 0 ? perform(&unpacking, err) : code;
}

/* Without the user and the query of its URL, which may hold what nobody is to read. */
static void show_source(const json_t *artifact, char to[SOURCE_SHOWN])
{
    struct url_shown source = url_shown(fetch_text(artifact, "shown"));

    (void)text_format(to, SOURCE_SHOWN, "%.*s%.*s", source.scheme_length, source.scheme,
                      source.place_length, source.place); /* cut if long */
    text_clean(to);
    text_whole(to);
}

/* --- all of them --- */

static uint64_t number_of(const json_t *order, const char *field)
{
    json_int_t number = json_integer_value(json_object_get(order, field));

    return number > 0 ? (uint64_t)number : 0;
}

static int fetch_all(struct fetch *fetch, const json_t *order)
{
    json_t *artifact;
    size_t i;

    fetch->timeout_ms = number_of(order, "timeout_ms");
    fetch->bytes_max = number_of(order, "bytes_max");
    fetch->unpacked_bytes_max = number_of(order, "unpacked_bytes_max");
    fetch->entries_max = number_of(order, "entries_max");
    json_array_foreach(json_object_get(order, "artifacts"), i, artifact)
    {
        char source[SOURCE_SHOWN], before[SOURCE_SHOWN + 40];
        struct err err = {0};

        show_source(artifact, source);
        fetch->snapshot = json_string_value(json_object_get(artifact, "snapshot"));
        if (fetch->snapshot == NULL)
            (void)text_format(before, sizeof(before),
                              "\nfailed to download artifact \"%s\": ", source); /* it fits */
        report(fetch->snapshot == NULL ? before : "\n");
        int code = fetch_one(fetch, artifact, &err);
        if (code != 0 && code != ERR_CANCELED)
            report(err.text);
        if (code != 0)
            return EXIT_FAILED;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct pollfd daemon = {.fd = FETCH_REPORT};
    struct fetch fetch = {.fetcher = FETCHERS + (uid_t)getpid()};
    uint64_t uid, gid;

    check(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    if (argc == 2 && text_equal(argv[1], WIRE_MODE))
        return fetch_check(fetch.fetcher);
    if (argc >= 4 && text_equal(argv[1], FETCH_SNAPSHOT))
        return fetch_pack(argv[2], argv[3], argv + 4);
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* names in some archives are, whatever others are */
    if (poll(&daemon, 1, 0) != 0)
        return EXIT_FAILED; /* nobody will read it */
    if (argc != 3 || !text_to_u64(argv[1], &uid) || !text_to_u64(argv[2], &gid) ||
        uid > UINT32_MAX || gid > UINT32_MAX)
        return EXIT_USAGE;
    fetch.uid = (uid_t)uid;
    fetch.gid = (gid_t)gid;
    fetch.told =
        mmap(NULL, sizeof(*fetch.told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    json_t *order = json_loadfd(FETCH_ORDER, 0, NULL);
    if (fetch.told == MAP_FAILED || order == NULL)
        return EXIT_USAGE;
    int code = fetch_all(&fetch, order);
    json_decref(order);
    return code;
}
