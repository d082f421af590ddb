/* The arena: zeroed, aligned, kept apart, and of any size. */
#include "spec/arena.h"

#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_memory_is_zeroed_aligned_and_apart(void **state)
{
    struct arena arena = {0};
    unsigned char *pieces[600];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        pieces[i] = arena_new(&arena, i);
        assert_int_equal((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
        for (size_t j = 0; j < i; j++)
            assert_int_equal(pieces[i][j], 0);
        memset(pieces[i], (int)(i & 0xff), i);
    }
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        for (size_t j = 0; j < i; j++)
            assert_int_equal(pieces[i][j], i & 0xff);
    }
    arena_free(&arena);
    assert_null(arena.chunks);
    assert_non_null(arena_new(&arena, 1)); /* it may be used again */
    arena_free(&arena);
}

static void test_what_is_larger_than_a_chunk_fits(void **state)
{
    enum { LARGE = 1 << 20 };
    struct arena arena = {0};
    char *small = arena_text(&arena, "small"), *large = arena_new(&arena, LARGE);

    (void)state;
    memset(large, 'x', LARGE);
    assert_string_equal(small, "small");
    assert_string_equal(arena_copy(&arena, "cut here", 3), "cut");
    arena_free(&arena);
}

static void test_a_list_grows_and_keeps_its_items(void **state)
{
    struct arena arena = {0};
    size_t *items = NULL;

    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        items = arena_more(&arena, items, i, sizeof(*items));
        items[i] = i;
    }
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(test_what_is_larger_than_a_chunk_fits),
        cmocka_unit_test(test_a_list_grows_and_keeps_its_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
