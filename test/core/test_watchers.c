/* Watchers: who is told of which change, and which index a subject has. */
#include "core/life/part.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WATCHERS = 4 };

static const struct life_subject everything = {LIFE_EVERYTHING, NULL, NULL};
static const struct life_subject job = {LIFE_JOB, "default", "web"};
static const struct life_subject other_job = {LIFE_JOB, "other", "web"};
static const struct life_subject alloc = {LIFE_ALLOC, NULL, "a"};

static uint64_t now(void *ctx, int64_t *ret_unix_ns)
{
    *ret_unix_ns = 0;
    return *(uint64_t *)ctx;
}

static uint64_t draw(void *ctx)
{
    (void)ctx;
    return 1;
}

static int commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    (void)ctx;
    (void)batch;
    (void)err;
    return 0;
}

static void perform(void *ctx, const struct effect *effect)
{
    (void)ctx;
    (void)effect;
}

static void sweep(void *ctx)
{
    (void)ctx;
}

static uint64_t clock_ms = 1;

/* A life whose journal ends with the event INDEX. */
static struct life *life_at(uint64_t index)
{
    struct life_world world = {.ctx = &clock_ms,
                               .store = {.commit = commit},
                               .now = now,
                               .random = draw,
                               .perform = perform,
                               .sweep = sweep};
    struct life *life = life_new(&world);

    core_continue(life_core(life), index + 1, 1);
    life_index_begins(life, index);
    return life;
}

/* What the next telling gives as index. */
static void commit_to(struct life *life, uint64_t index)
{
    core_continue(life_core(life), index + 1, 1);
}

static void count(void *ctx)
{
    ++*(int *)ctx;
}

static void test_watcher_hears_of_its_subject_only(void **state)
{
    struct life *life = life_at(10);
    int all = 0, one = 0, other = 0, at_alloc = 0;
    (void)state;

    life_watch(life, &everything, count, &all);
    life_watch(life, &job, count, &one);
    life_watch(life, &other_job, count, &other);
    life_watch(life, &alloc, count, &at_alloc);
    life_tell_watchers(life);
    assert_int_equal(all + one + other + at_alloc, 0);
    life_changed(life, &job);
    life_changed(life, &job); /* once for all of one commit */
    life_tell_watchers(life);
    life_tell_watchers(life);
    assert_int_equal(all, 1);
    assert_int_equal(one, 1);
    assert_int_equal(other, 0);
    assert_int_equal(at_alloc, 0);
    life_free(life);
}

static void test_watcher_of_a_job_hears_of_its_allocs(void **state)
{
    struct life *life = life_at(10);
    struct alloc record = {.assign = {.namespace = "default", .job_id = "web"}};
    int all = 0, one = 0, other = 0, at_alloc = 0;
    (void)state;

    life_watch(life, &everything, count, &all);
    life_watch(life, &job, count, &one);
    life_watch(life, &other_job, count, &other);
    life_watch(life, &alloc, count, &at_alloc);
    life_alloc_changed(life, "a", &record);
    life_alloc_changed(life, "b", &record);
    life_tell_watchers(life);
    assert_int_equal(all, 1);
    assert_int_equal(one, 1);
    assert_int_equal(other, 0);
    assert_int_equal(at_alloc, 1);
    life_alloc_gone(life, "b", &record);
    life_tell_watchers(life);
    assert_int_equal(one, 2);
    assert_int_equal(at_alloc, 1);
    life_free(life);
}

static void test_index_is_that_of_the_last_change(void **state)
{
    struct life *life = life_at(10);
    (void)state;

    assert_int_equal(life_index(life, &job), 10); /* that of the start */
    life_changed(life, &job);
    commit_to(life, 12);
    assert_int_equal(life_index(life, &job), 10); /* not committed yet */
    life_tell_watchers(life);
    assert_int_equal(life_index(life, &job), 12);
    assert_int_equal(life_index(life, &everything), 12);
    assert_int_equal(life_index(life, &other_job), 10);
    life_changed(life, &alloc);
    commit_to(life, 15);
    life_tell_watchers(life);
    assert_int_equal(life_index(life, &job), 12);
    assert_int_equal(life_index(life, &alloc), 15);
    assert_int_equal(life_index(life, &everything), 15);
    life_free(life);
}

static void test_index_of_what_is_gone_does_not_decrease(void **state)
{
    struct life *life = life_at(10);
    (void)state;

    life_changed(life, &alloc);
    commit_to(life, 20);
    life_tell_watchers(life);
    life_gone(life, &alloc);
    commit_to(life, 21);
    life_tell_watchers(life);
    assert_null(life->watched.subjects); /* nothing is kept of it */
    assert_int_equal(life_index(life, &alloc), 21);
    life_free(life);
}

static void test_subject_that_is_gone_is_kept_while_watched(void **state)
{
    struct life *life = life_at(10);
    int calls = 0;
    (void)state;

    life_watch(life, &alloc, count, &calls);
    life_changed(life, &alloc);
    life_gone(life, &alloc);
    life_tell_watchers(life);
    assert_int_equal(calls, 1);
    assert_non_null(life->watched.subjects);
    life_unwatch(life, &alloc, count, &calls);
    assert_null(life->watched.subjects);
    life_free(life);
}

static void test_subject_that_never_was_is_dropped_with_its_watcher(void **state)
{
    struct life *life = life_at(10);
    int calls = 0;
    (void)state;

    life_watch(life, &job, count, &calls);
    life_unwatch(life, &job, count, &calls);
    life_unwatch(life, &job, count, &calls); /* twice is once */
    assert_null(life->watched.subjects);
    assert_int_equal(life->watched.watchers_count, 0);
    life_free(life);
}

static void test_subject_with_a_name_too_long_never_changes(void **state)
{
    char name[2 * SPEC_NAME_SIZE + SPEC_NAMESPACE_SIZE];
    struct life_subject long_job = {LIFE_JOB, "default", name};
    struct life *life = life_at(10);
    int calls = 0;
    (void)state;

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    life_watch(life, &long_job, count, &calls);
    assert_int_equal(life_index(life, &long_job), 10);
    life_unwatch(life, &long_job, count, &calls);
    assert_int_equal(life->watched.watchers_count, 0);
    life_free(life);
}

/* --- from callbacks --- */

struct script {
    struct life *life;
    const struct life_subject *subject;
    struct script *victim; /* taken away when this one is called */
    int calls;
    bool again; /* watches again once it has gone */
};

static void play(void *ctx)
{
    struct script *script = ctx;

    script->calls++;
    life_unwatch(script->life, script->subject, play, script);
    if (script->victim != NULL)
        life_unwatch(script->life, script->victim->subject, play, script->victim);
    if (script->again)
        life_watch(script->life, script->subject, play, script);
}

static void watch_script(struct life *life, const struct life_subject *subject,
                         struct script *script)
{
    script->life = life;
    script->subject = subject;
    life_watch(life, subject, play, script);
}

static void test_watcher_may_go_when_it_is_called(void **state)
{
    struct life *life = life_at(10);
    struct script scripts[WATCHERS] = {0};
    (void)state;

    for (int i = 0; i < WATCHERS; i++)
        watch_script(life, &job, &scripts[i]);
    for (int round = 0; round < 2; round++) {
        life_changed(life, &job);
        life_tell_watchers(life);
    }
    for (int i = 0; i < WATCHERS; i++)
        assert_int_equal(scripts[i].calls, 1);
    assert_int_equal(life->watched.watchers_count, 0);
    life_free(life);
}

static void test_watcher_that_was_taken_away_is_not_called(void **state)
{
    struct life *life = life_at(10);
    struct script scripts[WATCHERS] = {0};
    (void)state;

    for (int i = 0; i < WATCHERS; i++)
        watch_script(life, i == 3 ? &everything : &job, &scripts[i]);
    scripts[0].victim = &scripts[2];
    scripts[1].victim = &scripts[0]; /* has gone by itself */
    life_changed(life, &job);
    life_tell_watchers(life);
    assert_int_equal(scripts[0].calls, 1);
    assert_int_equal(scripts[1].calls, 1);
    assert_int_equal(scripts[2].calls, 0);
    assert_int_equal(scripts[3].calls, 1);
    assert_int_equal(life->watched.watchers_count, 0);
    life_free(life);
}

static void test_watcher_that_watches_again_waits_for_the_next_change(void **state)
{
    struct life *life = life_at(10);
    struct script script = {.again = true};
    (void)state;

    watch_script(life, &job, &script);
    life_changed(life, &job);
    life_tell_watchers(life);
    assert_int_equal(script.calls, 1);
    life_changed(life, &job);
    life_tell_watchers(life);
    assert_int_equal(script.calls, 2);
    assert_int_equal(life->watched.watchers_count, 1);
    life_free(life);
}

static void change_alloc(void *ctx)
{
    life_changed(ctx, &alloc);
}

static void test_change_made_by_a_watcher_is_told_next_time(void **state)
{
    struct life *life = life_at(10);
    int calls = 0;
    (void)state;

    life_watch(life, &alloc, count, &calls);
    life_watch(life, &job, change_alloc, life);
    life_changed(life, &job);
    life_tell_watchers(life);
    assert_int_equal(calls, 0);
    life_tell_watchers(life);
    assert_int_equal(calls, 1);
    life_free(life);
}

static void test_what_changes_now_has_an_index_of_its_own(void **state)
{
    struct life *life = life_at(10);
    (void)state;

    for (uint64_t index = 11; index < 14; index++) { /* commits of no event */
        assert_int_equal(life_next_index(life), index);
        life_changed(life, &job);
        life_tell_watchers(life);
        assert_int_equal(life_index(life, &everything), index);
    }
    commit_to(life, 20); /* events that nobody sees */
    assert_int_equal(life_next_index(life), 14);
    life_changed(life, &job);
    life_tell_watchers(life);
    assert_int_equal(life_index(life, &job), 20);
    assert_int_equal(life_next_index(life), 21);
    life_free(life);
}

static void test_index_goes_on_above_what_was_kept(void **state)
{
    struct life *life = life_at(10);
    (void)state;

    life_index_follows(life, 30);
    life_index_follows(life, 20);
    life_index_follows(life, NUMBER_MAX); /* nothing ever had it */
    assert_int_equal(life_index(life, &everything), 30);
    assert_int_equal(life_index(life, &job), 30);
    assert_int_equal(life_next_index(life), 31);
    life_changed(life, &job);
    commit_to(life, 12);
    life_tell_watchers(life);
    assert_int_equal(life_index(life, &job), 31);
    life_free(life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watcher_hears_of_its_subject_only),
        cmocka_unit_test(test_watcher_of_a_job_hears_of_its_allocs),
        cmocka_unit_test(test_index_is_that_of_the_last_change),
        cmocka_unit_test(test_index_of_what_is_gone_does_not_decrease),
        cmocka_unit_test(test_subject_that_is_gone_is_kept_while_watched),
        cmocka_unit_test(test_subject_that_never_was_is_dropped_with_its_watcher),
        cmocka_unit_test(test_subject_with_a_name_too_long_never_changes),
        cmocka_unit_test(test_watcher_may_go_when_it_is_called),
        cmocka_unit_test(test_watcher_that_was_taken_away_is_not_called),
        cmocka_unit_test(test_watcher_that_watches_again_waits_for_the_next_change),
        cmocka_unit_test(test_change_made_by_a_watcher_is_told_next_time),
        cmocka_unit_test(test_what_changes_now_has_an_index_of_its_own),
        cmocka_unit_test(test_index_goes_on_above_what_was_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
