/*
 * Nothing looks at everything when it concerns one: a turn visits as many machines, and reads as
 * much of jobs, beside thousands of idle ones as beside a few.
 *
 * Visits are counted, not timed.  The files that walk are compiled into this program with what they
 * cannot walk without replaced: the question whether a machine is there, the allocs of a job, and a
 * look into it.
 */
#include "core/machines/part.h"
#include "server/alone/part.h"

static size_t visits, reads;

static bool visited_is_final(const struct machine *record)
{
    visits++;
    return fsm_is_final(record);
}

static json_t *read_object_get(const json_t *object, const char *name)
{
    reads++;
    return json_object_get(object, name);
}

static void fill_gathering(struct gathering *gathering)
{
    gathering_fill(gathering);
    visits += gathering->count;
}

#define fsm_is_final visited_is_final
#include "core/machines/machines.c"
#undef fsm_is_final
#define json_object_get read_object_get
#define gathering_fill fill_gathering
#include "server/alone/evaluations.c"
#include "server/alone/jobs.c"
#include "server/alone/wait.c"
#undef gathering_fill
#undef json_object_get

#include "test/server/small_life.h"

struct cost {
    size_t visits, reads;
};

static void begin_idle(struct small_life *small, int idle)
{
    char name[16];

    for (int i = 0; i < idle; i++) {
        (void)text_format(name, sizeof(name), "idle-%d", i); /* it fits */
        struct alone_evaluation evaluation = small_run(small, name, "/bin/a", 1, 0);
        assert_int_equal(evaluation.placed, 1);
    }
}

/* Looks at all allocs, which is the test's own doing. */
static struct small_counts count_unseen(struct small_life *small, const char *job)
{
    size_t before = visits;
    struct small_counts counts = small_count(small, job, NULL);

    visits = before;
    return counts;
}

/* What happens to one job: placed, one of its allocs stopped and replaced, another version, asked
 * for, waited for, purged. */
static void live(struct small_life *small)
{
    struct alone_evaluation evaluation = small_run(small, "one", "/bin/a", 2, 1);

    assert_int_equal(evaluation.placed, 3);
    struct small_counts counts = count_unseen(small, "one");
    assert_int_equal(alone_stop_alloc(small->alone, counts.newest, 0, &evaluation, NULL), 0);
    small_settle(small);
    assert_int_equal(count_unseen(small, "one").live, 3);
    evaluation = small_run(small, "one", "/bin/b", 1, 1);
    assert_int_equal(evaluation.placed, 1);
    assert_non_null(alone_evaluation(small->alone, evaluation.id));
    assert_int_not_equal(alone_placed_at(small->alone, evaluation.id), 0);
    assert_string_equal(alone_job_status(small->alone, small_find(small, "one")), "running");
    alone_look_later(small->alone, job_find(small->alone, "default", "one"), small->now_ms + 10);
    small->now_ms += 10;
    small_settle(small);
    assert_int_equal(
        alone_deregister(small->alone, "default", "one", ALONE_PURGE, &evaluation, NULL), 0);
    small_settle(small);
    assert_null(small_find(small, "one"));
}

static struct cost cost_beside(int idle)
{
    void *state;

    assert_int_equal(small_open(&state), 0);
    struct small_life *small = state;
    begin_idle(small, idle);
    visits = reads = 0;
    live(small);
    struct cost cost = {visits, reads};
    assert_int_equal(small_close(&state), 0);
    return cost;
}

static void test_one_job_costs_the_same_beside_many(void **state)
{
    struct cost few = cost_beside(4), many = cost_beside(400);

    (void)state;
    assert_true(few.visits > 0);
    assert_true(few.reads > 0);
    assert_int_equal(many.visits, few.visits);
    assert_int_equal(many.reads, few.reads);
}

/* What one look at JOB visits, which something has just happened to. */
static size_t visits_of_turn(struct small_life *small, struct job *job)
{
    visits = 0;
    alone_look_later(small->alone, job, small->now_ms);
    small_settle(small);
    return visits;
}

static void test_job_of_many_is_not_walked_for_each_of_them(void **state)
{
    enum { PAUSE_MS = 10, PAUSES = 4, TURNS_PER_MS = 5 };
    struct small_life *small = *state;
    struct alone_evaluation evaluation =
        small_run(small, "large", "/bin/a", PAUSE_MS * LOOK_ALLOCS_PER_MS, 0);
    struct job *job = job_find(small->alone, "default", "large");
    size_t all = 0;

    assert_int_equal(evaluation.placed, PAUSE_MS * LOOK_ALLOCS_PER_MS);
    small->now_ms += PAUSE_MS;
    size_t once = visits_of_turn(small, job);
    assert_true(once >= PAUSE_MS * LOOK_ALLOCS_PER_MS);
    for (int i = 0; i < PAUSES * PAUSE_MS * TURNS_PER_MS; i++) {
        all += visits_of_turn(small, job);
        small->now_ms += i % TURNS_PER_MS == 0;
    }
    assert_in_range(all, (PAUSES - 1) * once, PAUSES * once); /* and it is not forgotten */
}

static void test_who_has_a_volume_is_not_looked_for_among_all(void **state)
{
    struct small_life *small = *state;

    begin_idle(small, 8);
    visits = reads = 0;
    json_decref(alone_hosted_users(small->alone, "default", "data"));
    assert_int_equal(visits, 0);
    assert_int_equal(reads, 0);
}

/* The counters see who walks: else the test above would prove nothing. */
static void test_a_walk_over_all_is_seen(void **state)
{
    struct small_life *small = *state;

    begin_idle(small, 8);
    visits = reads = 0;
    alone_count_room(small->alone);
    assert_true(visits >= 8);
    visits = reads = 0;
    for (const struct job *job = small->alone->jobs; job != NULL; job = job->hh.next)
        assert_null(job_queue(job));
    assert_int_equal(reads, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_job_costs_the_same_beside_many),
        SMALL_TEST(test_job_of_many_is_not_walked_for_each_of_them),
        SMALL_TEST(test_who_has_a_volume_is_not_looked_for_among_all),
        SMALL_TEST(test_a_walk_over_all_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
