/*
 * A life of which nothing is stored and where nothing happens, in a world of one timer that fires
 * once: for tests of what a life does by itself.
 */
#ifndef CAIRN_TEST_CORE_EMPTY_LIFE_H
#define CAIRN_TEST_CORE_EMPTY_LIFE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/life.h"

#include <stdlib.h>

struct empty_life {
    struct life *life;
    uint64_t now_ms;
    uint64_t armed_ms; /* 0: the timer does not run */
    unsigned sweeps, commits, starts;
    bool full; /* no commit can be made */
};

static inline int empty_commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    struct empty_life *empty = ctx;

    (void)batch;
    if (empty->full)
        return err_set(err, ERR_FULL, "no space left");
    empty->commits++;
    return 0;
}

static inline uint64_t empty_sequence(void *ctx)
{
    (void)ctx;
    return 1;
}

static inline int empty_each_record(void *ctx, enum machine_kind kind, journal_record_cb *cb,
                                    journal_bad *bad, void *cb_ctx, struct err *err)
{
    (void)ctx, (void)kind, (void)cb, (void)bad, (void)cb_ctx, (void)err;
    return 0;
}

static inline int empty_each_spec(void *ctx, const char *prefix, journal_blob_cb *cb, void *cb_ctx,
                                  struct err *err)
{
    (void)ctx, (void)prefix, (void)cb, (void)cb_ctx, (void)err;
    return 0;
}

static inline int empty_each_bad_spec(void *ctx, journal_bad *bad, void *cb_ctx, struct err *err)
{
    (void)ctx, (void)bad, (void)cb_ctx, (void)err;
    return 0;
}

static inline uint64_t empty_now(void *ctx, int64_t *ret_unix_ns)
{
    *ret_unix_ns = 1;
    return ((struct empty_life *)ctx)->now_ms;
}

static inline uint64_t empty_draw(void *ctx)
{
    (void)ctx;
    return 1;
}

static inline void empty_arm(void *ctx, uint64_t at_ms)
{
    ((struct empty_life *)ctx)->armed_ms = at_ms;
}

static inline void empty_perform(void *ctx, const struct effect *effect)
{
    struct empty_life *empty = ctx;

    if (!life_perform(empty->life, effect))
        empty->starts += effect->id.kind == MACHINE_TASK && effect->kind == TX_DRIVER_START;
}

static inline void empty_sweep(void *ctx)
{
    ((struct empty_life *)ctx)->sweeps++;
}

static inline int empty_begin(void **state)
{
    struct empty_life *empty = calloc(1, sizeof(*empty));
    struct life_start how = {.authority = true};
    struct err err = {0};
    struct life_world world = {
        .ctx = empty,
        .store = {.ctx = empty,
                  .commit = empty_commit,
                  .first_sequence = empty_sequence,
                  .next_sequence = empty_sequence,
                  .each_record = empty_each_record,
                  .each_spec = empty_each_spec,
                  .each_bad_spec = empty_each_bad_spec},
        .now = empty_now,
        .random = empty_draw,
        .arm = empty_arm,
        .perform = empty_perform,
        .sweep = empty_sweep,
    };

    assert_non_null(empty);
    empty->now_ms = 1000;
    empty->life = life_new(&world);
    *state = empty;
    return life_start(empty->life, &how, &err);
}

static inline int empty_end(void **state)
{
    struct empty_life *empty = *state;

    life_free(empty->life);
    free(empty);
    return 0;
}

#define EMPTY_LIFE_TEST(name) cmocka_unit_test_setup_teardown(name, empty_begin, empty_end)

#endif
