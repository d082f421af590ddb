/*
 * cairn-parse: reads one text of a stranger, says what is in it, and ends; or renders the templates
 * of one task.
 *
 * It has no privilege: a user of its own, whom no task and nobody else is, no capability, nothing
 * of the file system, no network, and of the system's calls those that ask for memory, read its
 * order and write its answer.  All of it is laid down before the first byte is read.  Memory and
 * time have bounds; whoever started it ends it if it takes longer.
 *
 * usage: cairn-parse, with the socket of spec/parsed.h, or "cairn-parse templates", with that of
 * spec/rendering.h.  Exit 0: it has answered; 2: it was not started as it should be; 3: it could
 * not lay down what it was started with.
 */
#include "spec/parser/part.h"

#include "base/base.h"
#include "base/native.h"
#include "spec/rendering.h"

#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 2,
    EXIT_WALLS = 3,
    PARSER_USER = 1885434483, /* "pars": none that an administrator makes is so large */
    NOBODY = 65534,           /* where no such user can be: in some containers */
    SECONDS_MAX = 4,
    READ_BYTES = 64 << 10,
    PARSER_BYTES_MAX = 1 << 30,
    RENDERER_BYTES_MAX = 256 << 20,
};

/* --- walls --- */

/* clang-format off */
#define LEFT(X)                                                                                    \
    X(read) X(write) X(brk) X(mmap) X(munmap) X(mremap) X(mprotect) X(madvise) X(futex)            \
    X(clock_gettime) X(getrandom) X(rt_sigreturn) X(sigaltstack) X(exit) X(exit_group)
/* clang-format on */

/* Other calls fail, so that a C library that asks for a new one goes on with the old. */
static int filter_calls(void)
{
#define X(name)                                                                                    \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        LEFT(X) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
#undef X
    struct sock_fprog program = {.len = COUNT_OF(code), .filter = code};

    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static bool limit(enum __rlimit_resource what, rlim_t most)
{
    const struct rlimit limits = {most, what == RLIMIT_CPU ? most + 1 : most}; /* a signal first */

    return setrlimit(what, &limits) == 0;
}

static bool limit_all(rlim_t bytes_max)
{
#ifdef SANITIZED /* which takes all addresses there are */
    bytes_max = RLIM_INFINITY;
#endif
    return limit(RLIMIT_AS, bytes_max) && limit(RLIMIT_CPU, SECONDS_MAX) && limit(RLIMIT_CORE, 0) &&
           limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_NOFILE, 0) && limit(RLIMIT_NPROC, 0);
}

static bool become(uid_t id)
{
    return setgroups(0, NULL) == 0 && setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0;
}

/* Who cannot be root's equal any more is nobody else's either: no task that runs as nobody may end
 * or look into it. */
static bool lay_down(rlim_t bytes_max)
{
    if (!limit_all(bytes_max) || (geteuid() == 0 && !become(PARSER_USER) && !become(NOBODY)))
        return false;
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           filter_calls() == 0;
}

/* --- one order --- */

/* All that comes, NULL if that is too much. */
static char *read_text(size_t *ret_length)
{
    size_t size = READ_BYTES, length = 0, got;
    char *text = malloc(size);

    check(text != NULL);
    while ((got = parser_read(text + length, size - length)) > 0) {
        length += got;
        if (length == size) {
            if (size > PARSE_TEXT_MAX)
                return NULL;
            size *= 2;
            text = realloc(text, size);
            check(text != NULL);
        }
    }
    *ret_length = length;
    return text;
}

int main(int arguments_count, char **arguments)
{
    bool renders = arguments_count == 2 && text_equal(arguments[1], RENDERING);
    size_t length, answer_length;
    char order;

    if (arguments_count != 1 && !renders)
        return EXIT_USAGE;
    if (!lay_down(renders ? RENDERER_BYTES_MAX : PARSER_BYTES_MAX))
        return EXIT_WALLS;
    if (renders)
        parser_render();
    const char *text = parser_read(&order, 1) == 0 ? NULL : read_text(&length);
    if (text == NULL || (order != PARSE_OBJECT && order != PARSE_JOB))
        parser_end(EXIT_USAGE);
    const uint8_t *answer = parse_answer((enum parse_kind)order, text, length, &answer_length);
    parser_end(parser_write(answer, answer_length) ? 0 : EXIT_USAGE);
}
