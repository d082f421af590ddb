/*
 * How fast a journal is verified.
 *
 * usage: bench_verify [EVENTS] [DIR]
 *
 * Makes a journal of EVENTS events (default 1,000,000) in DIR (default: a new one under /dev/shm,
 * removed afterwards), then verifies it once from a cold start of the library and prints events a
 * second and how much memory it took.  A DIR that holds a journal already is verified as it is.
 */
#include "test/core/small_node.h"

#include "inspect/inspect.h"
#include "io/host.h"

#include <malloc.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIVE_ALLOCS = 64 };

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Allocs come, run, crash once, are stopped and destroyed; LIVE_ALLOCS of them at a time. */
static void make_journal(const char *path, uint64_t events)
{
    struct small_node node;
    unsigned number = 0;

    small_open(&node, path);
    while (journal_next_sequence(node.journal) <= events) {
        for (unsigned i = 0; i < LIVE_ALLOCS; i++)
            small_place(&node, number + i, i % 4 == 0 ? "web side" : "web", i % 2 == 0);
        small_turns(&node);
        for (unsigned i = 0; i < LIVE_ALLOCS; i += 2)
            small_exit(&node, number + i, "web", i % 8 == 0 ? 1 : 0);
        small_turns(&node);
        small_wait(&node, 30000);
        if (number % (LIVE_ALLOCS * 16) == 0)
            small_restart(&node, 1000, false);
        for (unsigned i = 0; i < LIVE_ALLOCS; i++)
            small_stop(&node, number + i, true);
        small_turns(&node);
        number += LIVE_ALLOCS;
    }
    small_close(&node);
}

/* In a process of its own, so that the memory it takes is not counted. */
static bool make_in_child(const char *path, uint64_t events)
{
    int status = 1;
    pid_t child = fork();

    if (child == 0) {
        make_journal(path, events);
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void print_finding(void *ctx, const struct finding *finding)
{
    uint64_t *count = ctx;

    if ((*count)++ < 5)
        (void)printf("%s: %s: %s\n", inspect_finding_name(finding->kind), finding->where,
                     finding->details);
}

/* Of this program alone: what getrusage() says begins with what the caller of exec had. */
static unsigned long peak_kb(void)
{
    char line[128];
    unsigned long kb = 0;
    FILE *file = fopen("/proc/self/status", "re");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "VmHWM: %lu kB", &kb) == 1)
            break;
    }
    if (file != NULL)
        (void)fclose(file); /* it was only read */
    return kb;
}

static int verify(const char *path)
{
    struct inspect_verdict verdict;
    struct journal *journal;
    uint64_t findings = 0;
    struct err err = {0};

    int code = journal_open(path, JOURNAL_READ, &journal, &err);
    double start = now_s();
    if (code == 0)
        code = inspect_verify(journal, print_finding, &findings, &verdict, &err);
    double took = now_s() - start;
    if (code < 0) {
        (void)fprintf(stderr, "bench_verify: %s\n", err.text);
        return 1;
    }
    journal_close(journal);
    (void)printf(
        "verified %llu events in %.2f s: %.0f events/s, %llu findings; heap in use %zu kB, "
        "peak RSS %lu kB\n",
        (unsigned long long)verdict.events, took, (double)verdict.events / took,
        (unsigned long long)findings, mallinfo2().uordblks / 1024, peak_kb());
    return verdict.bad == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    uint64_t events = 1000000;
    char made[] = "/dev/shm/cairn-bench-XXXXXX", path[256], file[300];
    struct stat about;
    struct err err;

    if (argc > 1 && !text_to_u64(argv[1], &events)) {
        (void)fprintf(stderr, "usage: bench_verify [EVENTS] [DIR]\n");
        return 2;
    }
    if (argc > 2)
        (void)text_copy(path, sizeof(path), argv[2]);
    else if (mkdtemp(made) != NULL)
        (void)text_format(path, sizeof(path), "%s/journal", made);
    else
        return 1;
    (void)text_format(file, sizeof(file), "%s/data.mdb", path);
    if (stat(file, &about) != 0) {
        double start = now_s();
        if (!make_in_child(path, events))
            return 1;
        (void)printf("made in %.1f s\n", now_s() - start);
    }
    int status = verify(path);
    if (argc <= 2 && tree_remove(AT_FDCWD, made, &err) < 0)
        (void)fprintf(stderr, "bench_verify: left behind: %s\n", err.text);
    return status;
}
