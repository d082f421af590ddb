/*
 * Somebody to ask, in a process of its own: what it answers follows from the path.
 *
 *   /ok       200, and headers only, of a body that never comes
 *   /missing  404, with a body        /bytes    404, with a body that is no UTF-8
 *   /large    500, with 1 MiB         /echo     201, with what it was asked
 *   /unfinished  503, with some of its body, and no more
 *   /hang     nothing                 /close    nothing, and the end
 *   /garbage  what is no HTTP         /loop     302, to itself
 *   /lead     302, to /ok             /astray   302, to where nobody is
 */
#ifndef CAIRN_TEST_HOOKS_SERVICES_LISTENER_H
#define CAIRN_TEST_HOOKS_SERVICES_LISTENER_H

#include "test/io/scratch.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* Seen by both. */
struct listener_seen {
    atomic_uint asked, hanging;
};

struct listener {
    pid_t pid;
    uint16_t port;
    struct listener_seen *seen;
};

enum { LISTENER_LARGE = 1 << 20 };

static inline void listener_write(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t done = send(fd, bytes, length, MSG_NOSIGNAL);

        if (done <= 0)
            return; /* nobody reads it */
        bytes += done;
        length -= (size_t)done;
    }
}

static inline void listener_say(int fd, const char *status, const char *header, const char *body,
                                size_t length)
{
    char head[512];

    (void)text_format(head, sizeof(head), "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n", status,
                      header, length); /* fits */
    listener_write(fd, head, strlen(head));
    listener_write(fd, body, length);
}

static inline size_t listener_read(int fd, char *to, size_t size)
{
    size_t length = 0;
    ssize_t got;

    to[0] = '\0';
    while (strstr(to, "\r\n\r\n") == NULL && length < size - 1 &&
           (got = recv(fd, to + length, size - 1 - length, 0)) > 0) {
        length += (size_t)got;
        to[length] = '\0';
    }
    const char *announced = strstr(to, "Content-Length: "), *body = strstr(to, "\r\n\r\n");
    size_t wanted = announced == NULL ? 0 : strtoul(announced + 16, NULL, 10);
    while (body != NULL && wanted > 0 && strlen(body + 4) < wanted && length < size - 1 &&
           (got = recv(fd, to + length, size - 1 - length, 0)) > 0) {
        length += (size_t)got;
        to[length] = '\0';
    }
    return length;
}

/* True: the connection is kept, and nothing more happens on it. */
static inline bool listener_answer(const struct listener *listener, int fd)
{
    static char large[LISTENER_LARGE], asked[8192];
    char path[64] = "", location[128];
    size_t length = listener_read(fd, asked, sizeof(asked));

    (void)sscanf(asked, "%*s %63s", path); /* or it stays empty */
    atomic_fetch_add(&listener->seen->asked, 1);
    if (text_equal(path, "/ok"))
        listener_write(fd, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 38);
    else if (text_equal(path, "/missing"))
        listener_say(fd, "404 Not Found", "", "it is not here", 14);
    else if (text_equal(path, "/bytes"))
        listener_say(fd, "404 Not Found", "", "a\xff\0\xc3\xa4\xe2\x82", 7);
    else if (text_equal(path, "/large")) {
        memset(large, 'x', sizeof(large));
        listener_say(fd, "500 No", "", large, sizeof(large));
    } else if (text_equal(path, "/echo"))
        listener_say(fd, "201 Made", "", asked, length);
    else if (text_equal(path, "/unfinished"))
        listener_write(fd, "HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\nhalf", 42);
    else if (text_equal(path, "/garbage"))
        listener_write(fd, "220 mail ready\r\n", 16);
    else if (text_equal(path, "/loop") || text_equal(path, "/lead") ||
             text_equal(path, "/astray")) {
        (void)text_format(location, sizeof(location), "Location: %s\r\n",
                          text_equal(path, "/loop")     ? "/loop"
                          : text_equal(path, "/astray") ? "http://127.0.0.1:1/x"
                                                        : "/ok"); /* fits */
        listener_say(fd, "302 Found", location, "", 0);
    }
    if (text_equal(path, "/hang"))
        atomic_fetch_add(&listener->seen->hanging, 1);
    return text_equal(path, "/ok") || text_equal(path, "/unfinished") || text_equal(path, "/hang");
}

static inline _Noreturn void listener_run(const struct listener *listener, int fd)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* of some it keeps the connection */
    }
    for (;;) {
        int other = accept(fd, NULL, NULL);

        if (other >= 0 && !listener_answer(listener, other))
            (void)close(other); /* it said all */
    }
}

static inline void listener_start(struct listener *listener)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_return_code(fd, errno);
    assert_return_code(bind(fd, (struct sockaddr *)&address, length), errno);
    assert_return_code(listen(fd, 4096), errno);
    assert_return_code(getsockname(fd, (struct sockaddr *)&address, &length), errno);
    listener->port = ntohs(address.sin_port);
    listener->seen = mmap(NULL, sizeof(*listener->seen), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(listener->seen, MAP_FAILED);
    listener->pid = fork();
    assert_return_code(listener->pid, errno);
    if (listener->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        listener_run(listener, fd);
    }
    assert_return_code(close(fd), errno);
}

static inline void listener_stop(struct listener *listener)
{
    assert_return_code(kill(listener->pid, SIGKILL), errno);
    assert_int_equal(waitpid(listener->pid, NULL, 0), listener->pid);
    assert_return_code(munmap(listener->seen, sizeof(*listener->seen)), errno);
}

#endif
