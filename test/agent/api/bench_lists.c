/*
 * What lists and blocking queries of the API cost, against what is least: writing the same JSON
 * out of a tree that is there already; and a change nobody waits for.
 *
 *     bench_lists [jobs [allocs]]
 *
 * Prints one line for each figure: name, milliseconds of the daemon's CPU, milliseconds of the
 * least.  The node runs in a process of its own and is asked over HTTP, so that only its own time
 * counts.
 */
#include "test/agent/api/whole_node.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

enum { JOBS_DEFAULT = 2000, ALLOCS_DEFAULT = 2000, ROUNDS = 7, BATCH = 100, PARKED = 100 };

struct answer {
    char *bytes, *body;
    size_t count, size;
};

static double cpu_ms(clockid_t clock)
{
    struct timespec now;

    check(clock_gettime(clock, &now) == 0);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* --- the node --- */

/* Jobs that run nothing, and others of BATCH allocs each. */
static void fill(struct whole_node *node, int jobs, int allocs)
{
    char id[32];

    for (int i = 0; i < jobs; i++) {
        (void)text_format(id, sizeof(id), "job-%05d", i); /* it fits */
        whole_register(node, id, 0);
        if (i % BATCH == 0)
            whole_turns(node);
    }
    for (int i = 0; i < allocs; i += BATCH) {
        (void)text_format(id, sizeof(id), "all-%05d", i); /* it fits */
        whole_register(node, id, BATCH);
        whole_turns(node);
    }
    whole_turns(node);
}

static void stop(void *ctx, int signal)
{
    (void)signal;
    loop_stop(ctx);
}

static void serve(int to, int jobs, int allocs)
{
    static const int signals[] = {SIGTERM, 0};
    struct whole_node node;

    whole_open(&node);
    loop_on_signals(node.parts.loop, signals, stop, node.parts.loop);
    fill(&node, jobs, allocs);
    const char *port = strrchr(api_address(node.api), ':') + 1;
    check(write(to, port, strlen(port) + 1) > 0);
    loop_run(node.parts.loop);
    whole_close(&node);
}

/* --- asking it --- */

static int number_of(const char *text)
{
    int64_t number = 0;

    check(text_to_i64(text, &number));
    return (int)number;
}

static int ask(int port, const char *method, const char *path, const char *body)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(fd >= 0);
    check(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    check(dprintf(fd,
                  "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                  "Content-Length: %zu\r\n\r\n%s",
                  method, path, strlen(body), body) > 0);
    return fd;
}

static struct answer hear(int fd)
{
    struct answer answer = {0};
    ssize_t got = 1;

    while (got > 0) {
        answer.bytes = list_room(answer.bytes, &answer.size, answer.count + (1 << 16), 1);
        got = read(fd, answer.bytes + answer.count, (1 << 16) - 1);
        check(got >= 0);
        answer.count += (size_t)got;
    }
    check(close(fd) == 0);
    answer.bytes[answer.count] = '\0';
    answer.body = strstr(answer.bytes, "\r\n\r\n");
    check(answer.body != NULL);
    answer.body += 4;
    return answer;
}

static struct answer get(int port, const char *path)
{
    return hear(ask(port, "GET", path, ""));
}

/* The least it can cost: its JSON out of a tree. */
static double dump_ms(const char *body)
{
    json_t *tree = json_loads(body, 0, NULL);
    double before = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);

    check(tree != NULL);
    char *text = json_dumps(tree, JSON_COMPACT);
    double took = cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - before;
    free(text);
    json_decref(tree);
    return took;
}

static void measure_list(int port, clockid_t node, const char *name, const char *path)
{
    double best = 1e9, least = 1e9, first = 0;

    for (int i = 0; i < ROUNDS; i++) {
        double before = cpu_ms(node);
        struct answer answer = get(port, path);
        double took = cpu_ms(node) - before, dumped = dump_ms(answer.body);

        first = i == 0 ? took : first;
        best = took < best ? took : best;
        least = dumped < least ? dumped : least;
        free(answer.bytes);
    }
    printf("%s %.2f %.2f first %.2f\n", name, best, least, first);
}

/* What PARKED changes of other jobs cost the node while WAITING queries wait for theirs. */
static double changes_ms(int port, clockid_t node, int waiting)
{
    int fds[PARKED];
    char path[128], body[512];

    for (int i = 0; i < waiting; i++) {
        (void)text_format(path, sizeof(path), "/v1/job/job-%05d/summary", i); /* it fits */
        struct answer now = get(port, path);
        char *index = strstr(now.bytes, "X-Nomad-Index: ");
        check(index != NULL);
        index += strlen("X-Nomad-Index: ");
        index[strcspn(index, "\r")] = '\0';
        (void)text_format(path, sizeof(path), "/v1/job/job-%05d/summary?index=%s", i,
                          index); /* it fits */
        free(now.bytes);
        fds[i] = ask(port, "GET", path, "");
    }
    free(get(port, "/v1/status/leader").bytes); /* they are parked */
    double before = cpu_ms(node);
    for (int i = 0; i < PARKED; i++) {
        (void)text_format(body, sizeof(body),
                          "{\"Job\":{\"ID\":\"other\",\"Name\":\"other\",\"Priority\":%d,"
                          "\"Datacenters\":[\"dc1\"],\"TaskGroups\":[{\"Name\":\"g\",\"Count\":0,"
                          "\"Tasks\":[{\"Name\":\"t\",\"Driver\":\"raw_exec\"}]}]}}",
                          1 + i % 90); /* it fits */
        free(hear(ask(port, "PUT", "/v1/jobs", body)).bytes);
    }
    double took = cpu_ms(node) - before;
    for (int i = 0; i < waiting; i++)
        check(close(fds[i]) == 0);
    free(get(port, "/v1/status/leader").bytes);
    return took;
}

int main(int argc, char **argv)
{
    int jobs = argc > 1 ? number_of(argv[1]) : JOBS_DEFAULT;
    int allocs = argc > 2 ? number_of(argv[2]) : ALLOCS_DEFAULT;
    char text[16];
    clockid_t node;
    int ends[2];

    check(pipe(ends) == 0);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        serve(ends[1], jobs, allocs);
        _exit(0);
    }
    check(read(ends[0], text, sizeof(text)) > 0);
    check(clock_getcpuclockid(child, &node) == 0);
    int port = number_of(text);
    measure_list(port, node, "jobs", "/v1/jobs");
    measure_list(port, node, "allocs", "/v1/allocations?task_states=false");
    measure_list(port, node, "allocs-states", "/v1/allocations");
    measure_list(port, node, "job-allocs", "/v1/job/all-00000/allocations");
    (void)changes_ms(port, node, 0); /* warms up */
    double alone = changes_ms(port, node, 0);
    double waited = changes_ms(port, node, jobs < PARKED ? jobs : PARKED);
    printf("parked %.2f %.2f\n", waited, alone);
    check(kill(child, SIGTERM) == 0);
    check(waitpid(child, NULL, 0) == child);
    return 0;
}
