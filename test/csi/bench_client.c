/*
 * What one call to a plugin costs beside the same call made by libcurl alone: bench_client prints
 * "call US BARE_US", the middle of some rounds, one call after the other.
 *
 * The plugin is a process that answers each connection at once with the same bytes, so that what is
 * measured is on our side.
 */
#include "csi/csi.h"
#include "io/net/curl_library.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 500, ROUNDS = 9 };

/* HEADERS, DATA with a NodeGetInfoResponse of one field, trailers; see test/io/net/test_grpc.c. */
static const char answer[] = "\0\0\0\4\0\0\0\0\0"
                             "\0\0\0\4\1\0\0\0\0"
                             "\0\0\x20\1\4\0\0\0\1"
                             "\x88\0\x0c"
                             "content-type\x10"
                             "application/grpc"
                             "\0\0\x0d\0\0\0\0\0\1"
                             "\0\0\0\0\x08\x0a\x06node-7"
                             "\0\0\x0f\1\5\0\0\0\1"
                             "\0\x0b"
                             "grpc-status\1"
                             "0";

static const char data_frame[] = "\0\0\5\0\1\0\0\0\1\0\0\0\0\0"; /* the end of the request */

static int listen_on(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(fd >= 0 && text_copy(at.sun_path, sizeof(at.sun_path), path));
    check(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 128) == 0);
    return fd;
}

static _Noreturn void serve(int listening)
{
    char bytes[4096];

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* an unkillable one would only be left */
    for (;;) {
        int fd = accept(listening, NULL, NULL);
        size_t got = 0;

        while (memmem(bytes, got, data_frame, sizeof(data_frame) - 1) == NULL) {
            ssize_t more = read(fd, bytes + got, sizeof(bytes) - got);
            if (more <= 0)
                break;
            got += (size_t)more;
        }
        (void)send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL); /* or the client says so */
        while (read(fd, bytes, sizeof(bytes)) > 0)
            ;
        close(fd);
    }
}

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* always there */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- ours --- */

struct caller {
    struct loop *loop;
    struct csi_client *client;
    unsigned left;
};

static void call_next(struct caller *caller);

static void on_answer(void *ctx, const struct csi_result *result)
{
    struct caller *caller = ctx;

    if (result->answer == NULL) {
        (void)fprintf(stderr, "%s\n", result->error.text);
        exit(1);
    }
    check(strcmp(result->answer->node_id, "node-7") == 0);
    if (--caller->left == 0)
        loop_stop(caller->loop);
    else
        call_next(caller);
}

static void call_next(struct caller *caller)
{
    const struct csi_request request = {.call = CSI_NODE_INFO};

    check(csi_start(caller->client, &request, on_answer, caller, NULL) != NULL);
}

static double ours_us(struct caller *caller)
{
    uint64_t began_ns = now_ns();

    caller->left = CALLS;
    call_next(caller);
    loop_run(caller->loop);
    return (double)(now_ns() - began_ns) / 1e3 / CALLS;
}

/* --- libcurl's --- */

static size_t drop(char *bytes, size_t size, size_t count, void *ctx)
{
    (void)bytes;
    (void)ctx;
    return size * count;
}

static double bare_us(const char *socket)
{
    CURLcode (*perform)(CURL *) = NULL;
    void *library = dlopen("libcurl.so.4", RTLD_NOW);

    library = library == NULL ? dlopen("libcurl-gnutls.so.4", RTLD_NOW) : library;
    *(void **)&perform = dlsym(library, "curl_easy_perform");
    check(perform != NULL && curl_library_load(NULL) == 0);
    const struct curl_library *curl = &curl_library;
    CURL *easy = curl->easy_init();
    struct curl_slist *lines = curl->slist_append(NULL, "content-type: application/grpc");
    lines = curl->slist_append(curl->slist_append(lines, "te: trailers"), "Expect:");
    (void)curl->easy_setopt(easy, CURLOPT_URL, "http://localhost/csi.v1.Node/NodeGetInfo");
    (void)curl->easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, socket);
    (void)curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    (void)curl->easy_setopt(easy, CURLOPT_POST, 1L);
    (void)curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 5L);
    (void)curl->easy_setopt(easy, CURLOPT_POSTFIELDS, "\0\0\0\0\0");
    (void)curl->easy_setopt(easy, CURLOPT_HTTPHEADER, lines);
    (void)curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
    (void)curl->easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    (void)curl->easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    uint64_t began_ns = now_ns();
    for (unsigned i = 0; i < CALLS; i++)
        check(perform(easy) == CURLE_OK);
    double us = (double)(now_ns() - began_ns) / 1e3 / CALLS;
    curl->easy_cleanup(easy);
    curl->slist_free_all(lines);
    return us;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

int main(void)
{
    char directory[] = "/tmp/cairn-bench-XXXXXX", socket[64];
    double ours[ROUNDS], bare[ROUNDS];
    struct caller caller = {0};

    check(mkdtemp(directory) != NULL && text_format(socket, sizeof(socket), "%s/s", directory));
    int listening = listen_on(socket);
    pid_t plugin = fork();
    if (plugin == 0)
        serve(listening);
    check(plugin > 0);
    close(listening);
    caller.loop = loop_new();
    caller.client = csi_client_new(caller.loop, "bench", socket, NULL);
    (void)ours_us(&caller); /* to be warm */
    for (int i = 0; i < ROUNDS; i++) {
        bare[i] = bare_us(socket);
        ours[i] = ours_us(&caller);
    }
    qsort(ours, ROUNDS, sizeof(ours[0]), compare);
    qsort(bare, ROUNDS, sizeof(bare[0]), compare);
    (void)printf("call %.1f %.1f\n", ours[ROUNDS / 2], bare[ROUNDS / 2]);
    csi_client_free(caller.client);
    loop_free(caller.loop);
    check(kill(plugin, SIGKILL) == 0 && waitpid(plugin, NULL, 0) == plugin);
    check(unlink(socket) == 0 && rmdir(directory) == 0);
    return 0;
}
