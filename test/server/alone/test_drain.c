/* Whether allocs may be placed here at all, and a node that is to be empty; over crashes, too. */
#include "test/server/small_life.h"

static struct err failure;

static const char *said(const struct small_life *small, const char *of, const char *name)
{
    const json_t *standing = alone_standing(small->alone);

    return json_string_value(
        json_object_get(of == NULL ? standing : json_object_get(standing, of), name));
}

static bool is_drained(const struct small_life *small)
{
    return json_is_object(json_object_get(alone_standing(small->alone), "Drain"));
}

static void set_eligible(struct small_life *small, bool eligible)
{
    assert_int_equal(alone_set_eligible(small->alone, eligible, &failure), 0);
    small_settle(small);
}

static void drain(struct small_life *small, int64_t deadline_ms, bool ignore_system)
{
    const struct alone_drain asked = {.deadline_ns = deadline_ms * 1000000,
                                      .ignore_system = ignore_system};

    assert_int_equal(alone_drain(small->alone, &asked, &failure), 0);
    small_settle(small);
}

/* One alloc of a job of TYPE. */
static void run(struct small_life *small, const char *name, const char *type)
{
    json_t *job = small_job(name, "/bin/a", 1, 0);
    struct alone_evaluation evaluation;

    assert_int_equal(json_object_set_new(job, "Type", json_string(type)), 0);
    assert_int_equal(json_object_del(job, "Update"), 0);
    assert_int_equal(json_array_remove(json_object_get(job, "TaskGroups"), 1), 0);
    if (alone_register(small->alone, job, &evaluation, NULL, &failure) != 0)
        fail_msg("%s", failure.text);
    json_decref(job);
    small_settle(small);
}

static size_t live(struct small_life *small, const char *name)
{
    return small_count(small, name, NULL).live;
}

/* --- eligibility --- */

static void test_nothing_is_placed_on_a_node_that_is_not_eligible(void **state)
{
    struct small_life *small = *state;

    run(small, "before", "service");
    set_eligible(small, false);
    run(small, "j", "service");
    small_again(small);
    assert_string_equal(said(small, NULL, "Eligibility"), "ineligible");
    assert_int_equal(live(small, "before"), 1); /* what runs goes on */
    assert_int_equal(live(small, "j"), 0);
    assert_string_equal(alone_job_status(small->alone, small_find(small, "j")), "running");
    set_eligible(small, true);
    assert_int_equal(live(small, "j"), 1);
}

/* It would be stopped, and nothing placed for it. */
static void test_what_runs_is_not_replaced_on_a_node_that_is_not_eligible(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small_run(small, "j", "/bin/a", 2, 0);
    set_eligible(small, false);
    assert_int_equal(small_post(small, "j", "/bin/b", 2, 0, &evaluation), ERR_AGAIN);
    small_settle(small);
    assert_int_equal(live(small, "j"), 2);
    assert_int_equal(small_post(small, "j", "/bin/a", 1, 0, &evaluation), 0); /* fewer of it */
    small_settle(small);
    assert_int_equal(live(small, "j"), 1);
    set_eligible(small, true);
    assert_int_equal(small_post(small, "j", "/bin/b", 1, 0, &evaluation), 0);
}

static void test_failed_commit_leaves_the_node_as_it_was(void **state)
{
    struct small_life *small = *state;
    struct small_heard heard = {0};

    run(small, "j", "service");
    small->commit_code = ERR_FULL;
    assert_int_equal(alone_drain(small->alone, &(struct alone_drain){.deadline_ns = -1}, &failure),
                     0);
    assert_false(alone_is_eligible(small->alone)); /* as the commit is to decide */
    life_after_commit(small->life, small_hear, &heard);
    small_settle(small);
    assert_int_equal(heard.code, ERR_FULL);
    assert_true(alone_is_eligible(small->alone));
    small->commit_code = 0;
    small->now_ms += 2000;
    small_settle(small);
    assert_int_equal(live(small, "j"), 1);
}

/* Nothing happens to an alloc, and who waits for news of the node is to hear it. */
static void test_what_is_said_of_the_node_has_an_index_of_its_own(void **state)
{
    struct small_life *small = *state;
    const struct life_subject everything = {.kind = LIFE_EVERYTHING};
    uint64_t before = life_index(small->life, &everything);

    set_eligible(small, false);
    uint64_t between = life_index(small->life, &everything);
    set_eligible(small, true);
    assert_true(before < between && between < life_index(small->life, &everything));
}

/* --- draining --- */

static void test_services_end_at_once_and_come_back(void **state)
{
    struct small_life *small = *state;

    small_run(small, "j", "/bin/a", 2, 1);
    drain(small, 60000, false);
    assert_int_equal(live(small, "j"), 0);
    assert_false(is_drained(small)); /* nothing was left */
    assert_string_equal(said(small, "LastDrain", "Status"), "complete");
    assert_string_equal(said(small, NULL, "Eligibility"), "ineligible");
    small_again(small);
    assert_int_equal(live(small, "j"), 0);
    set_eligible(small, true);
    assert_int_equal(live(small, "j"), 3);
}

static void test_batch_has_until_the_deadline_and_system_ends_last(void **state)
{
    struct small_life *small = *state;

    run(small, "web", "service");
    run(small, "work", "batch");
    run(small, "logs", "system");
    drain(small, 60000, false);
    assert_int_equal(live(small, "web"), 0);
    assert_int_equal(live(small, "work"), 1);
    assert_int_equal(live(small, "logs"), 1);
    small_again(small); /* the daemon dies, and the drain does not */
    assert_true(is_drained(small));
    assert_int_equal(live(small, "work"), 1);
    small->now_ms += 60000;
    small_settle(small);
    assert_int_equal(live(small, "work"), 0);
    assert_int_equal(live(small, "logs"), 0);
    assert_false(is_drained(small));
}

static void test_drain_without_a_deadline_waits_for_work(void **state)
{
    struct small_life *small = *state;

    run(small, "work", "batch");
    run(small, "logs", "system");
    drain(small, 0, false);
    small->now_ms += (uint64_t)7 * 24 * 3600 * 1000;
    small_settle(small);
    assert_int_equal(live(small, "work"), 1);
    assert_true(is_drained(small));
    drain(small, -1000, true); /* it is said anew */
    assert_int_equal(live(small, "work"), 0);
    assert_int_equal(live(small, "logs"), 1);
    assert_false(is_drained(small));
}

static void test_drain_that_is_ended_lets_work_go_on(void **state)
{
    struct small_life *small = *state;

    run(small, "web", "service");
    run(small, "work", "batch");
    drain(small, 60000, false);
    assert_int_equal(alone_set_eligible(small->alone, true, &failure), ERR_INVALID);
    assert_int_equal(alone_end_drain(small->alone, true, NULL, &failure), 0);
    small_settle(small);
    assert_string_equal(said(small, "LastDrain", "Status"), "canceled");
    assert_int_equal(live(small, "web"), 1);
    small->now_ms += 120000;
    small_settle(small);
    assert_int_equal(live(small, "work"), 1);
}

static void test_damaged_word_of_the_node_is_put_aside(void **state)
{
    struct small_life *small = *state;

    set_eligible(small, false);
    small_keep_spec(small, "node/scheduling", "{}", 2);
    small_again(small);
    assert_string_equal(said(small, NULL, "Eligibility"), "eligible");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        SMALL_TEST(test_nothing_is_placed_on_a_node_that_is_not_eligible),
        SMALL_TEST(test_what_runs_is_not_replaced_on_a_node_that_is_not_eligible),
        SMALL_TEST(test_failed_commit_leaves_the_node_as_it_was),
        SMALL_TEST(test_what_is_said_of_the_node_has_an_index_of_its_own),
        SMALL_TEST(test_services_end_at_once_and_come_back),
        SMALL_TEST(test_batch_has_until_the_deadline_and_system_ends_last),
        SMALL_TEST(test_drain_without_a_deadline_waits_for_work),
        SMALL_TEST(test_drain_that_is_ended_lets_work_go_on),
        SMALL_TEST(test_damaged_word_of_the_node_is_put_aside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
