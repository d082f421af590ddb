/* Dispatching: what is made, what is made only once, and when it is forgotten. */
#include "test/server/small_life.h"

#include "spec/job.h"

static json_t *job_of(const char *id, bool parameterized)
{
    json_t *job = json_pack("{s:s, s:s, s:[s], s:[{s:s, s:[{s:s, s:s, s:{s:s}}]}]}", "ID", id,
                            "Type", "batch", "Datacenters", "*", "TaskGroups", "Name", "g", "Tasks",
                            "Name", "t", "Driver", "raw_exec", "Config", "command", "/bin/a");

    assert_non_null(job);
    if (parameterized)
        assert_int_equal(json_object_set_new(job, "ParameterizedJob", json_object()), 0);
    return job;
}

static int run(struct small_life *small, json_t *job, struct err *err)
{
    struct alone_evaluation evaluation;
    int code = alone_register(small->alone, job, &evaluation, NULL, err);

    json_decref(job);
    small_settle(small);
    assert_true(code < 0 || evaluation.id[0] == '\0'); /* of those that are registered here */
    return code;
}

static void begin(struct small_life *small)
{
    struct err err = {0};

    if (run(small, job_of("p", true), &err) < 0)
        fail_msg("%s", err.text);
}

static int dispatch(struct small_life *small, const char *job, const char *token,
                    struct alone_evaluation *ret_evaluation, struct err *err)
{
    const struct alone_dispatch asked = {
        .namespace = "default", .job_id = job, .id_prefix = "", .payload = "aGk=", .token = token};
    int code = alone_dispatch(small->alone, &asked, ret_evaluation, err);

    small_settle(small);
    return code;
}

static struct alone_evaluation dispatched(struct small_life *small, const char *token)
{
    struct alone_evaluation evaluation;
    struct err err = {0};

    if (dispatch(small, "p", token, &evaluation, &err) < 0)
        fail_msg("%s", err.text);
    return evaluation;
}

static void end_all(struct small_life *small)
{
    struct err err = {0};
    struct alone_evaluation evaluation;
    struct small_counts counts = small_count(small, "p", NULL);

    assert_int_equal(counts.live, 0); /* nothing is placed of the job itself */
    for (size_t i = 0; i < small->records.count; i++) {
        struct machine_id id = small->records.items[i].id;
        const struct alloc *alloc =
            id.kind == MACHINE_ALLOC ? core_alloc(life_core(small->life), id.text) : NULL;
        if (alloc == NULL || alloc->ended_unix_ns != 0)
            continue;
        assert_int_equal(
            alone_deregister(small->alone, "default", alloc->assign.job_id, 0, &evaluation, &err),
            0);
        small_settle(small);
    }
}

static void test_nothing_is_placed_of_the_job_itself(void **state)
{
    struct small_life *small = *state;

    begin(small);
    assert_int_equal(small_count(small, "p", NULL).live, 0);
    assert_string_equal(alone_job_status(small->alone, small_find(small, "p")), "running");
    small_again(small);
    assert_int_equal(small_count(small, "p", NULL).live, 0);
}

static void test_each_dispatch_is_a_job_of_its_own(void **state)
{
    struct small_life *small = *state;

    begin(small);
    struct alone_evaluation first = dispatched(small, ""), second = dispatched(small, "");
    assert_true(text_starts_with(first.job_id, "p/dispatch-"));
    assert_string_not_equal(first.job_id, second.job_id);
    assert_int_equal(first.placed, 1);
    small_again(small);
    assert_int_equal(small_count(small, first.job_id, "g").live, 1);
    assert_int_equal(small_count(small, second.job_id, "g").live, 1);
    assert_true(jobspec_is_dispatched(small_find(small, first.job_id)->job));
}

static void test_what_has_the_same_token_is_made_once(void **state)
{
    struct small_life *small = *state;

    begin(small);
    struct alone_evaluation first = dispatched(small, "t"), other = dispatched(small, "u");
    assert_string_not_equal(first.job_id, other.job_id);
    struct alone_evaluation again = dispatched(small, "t");
    assert_string_equal(again.job_id, first.job_id);
    assert_string_equal(again.id, "");
    small_again(small);
    assert_string_equal(dispatched(small, "t").job_id, first.job_id);
    assert_int_equal(small_count(small, first.job_id, NULL).live, 1);
}

static void test_token_whose_commit_failed_is_free(void **state)
{
    struct small_life *small = *state;

    begin(small);
    small->commit_code = ERR_IO;
    struct alone_evaluation first = dispatched(small, "t");
    small->commit_code = 0;
    small->now_ms += 2000; /* the journal is tried again */
    small_settle(small);
    assert_null(small_find(small, first.job_id));
    struct alone_evaluation second = dispatched(small, "t");
    assert_string_not_equal(first.job_id, second.job_id);
    assert_non_null(small_find(small, second.job_id));
}

static void test_what_cannot_be_dispatched_is_refused(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    begin(small);
    assert_int_equal(dispatch(small, "q", "", &evaluation, &err), ERR_GONE);
    struct alone_evaluation child = dispatched(small, "");
    assert_int_equal(dispatch(small, child.job_id, "", &evaluation, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "is not a parameterized job"));
    assert_int_equal(alone_deregister(small->alone, "default", "p", 0, &evaluation, &err), 0);
    small_settle(small);
    assert_int_equal(dispatch(small, "p", "", &evaluation, &err), ERR_INVALID);
    assert_string_equal(err.text, "Specified job \"p\" is stopped");
    assert_int_equal(small_count(small, child.job_id, NULL).live, 1); /* it goes on */
}

static void test_job_does_not_become_one_that_is_dispatched(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    begin(small);
    assert_int_equal(run(small, job_of("p", false), &err), ERR_INVALID);
    assert_string_equal(err.text, "cannot update parameterized job to being non-parameterized");
    json_t *job = job_of("j", false);
    assert_int_equal(alone_register(small->alone, job, &evaluation, NULL, &err), 0);
    json_decref(job);
    assert_int_equal(alone_deregister(small->alone, "default", "j", 0, &evaluation, &err), 0);
    small_settle(small);
    assert_int_equal(run(small, job_of("j", true), &err), ERR_INVALID);
    assert_string_equal(err.text, "cannot update non-parameterized job to being parameterized");
}

/* The job of an alloc that is collected is never run again: it would else be there for ever. */
static void test_what_was_dispatched_goes_with_its_last_alloc(void **state)
{
    struct small_life *small = *state;

    begin(small);
    small->kept = 50;
    struct alone_evaluation first = dispatched(small, "t");
    end_all(small);
    assert_non_null(small_find(small, first.job_id)); /* its alloc is kept */
    alone_collect(small->alone);
    small_settle(small);
    assert_null(small_find(small, first.job_id));
    assert_int_equal(small_specs_of(small, "job/"), 1);
    assert_non_null(small_find(small, "p"));
    assert_string_not_equal(dispatched(small, "t").job_id, first.job_id);
}

static void test_what_waits_for_room_is_kept(void **state)
{
    struct small_life *small = *state;

    begin(small);
    small_kill(small);
    small->room = (struct room){0};
    small_begin(small);
    small_settle(small);
    struct alone_evaluation first = dispatched(small, "");
    assert_int_equal(first.placed, 0);
    alone_collect(small->alone);
    small_settle(small);
    assert_non_null(small_find(small, first.job_id));
}

static void test_stored_job_that_is_dispatched_by_nonsense_is_put_aside(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    begin(small);
    struct stored_blob *stored = small_spec(small, "job/default/p");
    assert_non_null(stored);
    json_t *json = json_loads(stored->bytes, 0, NULL);
    assert_int_equal(json_object_set_new(json_object_get(json, "ParameterizedJob"), "MetaRequired",
                                         json_pack("[i]", 1)),
                     0);
    char *text = json_dumps(json, JSON_COMPACT);
    small_keep_spec(small, "job/default/p", text, strlen(text));
    free(text);
    json_decref(json);
    small_again(small);
    assert_null(small_find(small, "p"));
    assert_int_equal(dispatch(small, "p", "", &evaluation, &err), ERR_GONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_nothing_is_placed_of_the_job_itself),
        SMALL_TEST(test_each_dispatch_is_a_job_of_its_own),
        SMALL_TEST(test_what_has_the_same_token_is_made_once),
        SMALL_TEST(test_token_whose_commit_failed_is_free),
        SMALL_TEST(test_what_cannot_be_dispatched_is_refused),
        SMALL_TEST(test_job_does_not_become_one_that_is_dispatched),
        SMALL_TEST(test_what_was_dispatched_goes_with_its_last_alloc),
        SMALL_TEST(test_what_waits_for_room_is_kept),
        SMALL_TEST(test_stored_job_that_is_dispatched_by_nonsense_is_put_aside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
