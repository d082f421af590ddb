/*
 * An agent of canned answers: a child process that speaks just enough HTTP, and notes what it was
 * asked.
 */
#ifndef CAIRN_TEST_AGENT_CLI_ANSWERING_H
#define CAIRN_TEST_AGENT_CLI_ANSWERING_H

#include "test/agent/cli/running.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* What is answered to paths that begin with PATH; the first that fits.  A list ends with NULL. */
struct answer {
    const char *path;
    const char *body;
    int status; /* 0: 200 */
    bool once;  /* then the next one that fits */
};

enum { ANSWERS_MAX = 16, REQUEST_BYTES_MAX = 16 << 10 };

struct answering {
    pid_t pid;
    FILE *asked; /* "METHOD PATH BODY", one on each line */
    char address[64];
};

/* A whole request: its head and as many bytes as it announces. */
static inline void answering_read(int fd, char request[REQUEST_BYTES_MAX])
{
    size_t used = 0, wanted = 0;
    ssize_t got;

    memset(request, 0, REQUEST_BYTES_MAX);
    while ((wanted == 0 || used < wanted) &&
           (got = read(fd, request + used, REQUEST_BYTES_MAX - used - 1)) > 0) {
        used += (size_t)got;
        const char *end = strstr(request, "\r\n\r\n");
        const char *length = strcasestr(request, "\r\nContent-Length: ");
        if (end != NULL)
            wanted =
                (size_t)(end - request) + 4 +
                (length != NULL ? strtoul(length + strlen("\r\nContent-Length: "), NULL, 10) : 0);
    }
}

static inline void answering_serve(int fd, FILE *asked, struct answer *answers)
{
    char request[REQUEST_BYTES_MAX], method[16], path[1024];
    struct answer *answer = answers;

    answering_read(fd, request);
    const char *body = strstr(request, "\r\n\r\n");
    if (body == NULL || sscanf(request, "%15s %1023s", method, path) != 2)
        return; /* whoever asked so sees no answer */
    (void)fprintf(asked, "%s %s %s\n", method, path, body + 4);
    (void)fflush(asked);
    while (answer->path != NULL && (answer->status < 0 || !text_starts_with(path, answer->path)))
        answer++;
    const char *text = answer->path != NULL ? answer->body : "no such answer";
    int status = answer->path == NULL ? 404 : answer->status == 0 ? 200 : answer->status;
    (void)dprintf(fd,
                  "HTTP/1.1 %d Fine\r\nContent-Length: %zu\r\nX-Nomad-Index: 7\r\n"
                  "Connection: close\r\n\r\n%s",
                  status, strlen(text), text);
    if (answer->once)
        answer->status = -1; /* used */
}

static inline void answering_start(struct answering *answering, const struct answer *answers)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    struct answer left[ANSWERS_MAX] = {{.path = NULL}};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    for (size_t i = 0; answers[i].path != NULL; i++) {
        assert_true(i + 1 < ANSWERS_MAX);
        left[i] = answers[i];
    }
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    (void)text_format(answering->address, sizeof(answering->address), "http://127.0.0.1:%d",
                      ntohs(address.sin_port));
    answering->asked = tmpfile();
    assert_non_null(answering->asked);
    assert_int_equal(setenv("CAIRN_ADDR", answering->address, 1), 0);
    answering->pid = fork();
    assert_true(answering->pid >= 0);
    while (answering->pid == 0) {
        int fd = accept(listener, NULL, NULL);
        answering_serve(fd, answering->asked, left);
        (void)close(fd);
    }
    assert_int_equal(close(listener), 0);
}

/* All that was asked; owned by the caller. */
static inline char *answering_stop(struct answering *answering)
{
    assert_int_equal(kill(answering->pid, SIGKILL), 0);
    assert_int_equal(waitpid(answering->pid, NULL, 0), answering->pid);
    char *asked = read_whole(answering->asked);
    assert_int_equal(fclose(answering->asked), 0);
    assert_int_equal(unsetenv("CAIRN_ADDR"), 0);
    return asked;
}

#endif
