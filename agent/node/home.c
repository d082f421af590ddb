/* The note beside the journal, the lock by mark, and what becomes of a copy. */
#include "agent/node/home.h"

#include "io/log.h"
#include "io/loop.h"
#include "io/scope.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum {
    NOTE_BYTES_MAX = 16384,
    ASIDE_MAX = 1000,
    DYING_BOUND_MS = 3000, /* a killed agent of ours drops the lock by then */
    LOOK_AGAIN_MS = 10,
};

static const char note_name[] = "home", note_new[] = "home.new";

/* --- evidence --- */

/* What a copy cannot have from what it was copied of. */
struct evidence {
    uint64_t inode;
    int64_t born_ns; /* 0: the file system does not tell */
};

static int look_at(int fd, struct evidence *ret_evidence)
{
    struct statx status;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &status) != 0)
        return -errno;
    *ret_evidence = (struct evidence){.inode = status.stx_ino};
    if ((status.stx_mask & STATX_BTIME) != 0)
        ret_evidence->born_ns =
            (int64_t)status.stx_btime.tv_sec * 1000000000 + status.stx_btime.tv_nsec;
    return 0;
}

/* A birth is as good as never shared; without one the inode has to do. */
static bool is_same(const struct evidence *noted, const struct evidence *found)
{
    return noted->born_ns != 0 && found->born_ns != 0 ? noted->born_ns == found->born_ns
                                                      : noted->inode == found->inode;
}

/* --- the note --- */

struct note {
    struct evidence file, directory;
    char path[PATH_SIZE]; /* the data directory, for people */
};

static struct evidence read_evidence(const json_t *object)
{
    return (struct evidence){
        .inode = (uint64_t)json_integer_value(json_object_get(object, "inode")),
        .born_ns = json_integer_value(json_object_get(object, "born_ns")),
    };
}

static json_t *format_evidence(const struct evidence *evidence)
{
    return json_pack("{s:I, s:I}", "inode", (json_int_t)evidence->inode, "born_ns",
                     (json_int_t)evidence->born_ns);
}

/* ERR_GONE: there is none, or none that could be read: then nothing is known. */
static int read_note(const struct config *config, struct note *note, struct err *err)
{
    char path[PATH_SIZE], *text;
    size_t length;

    if (path_join(path, config->state_dir, note_name) != 0)
        return err_set(err, ERR_LIMIT, "the state directory's path is too long");
    int code = file_read(path, NOTE_BYTES_MAX, &text, &length, err);
    if (code != 0)
        return code;
    json_t *root = json_loadb(text, length, 0, NULL);
    free(text);
    const char *where = json_string_value(json_object_get(root, "path"));
    bool whole = where != NULL && text_copy(note->path, sizeof(note->path), where);
    note->file = read_evidence(json_object_get(root, "file"));
    note->directory = read_evidence(json_object_get(root, "directory"));
    json_decref(root);
    return whole && note->file.inode != 0 ? 0 : err_set(err, ERR_GONE, "%s is damaged", path);
}

static int write_bytes(int fd, const char *bytes)
{
    size_t length = strlen(bytes);
    ssize_t put = write(fd, bytes, length);

    if (put >= 0 && (size_t)put != length)
        return -ENOSPC;
    return put < 0 || fsync(fd) != 0 ? -errno : 0;
}

/* Under another name first, for its own inode and birth are part of what it says. */
static int write_beside(int directory_fd, const struct config *config)
{
    struct note note;

    (void)unlinkat(directory_fd, note_new, 0); /* of an attempt that was cut off */
    scoped_fd int fd =
        openat(directory_fd, note_new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int failed = look_at(fd, &note.file);
    if (failed == 0)
        failed = look_at(directory_fd, &note.directory);
    if (failed != 0)
        return failed;
    json_t *root = json_pack("{s:o, s:o, s:s}", "file", format_evidence(&note.file), "directory",
                             format_evidence(&note.directory), "path", config->data_dir);
    scoped_string char *text = root == NULL ? NULL : json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    if (text == NULL)
        return -EINVAL; /* a path that is no text */
    return write_bytes(fd, text);
}

static void write_note(const struct config *config)
{
    scoped_fd int fd = open(config->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fd < 0 ? -errno : write_beside(fd, config);

    if (failed == 0 && (renameat(fd, note_new, fd, note_name) != 0 || fsync(fd) != 0))
        failed = -errno;
    if (failed != 0)
        log_warn("agent", "cannot note where this node is: a copy would not be known error=%s",
                 strerror(-failed));
}

/* --- a copy --- */

/* Directories of allocs go along, for with a copy their secrets came to lie on a disk.  Where they
 * are on another one they stay. */
static void put_allocs_aside(const struct config *config, int directory_fd, const char *aside)
{
    char to[64];

    (void)text_format(to, sizeof(to), "%s/alloc", aside); /* fits */
    if (renameat(AT_FDCWD, config->alloc_dir, directory_fd, to) != 0 && errno != ENOENT)
        log_warn("agent", "directories of copied allocs stay where they are path=%s error=%s",
                 log_value(config->alloc_dir), strerror(errno));
}

/* Moves what makes the copy the other node into a directory beside it. */
static int put_aside(const struct config *config, struct err *err)
{
    static const char *const parts[] = {"journal", "shim", "images", "mark", note_name};
    scoped_fd int fd = open(config->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char aside[32], to[64];
    unsigned number = 0;

    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot open %s", config->state_dir);
    do
        (void)text_format(aside, sizeof(aside), "copied.%u", ++number); /* fits */
    while (number < ASIDE_MAX && faccessat(fd, aside, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
    if (mkdirat(fd, aside, 0700) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot make %s/%s", config->state_dir,
                      aside);
    put_allocs_aside(config, fd, aside);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        (void)text_format(to, sizeof(to), "%s/%s", aside, parts[i]); /* fits */
        if (renameat(fd, parts[i], fd, to) != 0 && errno != ENOENT)
            return err_os(err, err_from_errno(errno), errno, "cannot put %s aside", parts[i]);
    }
    log_warn("agent", "this directory was a copy and begins as a node of its own aside=%s/%s",
             log_value(config->state_dir), aside);
    return 0;
}

static int refuse(const struct config *config, const struct note *note, struct err *err)
{
    return err_set(err, ERR_REFUSED,
                   "%.60s is a copy, or was moved or restored: its node was last in %.50s. Start "
                   "it once with -take-over to go on as that node, or with -new-node to be another",
                   config->data_dir, note->path);
}

/* The order of its parts is that of what must not be lost: the note goes last, so that a copy that
 * was put aside by half is still one. */
static int settle_copy(struct home *home, const struct config *config, const struct note *note,
                       struct err *err)
{
    if (config->new_node)
        return put_aside(config, err);
    if (!config->take_over)
        return refuse(config, note, err);
    home->is_copy = true;
    log_warn("agent", "the node goes on in another place from=%s to=%s", log_value(note->path),
             log_value(config->data_dir));
    return 0;
}

int home_open(struct home *home, const struct config *config, struct err *err)
{
    struct note note = {.path = ""};
    struct evidence directory = {0}, file = {0};
    char path[PATH_SIZE];

    *home = (struct home){.lock_fd = -1};
    int code = read_note(config, &note, err);
    if (code != 0)
        return code == ERR_GONE ? 0 : code; /* a first start, or one of an older version */

    scoped_fd int directory_fd = open(config->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    (void)path_join(path, config->state_dir, note_name); /* fits, as it was read */
    scoped_fd int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (directory_fd < 0 || fd < 0 || look_at(directory_fd, &directory) != 0 ||
        look_at(fd, &file) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot look at %s", path);
    /* A backup that was put back over the original has other files in the same directory. */
    bool same_directory = note.directory.born_ns != 0 && is_same(&note.directory, &directory);
    if (!is_same(&note.file, &file) && !same_directory)
        return settle_copy(home, config, &note, err);
    home->is_known = is_same(&note.file, &file) && text_equal(note.path, config->data_dir);
    return 0;
}

/* --- the lock --- */

/* Root's own; who can open a lock can hold it, so that nobody else can open those in it.  Sockets
 * of the API are in it, too, which others may reach: whom they let in is a matter of each. */
static bool lock_directory(char to[PATH_SIZE])
{
    const char *own = getenv("XDG_RUNTIME_DIR");

    if (geteuid() == 0)
        return text_copy(to, PATH_SIZE, "/run/cairn");
    return own != NULL && own[0] == '/' && path_join(to, own, "cairn") == 0;
}

/* Opens and locks the file; -EWOULDBLOCK while somebody else has it.  Who ends deletes it, so it is
 * the right one only if it still has the name. */
static int try_lock(const char *path)
{
    scoped_fd int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat opened, named;

    if (fd < 0 || fstat(fd, &opened) != 0 || flock(fd, LOCK_EX | LOCK_NB) != 0)
        return -errno;
    if (stat(path, &named) != 0 || named.st_ino != opened.st_ino || named.st_dev != opened.st_dev)
        return -EWOULDBLOCK;
    return take_fd(&fd);
}

/* The journal's lock is ours, so an agent on this very directory is dead or dying. */
static int lock_file(const char *path)
{
    const struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000};
    uint64_t give_up_ms = loop_now_ms() + DYING_BOUND_MS;
    int fd = try_lock(path);

    while (fd == -EWOULDBLOCK && loop_now_ms() < give_up_ms) {
        (void)nanosleep(&pause, NULL); /* woken early it looks early */
        fd = try_lock(path);
    }
    return fd;
}

static int refuse_second(const struct config *config, const char *path, const char *mark,
                         bool is_copy, struct err *err)
{
    scoped_string char *holder = NULL;
    size_t length;

    if (file_read(path, PATH_SIZE, &holder, &length, NULL) != 0)
        holder = NULL;
    return err_set(
        err, ERR_REFUSED,
        "an agent of node %s runs already, %.70s: %.50s is a copy of its data. %s to make "
        "it another node",
        mark, holder == NULL || holder[0] == '\0' ? "elsewhere" : holder, config->data_dir,
        is_copy ? "Start it with -new-node" : "Move its state directory away");
}

int home_take(struct home *home, const struct config *config, const struct node *node,
              struct err *err)
{
    char directory[PATH_SIZE], holder[PATH_SIZE];
    struct err cause = {0};

    if (lock_directory(directory) &&
        directory_make(directory, 0711, (uid_t)-1, (gid_t)-1, &cause) == 0 &&
        path_join(home->lock_path, directory, node->mark) == 0) {
        home->lock_fd = lock_file(home->lock_path);
        if (home->lock_fd == -EWOULDBLOCK)
            return refuse_second(config, home->lock_path, node->mark, home->is_copy, err);
    }
    if (home->lock_fd < 0) {
        home->lock_path[0] = '\0';
        log_warn("agent", "no lock by mark: a copy of this node could start beside it error=%s",
                 log_value(cause.code != 0 ? cause.text : strerror(-home->lock_fd)));
    } else if (text_format(holder, sizeof(holder), "pid %d in %s", (int)getpid(),
                           config->data_dir)) {
        (void)!ftruncate(home->lock_fd, 0); /* only told to people */
        (void)!write(home->lock_fd, holder, strlen(holder));
    }
    return 0;
}

void home_note(const struct home *home, const struct config *config)
{
    if (!home->is_known)
        write_note(config);
}

void home_close(struct home *home)
{
    if (home->lock_fd < 0)
        return;
    (void)unlink(home->lock_path); /* before others can have it */
    (void)close(home->lock_fd);    /* nothing that matters was written */
    home->lock_fd = -1;
}
