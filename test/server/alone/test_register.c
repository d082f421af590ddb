/* Registering: one commit or nothing, versions, counts, what is kept and what is replaced. */
#include "test/server/small_life.h"

/* --- one commit --- */

static void test_registration_is_one_commit(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct small_heard heard = {0};
    size_t before = small->commits;

    assert_int_equal(small_post(small, "j", "/bin/a", 3, 1, &evaluation), 0);
    life_after_commit(small->life, small_hear, &heard);
    assert_int_equal(small->commits, before);
    assert_int_equal(heard.count, 0);
    assert_true(life_turn(small->life));
    assert_int_equal(small->commits, before + 1);
    assert_true(small->job_was_saved);
    assert_int_equal(small->assigned, 4);
    assert_int_equal(small->defined, 4);
    assert_int_equal(small_specs_of(small, "alloc/"), 4);
    assert_non_null(small_spec(small, "job/default/j"));
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.code, 0);
    assert_int_equal(evaluation.placed, 4);
    assert_int_equal(evaluation.stopped, 0);

    small_settle(small);
    assert_int_equal(small_count(small, "j", "a").indices, 7);
    assert_int_equal(small_count(small, "j", "b").indices, 1);
    assert_string_equal(alone_job_status(small->alone, small_find(small, "j")), "running");
}

static void test_failed_commit_of_a_new_job_leaves_nothing(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct small_heard heard = {0};

    small->commit_code = ERR_FULL;
    assert_int_equal(small_post(small, "j", "/bin/a", 2, 0, &evaluation), 0);
    life_after_commit(small->life, small_hear, &heard);
    small_settle(small);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.code, ERR_FULL);
    assert_null(small_find(small, "j"));
    assert_int_equal(small_count(small, "j", NULL).live, 0);

    small->commit_code = 0;
    small->now_ms += 2000;
    small_settle(small);
    assert_int_equal(small->specs.count, 0);
    assert_int_equal(small->records.count, 0);
}

static void test_failed_commit_of_a_new_version_leaves_the_old_one(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small_run(small, "j", "/bin/a", 2, 0);
    uint64_t modified = small_find(small, "j")->modify_index;
    struct small_counts before = small_count(small, "j", NULL);
    small->commit_code = ERR_IO;
    assert_int_equal(small_post(small, "j", "/bin/new", 1, 1, &evaluation), 0);
    small_settle(small);
    small->commit_code = 0;
    small->now_ms += 2000;
    small_settle(small);

    const struct alone_job *job = small_find(small, "j");
    assert_int_equal(job->version, 0);
    assert_int_equal(job->modify_index, modified);
    assert_int_equal(json_array_size(json_object_get(job->job, "TaskGroups")), 2);
    assert_int_equal(json_integer_value(json_object_get(
                         json_array_get(json_object_get(job->job, "TaskGroups"), 0), "Count")),
                     2);
    assert_string_equal(small_count(small, "j", NULL).newest, before.newest);
    assert_int_equal(small_count(small, "j", NULL).ended, 0);
}

static void test_node_that_could_not_write_takes_the_next_registration(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small->commit_code = ERR_FULL;
    assert_int_equal(small_post(small, "j", "/bin/a", 1, 0, &evaluation), 0);
    small_settle(small);
    assert_int_equal(small_post(small, "j", "/bin/a", 1, 0, &evaluation), ERR_AGAIN);
    assert_non_null(life_degraded(small->life));
    small->commit_code = 0;
    small->now_ms += 2000;
    small_settle(small);
    assert_null(life_degraded(small->life));
    small_run(small, "j", "/bin/a", 1, 0);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
}

/* --- refused --- */

/* Placing fails after the change has begun: specifications do not take such a datacenter. */
static void refuse_placing(struct small_life *small)
{
    small_kill(small);
    small->datacenter = "a-datacenter-whose-name-is-longer-than-any-specification-of-an-alloc-can-"
                        "hold-and-which-the-check-of-the-job-therefore-cannot-have-seen-before-it-"
                        "came-to-placing-the-allocs-of-the-job";
    small_begin(small);
    small_settle(small);
}

static void test_registration_refused_late_leaves_nothing(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    refuse_placing(small);
    size_t commits = small->commits;
    assert_int_equal(small_post(small, "j", "/bin/a", 2, 0, &evaluation), ERR_CORRUPT);
    assert_false(life_has_work(small->life));
    assert_null(small_find(small, "j"));
    small_settle(small);
    assert_int_equal(small->commits, commits);
    assert_int_equal(small->specs.count, 0);
    assert_int_equal(small->records.count, 0);
}

static void test_new_version_refused_late_leaves_the_old_one(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small_run(small, "j", "/bin/a", 2, 0);
    refuse_placing(small);
    uint64_t modified = small_find(small, "j")->modify_index;
    assert_int_equal(small_post(small, "j", "/bin/new", 2, 0, &evaluation), ERR_CORRUPT);
    assert_int_equal(small_find(small, "j")->version, 0);
    assert_int_equal(small_find(small, "j")->modify_index, modified);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 2);
    assert_int_equal(small_count(small, "j", NULL).ended, 0);

    /* What the same turn had taken before stays. */
    assert_int_equal(small_post(small, "j", "/bin/a", 1, 0, &evaluation), 0);
    assert_int_equal(small_post(small, "j", "/bin/new", 2, 0, &evaluation), ERR_CORRUPT);
    small_settle(small);
    assert_int_equal(small_find(small, "j")->version, 1);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
}

static void test_job_that_no_driver_runs_is_refused_with_every_problem(void **state)
{
    struct small_life *small = *state;
    json_t *job = small_job("j", "/bin/a", 1, 1), *problems = json_array();
    struct alone_evaluation evaluation;
    struct err err = {0};
    json_t *group, *task;
    size_t g;

    json_array_foreach(json_object_get(job, "TaskGroups"), g, group)
    {
        task = json_array_get(json_object_get(group, "Tasks"), 0);
        assert_int_equal(json_object_set_new(task, "Driver", json_string("steam")), 0);
    }
    assert_int_equal(alone_register(small->alone, job, &evaluation, problems, &err), ERR_INVALID);
    assert_int_equal(json_array_size(problems), 2);
    assert_string_equal(json_string_value(json_array_get(problems, 0)),
                        "group \"a\", task \"web\": there is no driver \"steam\"");
    assert_null(small_find(small, "j"));
    assert_false(life_has_work(small->life));
    json_decref(problems);
    json_decref(job);
}

/* --- versions --- */

static void test_unchanged_job_keeps_its_version_and_its_allocs(void **state)
{
    struct small_life *small = *state;

    small_run(small, "j", "/bin/a", 2, 1);
    struct small_counts before = small_count(small, "j", NULL);
    uint64_t job_modified = small_find(small, "j")->job_modify_index;
    uint64_t modified = small_find(small, "j")->modify_index;
    int64_t submitted_unix_ns = small_find(small, "j")->submit_unix_ns;
    size_t commits = small->commits;
    small->now_ms += 5000;
    struct alone_evaluation again = small_run(small, "j", "/bin/a", 2, 1);

    assert_int_equal(again.placed + again.stopped + again.updated, 0);
    assert_int_equal(small->commits, commits);
    assert_true(small_find(small, "j")->submit_unix_ns == submitted_unix_ns);
    assert_int_equal(small_find(small, "j")->version, 0);
    assert_int_equal(small_find(small, "j")->job_modify_index, job_modified);
    assert_int_equal(small_find(small, "j")->modify_index, modified);
    assert_string_equal(small_count(small, "j", NULL).newest, before.newest);
    assert_int_equal(small_count(small, "j", NULL).live, 3);
    assert_int_equal(small_count(small, "j", NULL).ended, 0);
}

static void test_versions_and_indices_are_stamped(void **state)
{
    struct small_life *small = *state;

    uint64_t first = small_run(small, "j", "/bin/a", 1, 0).index;
    assert_int_equal(small_find(small, "j")->create_index, first);
    assert_int_equal(small_find(small, "j")->modify_index, first);
    assert_int_equal(small_find(small, "j")->job_modify_index, first);
    small->now_ms += 5000;
    uint64_t second = small_run(small, "j", "/bin/b", 1, 0).index;
    const struct alone_job *job = small_find(small, "j");
    assert_true(second > first);
    assert_int_equal(job->version, 1);
    assert_int_equal(job->create_index, first);
    assert_int_equal(job->modify_index, second);
    assert_int_equal(job->job_modify_index, second);
    assert_int_equal(job->submit_unix_ns, 6000000000);

    small_again(small);
    job = small_find(small, "j");
    assert_int_equal(job->version, 1);
    assert_int_equal(job->create_index, first);
    assert_int_equal(job->job_modify_index, second);
    assert_int_equal(job->submit_unix_ns, 6000000000);
}

static void test_each_change_has_an_index_of_its_own_though_nothing_is_placed(void **state)
{
    struct small_life *small = *state;
    uint64_t last = 0;

    for (int i = 0; i < 4; i++) {
        char command[] = {'/', (char)('a' + i), '\0'};

        uint64_t index = small_run(small, i == 3 ? "k" : "j", command, 0, 0).index;
        assert_true(index > last);
        assert_int_equal(small_find(small, i == 3 ? "k" : "j")->job_modify_index, index);
        last = index;
        if (i == 1)
            small_again(small); /* the journal has had no event */
    }
    assert_int_equal(small_find(small, "j")->version, 2);
    assert_true(small_find(small, "k")->create_index > small_find(small, "j")->job_modify_index);
}

static void test_job_that_was_stopped_is_modified_by_being_registered_as_it_was(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    small_run(small, "j", "/bin/a", 1, 0);
    assert_int_equal(alone_deregister(small->alone, "default", "j", 0, &evaluation, &err), 0);
    small_settle(small);
    uint64_t stopped = small_find(small, "j")->job_modify_index;
    small->now_ms += 5000;
    uint64_t index = small_run(small, "j", "/bin/a", 1, 0).index;
    const struct alone_job *job = small_find(small, "j");
    assert_true(index > stopped);
    assert_int_equal(job->job_modify_index, index);
    assert_int_equal(job->modify_index, index);
    assert_int_equal(job->submit_unix_ns, 6000000000);
    assert_false(job->stop);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
}

static void test_changed_group_is_replaced_and_the_other_kept(void **state)
{
    struct small_life *small = *state;

    small_run(small, "j", "/bin/a", 2, 1);
    struct small_counts kept = small_count(small, "j", "b");
    struct alone_evaluation evaluation = small_run(small, "j", "/bin/new", 2, 1);

    assert_int_equal(evaluation.placed, 2);
    assert_int_equal(evaluation.stopped, 2);
    assert_int_equal(small_count(small, "j", "a").live, 2);
    assert_int_equal(small_count(small, "j", "a").ended, 2);
    assert_string_equal(small_count(small, "j", "b").newest, kept.newest);
}

static void test_count_up_and_down(void **state)
{
    struct small_life *small = *state;

    small_run(small, "j", "/bin/a", 1, 0);
    struct small_counts first = small_count(small, "j", NULL);
    struct alone_evaluation up = small_run(small, "j", "/bin/a", 3, 0);
    assert_int_equal(up.placed, 2);
    assert_int_equal(up.stopped, 0);
    assert_int_equal(small_count(small, "j", "a").indices, 7);
    struct alone_evaluation down = small_run(small, "j", "/bin/a", 1, 0);
    assert_int_equal(down.placed, 0);
    assert_int_equal(down.stopped, 2);
    assert_int_equal(small_count(small, "j", "a").indices, 1);
    assert_string_equal(small_count(small, "j", "a").newest, first.newest);
    small_run(small, "j", "/bin/a", 0, 0);
    assert_int_equal(small_count(small, "j", "a").live, 0);
    assert_false(small_find(small, "j")->stop);
}

/* --- several requests, one commit --- */

static void test_two_registrations_in_one_turn_place_nothing_twice(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation first, second;

    assert_int_equal(small_post(small, "j", "/bin/a", 2, 1, &first), 0);
    assert_int_equal(small_post(small, "j", "/bin/a", 2, 1, &second), 0);
    assert_int_equal(second.placed, 0);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 3);
    assert_int_equal(small_count(small, "j", NULL).ended, 0);
    assert_int_equal(small_find(small, "j")->version, 0);
}

static void test_new_version_in_the_same_turn_replaces_what_was_placed(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    assert_int_equal(small_post(small, "j", "/bin/a", 2, 1, &evaluation), 0);
    assert_int_equal(small_post(small, "j", "/bin/new", 1, 1, &evaluation), 0);
    assert_int_equal(evaluation.placed, 1);
    assert_int_equal(evaluation.stopped, 2);
    small_settle(small);
    assert_int_equal(small_count(small, "j", "a").live, 1);
    assert_int_equal(small_count(small, "j", "b").live, 1);
    assert_int_equal(small_find(small, "j")->version, 1);
}

static void test_failed_commit_of_two_changes_goes_back_behind_both(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small_run(small, "j", "/bin/a", 1, 0);
    small->commit_code = ERR_FULL;
    assert_int_equal(small_post(small, "j", "/bin/b", 1, 0, &evaluation), 0);
    assert_int_equal(small_post(small, "j", "/bin/c", 1, 0, &evaluation), 0);
    small_settle(small);
    assert_int_equal(small_find(small, "j")->version, 0);
    small->commit_code = 0;
    small->now_ms += 2000;
    small_settle(small);
    struct alone_evaluation again = small_run(small, "j", "/bin/a", 1, 0);
    assert_int_equal(again.placed + again.stopped, 0);
}

/* --- what it costs --- */

/* Values of JSON that were made: most of the work that a large job is. */
static size_t values_made;

static void *count_value(size_t size)
{
    values_made++;
    return malloc(size);
}

static json_t *job_of_groups(const char *command, int groups)
{
    json_t *list = json_array();
    char name[16];

    for (int i = 0; i < groups; i++) {
        assert_true(text_format(name, sizeof(name), "g%d", i));
        json_t *group =
            json_pack("{s:s, s:i, s:[{s:s, s:s, s:{s:s}}]}", "Name", name, "Count", 1, "Tasks",
                      "Name", "t", "Driver", "raw_exec", "Config", "command", command);
        assert_int_equal(json_array_append_new(list, group), 0);
    }
    return json_pack("{s:s, s:s, s:[s], s:o}", "ID", "j", "Type", "batch", "Datacenters", "*",
                     "TaskGroups", list);
}

/* How many values come of reading one of so many GROUPS. */
static size_t cost_of_reading(struct small_life *small, int groups)
{
    json_t *job = job_of_groups("/bin/a", groups);
    struct alone_wanted wanted;
    struct err err = {0};

    values_made = 0;
    json_set_alloc_funcs(count_value, free);
    int code = alone_read_job(alone_plans(small->alone), job, &wanted, NULL, &err);
    json_set_alloc_funcs(malloc, free);
    if (code != 0)
        fail_msg("%s", err.text);
    alone_wanted_free(&wanted);
    json_decref(job);
    return values_made;
}

/* The same of registering it, the first time or as a newer version. */
static size_t cost_of_registering(struct small_life *small, const char *command, int groups)
{
    json_t *job = job_of_groups(command, groups);
    struct alone_evaluation evaluation;
    struct err err = {0};

    values_made = 0;
    json_set_alloc_funcs(count_value, free);
    int code = alone_register(small->alone, job, &evaluation, NULL, &err);
    json_set_alloc_funcs(malloc, free);
    if (code != 0)
        fail_msg("%s", err.text);
    assert_int_equal(evaluation.placed, groups);
    small_settle(small);
    json_decref(job);
    return values_made;
}

/* More than twice for what all have in common, and some for lists that grow. */
static void assert_twice(const char *what, size_t few, size_t many)
{
    if (few == 0 || 10 * many > 25 * few)
        fail_msg("%s: %zu values for half of the groups, %zu for all", what, few, many);
}

static void test_large_job_costs_as_much_as_its_groups(void **state)
{
    enum { FEW = 40, MANY = 2 * FEW };
    struct small_life *small = *state;

    assert_twice("reading", cost_of_reading(small, FEW), cost_of_reading(small, MANY));
    size_t first = cost_of_registering(small, "/bin/a", FEW);
    size_t next = cost_of_registering(small, "/bin/b", FEW);
    (void)small_close(state);
    assert_int_equal(small_open(state), 0);
    small = *state;
    assert_twice("registering", first, cost_of_registering(small, "/bin/a", MANY));
    assert_twice("the next version", next, cost_of_registering(small, "/bin/b", MANY));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        SMALL_TEST(test_registration_is_one_commit),
        SMALL_TEST(test_failed_commit_of_a_new_job_leaves_nothing),
        SMALL_TEST(test_failed_commit_of_a_new_version_leaves_the_old_one),
        SMALL_TEST(test_node_that_could_not_write_takes_the_next_registration),
        SMALL_TEST(test_registration_refused_late_leaves_nothing),
        SMALL_TEST(test_new_version_refused_late_leaves_the_old_one),
        SMALL_TEST(test_job_that_no_driver_runs_is_refused_with_every_problem),
        SMALL_TEST(test_unchanged_job_keeps_its_version_and_its_allocs),
        SMALL_TEST(test_versions_and_indices_are_stamped),
        SMALL_TEST(test_each_change_has_an_index_of_its_own_though_nothing_is_placed),
        SMALL_TEST(test_job_that_was_stopped_is_modified_by_being_registered_as_it_was),
        SMALL_TEST(test_changed_group_is_replaced_and_the_other_kept),
        SMALL_TEST(test_count_up_and_down),
        SMALL_TEST(test_two_registrations_in_one_turn_place_nothing_twice),
        SMALL_TEST(test_new_version_in_the_same_turn_replaces_what_was_placed),
        SMALL_TEST(test_failed_commit_of_two_changes_goes_back_behind_both),
        SMALL_TEST(test_large_job_costs_as_much_as_its_groups),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
