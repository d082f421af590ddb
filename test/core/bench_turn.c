/*
 * What one turn of one machine costs beside idle machines: bench_turn prints "MACHINES NS" for few
 * and for many of them, of allocs with their tasks, of volumes of one plugin and of claims on one
 * volume.  The store takes everything and keeps nothing, so only the core is measured.
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

/* --- allocs: a status is acknowledged --- */

static void place_allocs(struct small_node *node, unsigned machines)
{
    for (unsigned number = 1; number <= machines / 2; number++) /* an alloc and its task */
        small_place(node, number, "web", false);
}

static void tell_alloc(struct small_node *node)
{
    struct machine_id id = small_alloc(1);
    const struct alloc *alloc = core_alloc(node->core, id.text);
    struct ack ack = {.status_revision = alloc->status_revision};

    core_tell(node->core, &id, AE_STATUS_ACKED, &ack);
}

/* --- volumes: one of another claim on it is heard --- */

static struct machine_id claim_id(unsigned number)
{
    char alloc[UUID_TEXT_SIZE];

    small_alloc_id(alloc, number);
    return machine_id_join(MACHINE_VOLUME, alloc, "data");
}

/* NUMBER claims the volume DISK. */
static void define_claim(struct small_node *node, unsigned number, unsigned disk)
{
    struct volume_define define = {.access_mode = 1, .namespace = "default", .plugin = "disks"};
    struct machine_id id = claim_id(number);

    check(text_format(define.volume, sizeof(define.volume), "disk-%u", disk));
    core_tell(node->core, &id, VE_DEFINE, &define);
}

static void define_volumes(struct small_node *node, unsigned machines)
{
    for (unsigned number = 1; number <= machines; number++)
        define_claim(node, number, number);
}

static void define_users(struct small_node *node, unsigned machines)
{
    for (unsigned number = 1; number <= machines; number++)
        define_claim(node, number, 1);
}

static void tell_volume(struct small_node *node)
{
    static const struct claim left = {.external = "vol-1"};
    struct machine_id id = claim_id(1);

    core_tell(node->core, &id, VE_INHERIT, &left);
}

/* --- measuring --- */

/* Of one event, one record, one commit, no effect. */
static uint64_t measure(struct small_node *node, void (*tell)(struct small_node *node))
{
    uint64_t began_ns = cpu_ns();

    for (uint32_t i = 0; i < TURNS; i++) {
        struct err err;
        tell(node);
        int code = core_turn(node->core, node->now_ms, 0, i, &err);
        check(code == 0);
    }
    return (cpu_ns() - began_ns) / TURNS;
}

static void bench(unsigned machines, void (*fill)(struct small_node *node, unsigned machines),
                  void (*tell)(struct small_node *node))
{
    struct small_node node = {.now_ms = SMALL_START_MS};
    struct world world = {
        .ctx = &node, .commit = take, .perform = small_perform, .refuse = small_refuse};
    uint64_t best_ns = UINT64_MAX;

    node.core = core_new(&world);
    core_continue(node.core, 1, 0);
    fill(&node, machines);
    small_turns(&node);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t ns = measure(&node, tell);
        best_ns = ns < best_ns ? ns : best_ns;
    }
    (void)printf("%u %llu\n", machines, (unsigned long long)best_ns);
    core_free(node.core);
}

int main(void)
{
    bench(16, place_allocs, tell_alloc);
    bench(16000, place_allocs, tell_alloc);
    bench(16, define_volumes, tell_volume);
    bench(2000, define_volumes, tell_volume);
    bench(16, define_users, tell_volume);
    bench(2000, define_users, tell_volume);
    return 0;
}
