/* The last events: what is kept, in which order, and what is known to be gone. */
#include "agent/api/streams/past.h"
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Of LENGTH bytes, told at INDEX, about a job that is named after it. */
static void add(struct past *past, uint64_t index, size_t length)
{
    char key[32];
    char *line = calloc(1, length);

    assert_non_null(line);
    (void)snprintf(key, sizeof(key), "job-%d", (int)index);
    past_add(past, index,
             &(struct event){.topic = TOPIC_JOB,
                             .type = "JobRegistered",
                             .key = key,
                             .namespace = "default",
                             .filter_keys = {key, NULL}},
             line, length);
}

struct seen {
    char keys[PAST_EVENTS_MAX][32];
    size_t count, bytes;
};

static void see(void *ctx, const struct event *event, const char *line, size_t length)
{
    struct seen *seen = ctx;

    assert_non_null(line);
    assert_string_equal(event->filter_keys[0], event->key);
    assert_null(event->filter_keys[1]);
    assert_true(text_copy(seen->keys[seen->count++], sizeof(seen->keys[0]), event->key));
    seen->bytes += length;
}

static void test_nothing_is_known_of_what_was_before(void **state)
{
    struct past *past = past_new(7);
    struct seen seen = {.count = 0};

    (void)state;
    assert_int_equal(past_gone(past), 7);
    past_each(past, 0, see, &seen);
    assert_int_equal(seen.count, 0);
    past_free(past);
    past_free(NULL);
}

static void test_oldest_goes_first_and_is_known_to_be_gone(void **state)
{
    struct past *past = past_new(0);
    struct seen seen = {.count = 0};

    (void)state;
    for (uint64_t index = 1; index <= PAST_EVENTS_MAX + 3; index++)
        add(past, index, 10);
    assert_int_equal(past_gone(past), 3);
    past_each(past, 1, see, &seen);
    assert_int_equal(seen.count, PAST_EVENTS_MAX);
    assert_string_equal(seen.keys[0], "job-4");
    assert_string_equal(seen.keys[PAST_EVENTS_MAX - 1], "job-103");
    past_free(past);
}

static void test_index_that_is_asked_for_is_among_them(void **state)
{
    struct past *past = past_new(0);
    struct seen seen = {.count = 0};

    (void)state;
    add(past, 4, 10);
    add(past, 6, 10);
    add(past, 6, 10);
    add(past, 9, 10);
    past_each(past, 6, see, &seen);
    assert_int_equal(seen.count, 3);
    assert_string_equal(seen.keys[0], "job-6");
    past_each(past, 10, see, &seen);
    assert_int_equal(seen.count, 3);
    assert_int_equal(past_gone(past), 0);
    past_free(past);
}

static void test_bytes_are_bounded_even_for_one_event(void **state)
{
    struct past *past = past_new(0);
    struct seen seen = {.count = 0};

    (void)state;
    add(past, 1, 10);
    add(past, 2, PAST_BYTES_MAX);
    assert_int_equal(past_gone(past), 1);
    past_each(past, 0, see, &seen);
    assert_int_equal(seen.bytes, PAST_BYTES_MAX);
    add(past, 3, PAST_BYTES_MAX + 1);
    assert_int_equal(past_gone(past), 3);
    past_each(past, 0, see, &seen);
    assert_int_equal(seen.count, 1); /* nothing more */
    past_free(past);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_known_of_what_was_before),
        cmocka_unit_test(test_oldest_goes_first_and_is_known_to_be_gone),
        cmocka_unit_test(test_index_that_is_asked_for_is_among_them),
        cmocka_unit_test(test_bytes_are_bounded_even_for_one_event),
    };

    return cmocka_run_group_tests_name("api_past", tests, NULL, NULL);
}
