/*
 * What one turn of one machine costs beside idle machines: bench_turn prints "MACHINES NS" for few
 * and for many of them.  The store takes everything and keeps nothing, so only the core is
 * measured.
 */
#include "test/core/small_node.h"

#include <time.h>

enum { TURNS = 20000, ROUNDS = 5 };

static int take(void *ctx, const struct journal_batch *batch, struct err *err)
{
    (void)ctx;
    (void)batch;
    (void)err;
    return 0;
}

static uint64_t cpu_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* always there */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A status is acknowledged: one event, one record, one commit, no effect. */
static uint64_t measure(struct small_node *node)
{
    struct machine_id id = small_alloc(1);
    const struct alloc *alloc = core_alloc(node->core, id.text);
    struct ack ack = {.status_revision = alloc->status_revision};
    uint64_t began_ns = cpu_ns();

    for (uint32_t i = 0; i < TURNS; i++) {
        struct err err;
        core_tell(node->core, &id, AE_STATUS_ACKED, &ack);
        int code = core_turn(node->core, node->now_ms, 0, i, &err);
        check(code == 0);
    }
    return (cpu_ns() - began_ns) / TURNS;
}

int main(void)
{
    static const unsigned sizes[] = {16, 16000};

    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        struct small_node node = {.now_ms = SMALL_START_MS};
        struct world world = {
            .ctx = &node, .commit = take, .perform = small_perform, .refuse = small_refuse};
        uint64_t best_ns = UINT64_MAX;

        node.core = core_new(&world);
        core_continue(node.core, 1, 0);
        for (unsigned number = 1; number <= sizes[s] / 2; number++) /* an alloc and its task */
            small_place(&node, number, "web", false);
        small_turns(&node);
        for (int round = 0; round < ROUNDS; round++) {
            uint64_t ns = measure(&node);
            best_ns = ns < best_ns ? ns : best_ns;
        }
        (void)printf("%u %llu\n", sizes[s], (unsigned long long)best_ns);
        core_free(node.core);
    }
    return 0;
}
