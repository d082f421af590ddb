/*
 * How soon a storage plugin mounts many volumes when nobody but a client asks it: bench_volumes
 * SOCKET DIRECTORY COUNT stages and publishes the volumes "disk-0[0]" to "disk-0[99]",
 * "disk-100[0]" and so on below DIRECTORY, all at once, prints "volumes MS", and undoes both.
 */
#include "csi/csi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { COUNT_MAX = 10000, TEXT_SIZE = 256 };

struct bench {
    struct loop *loop;
    struct csi_client *client;
    const char *directory;
    unsigned count, left;
};

struct volume {
    struct bench *bench;
    const enum csi_call *next; /* up to CSI_CALL_COUNT */
    char id[TEXT_SIZE], staging[TEXT_SIZE], target[TEXT_SIZE];
};

static const enum csi_call forward[] = {CSI_NODE_STAGE, CSI_NODE_PUBLISH, CSI_CALL_COUNT};
static const enum csi_call back[] = {CSI_NODE_UNPUBLISH, CSI_NODE_UNSTAGE, CSI_CALL_COUNT};

static void call_next(struct volume *volume);

static void on_answer(void *ctx, const struct csi_result *result)
{
    struct volume *volume = ctx;

    if (result->answer == NULL) {
        (void)fprintf(stderr, "%s\n", result->error.text);
        exit(1);
    }
    call_next(volume);
}

static void call_next(struct volume *volume)
{
    struct bench *bench = volume->bench;
    const struct csi_capability capability = {.access = CSI_SINGLE_NODE_WRITER};
    enum csi_call call = *volume->next++;

    if (call == CSI_CALL_COUNT) {
        if (--bench->left == 0)
            loop_stop(bench->loop);
        return;
    }
    struct csi_request request = {.call = call, .volume_id = volume->id};
    if (call != CSI_NODE_UNPUBLISH)
        request.staging_path = volume->staging;
    if (call == CSI_NODE_PUBLISH || call == CSI_NODE_UNPUBLISH)
        request.target_path = volume->target;
    if (call == CSI_NODE_STAGE || call == CSI_NODE_PUBLISH) {
        request.capabilities = &capability;
        request.capabilities_count = 1;
    }
    struct err err = {0};
    if (csi_start(bench->client, &request, on_answer, volume, &err) == NULL) {
        (void)fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
}

static double now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* always there */
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double run(struct bench *bench, struct volume *volumes, const enum csi_call *calls)
{
    double began_ms = now_ms();

    bench->left = bench->count;
    for (unsigned i = 0; i < bench->count; i++) {
        volumes[i].next = calls;
        call_next(&volumes[i]);
    }
    loop_run(bench->loop);
    return now_ms() - began_ms;
}

int main(int argc, char **argv)
{
    struct bench bench = {.loop = loop_new()};
    uint64_t count;

    check(argc == 4 && text_to_u64(argv[3], &count) && count > 0 && count <= COUNT_MAX);
    bench.count = (unsigned)count;
    bench.client = csi_client_new(bench.loop, "bench", argv[1], NULL);
    struct volume *volumes = calloc(bench.count, sizeof(*volumes));
    check(bench.client != NULL && volumes != NULL);
    for (unsigned i = 0; i < bench.count; i++) {
        struct volume *volume = &volumes[i];
        volume->bench = &bench;
        check(text_format(volume->id, TEXT_SIZE, "disk-%u[%u]", i / 100 * 100, i % 100));
        check(text_format(volume->staging, TEXT_SIZE, "%s/staging-%u", argv[2], i));
        check(text_format(volume->target, TEXT_SIZE, "%s/target-%u", argv[2], i));
        check(mkdir(volume->staging, 0700) == 0);
    }
    (void)printf("volumes %.1f\n", run(&bench, volumes, forward));
    (void)run(&bench, volumes, back);
    for (unsigned i = 0; i < bench.count; i++)
        check(rmdir(volumes[i].staging) == 0);
    free(volumes);
    csi_client_free(bench.client);
    loop_free(bench.loop);
    return 0;
}
