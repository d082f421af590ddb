/*
 * cairn-parse: reads one text of a stranger, says what is in it, and ends.
 *
 * It has no privilege: a user of its own, whom no task and nobody else is, no capability, nothing
 * of the file system, no network, and of the system's calls those that ask for memory, read its
 * order and write its answer.  All of it is laid down before the first byte is read.  Memory and
 * time have bounds; whoever started it ends it if it takes longer.
 *
 * usage: cairn-parse, with the socket of spec/parsed.h.  Exit 0: it has answered; 2: it was not
 * started as it should be; 3: it could not lay down what it was started with.
 */
#include "spec/parsed.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#else
#error "say how this machine numbers its calls"
#endif

enum {
    EXIT_USAGE = 2,
    EXIT_WALLS = 3,
    PARSER_USER = 1885434483, /* "pars": none that an administrator makes is so large */
    NOBODY = 65534,           /* where no such user can be: in some containers */
    SECONDS_MAX = 4,
    READ_BYTES = 64 << 10,
};

#ifdef SANITIZED /* which takes all addresses there are */
static const rlim_t addresses_max = RLIM_INFINITY;
#else
static const rlim_t addresses_max = (rlim_t)1 << 30;
#endif

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
    const struct rlimit limits = {most, most};

    return setrlimit(what, &limits) == 0;
}

static bool limit_all(void)
{
    return limit(RLIMIT_AS, addresses_max) && limit(RLIMIT_CPU, SECONDS_MAX) &&
           limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_NOFILE, 0) &&
           limit(RLIMIT_NPROC, 0);
}

static bool become(uid_t id)
{
    return setgroups(0, NULL) == 0 && setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0;
}

/* Who cannot be root's equal any more is nobody else's either: no task that runs as nobody may end
 * or look into it. */
static bool lay_down(void)
{
    if (!limit_all() || (geteuid() == 0 && !become(PARSER_USER) && !become(NOBODY)))
        return false;
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           filter_calls() == 0;
}

/* --- one order --- */

/* All that comes, NULL if that is too much. */
static char *read_order(size_t *ret_length)
{
    size_t size = READ_BYTES, length = 0;
    char *order = malloc(size);

    check(order != NULL);
    for (;;) {
        ssize_t got = read(PARSER_SOCKET, order + length, size - length);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
        if (length == size) {
            if (size > PARSE_TEXT_MAX)
                return NULL;
            size *= 2;
            order = realloc(order, size);
            check(order != NULL);
        }
    }
    *ret_length = length;
    return order;
}

static bool write_all(const uint8_t *bytes, size_t length)
{
    while (length > 0) {
        ssize_t done = write(PARSER_SOCKET, bytes, length);

        if (done < 0 && errno != EINTR)
            return false;
        bytes += done > 0 ? done : 0;
        length -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* At once: libraries that have something to do at the end may not do it any more. */
static _Noreturn void end(int code)
{
    for (;;)
        (void)syscall(SYS_exit_group, code); /* does not come back */
}

int main(int arguments_count, char **arguments)
{
    size_t length, answer_length;

    (void)arguments;
    if (arguments_count != 1)
        return EXIT_USAGE;
    if (!lay_down())
        return EXIT_WALLS;
    const char *order = read_order(&length);
    if (order == NULL || length == 0 || (order[0] != PARSE_OBJECT && order[0] != PARSE_JOB))
        end(EXIT_USAGE);
    const uint8_t *answer =
        parse_answer((enum parse_kind)order[0], order + 1, length - 1, &answer_length);
    end(write_all(answer, answer_length) ? 0 : EXIT_USAGE);
}
