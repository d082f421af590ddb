/*
 * Ports: given out once, told whose they are, kept over the daemon's life, inherited by who takes
 * an alloc's place, and free when it has ended.
 */
#include "test/server/small_life.h"

#include "spec/job.h"

/* A service NAME of COUNT allocs, each with PORTS, JSON of a network; TASK is what it runs. */
static int post(struct small_life *small, const char *name, int count, const char *network,
                const char *task, struct alone_evaluation *ret_evaluation)
{
    json_t *job = json_pack("{s:s, s:s, s:[s], s:[{s:s, s:i, s:[o], s:{s:i, s:b}, s:[{s:s, s:s, "
                            "s:{s:s}}]}]}",
                            "ID", name, "Type", "service", "Datacenters", "*", "TaskGroups", "Name",
                            "g", "Count", count, "Networks", json_loads(network, 0, NULL),
                            "ReschedulePolicy", "Attempts", 0, "Unlimited", 0, "Tasks", "Name", "t",
                            "Driver", "raw_exec", "Config", "command", task);
    struct err err = {0};

    assert_non_null(job);
    int code = alone_register(small->alone, job, ret_evaluation, NULL, &err);
    json_decref(job);
    return code;
}

static struct alone_evaluation run(struct small_life *small, const char *name, int count,
                                   const char *network, const char *task)
{
    struct alone_evaluation evaluation;

    assert_int_equal(post(small, name, count, network, task, &evaluation), 0);
    small_settle(small);
    return evaluation;
}

#define STATIC_80 "{\"ReservedPorts\":[{\"Label\":\"http\",\"Value\":80}]}"
#define STATIC_81 "{\"ReservedPorts\":[{\"Label\":\"http\",\"Value\":81}]}"
#define STATIC_80_AND_81                                                                           \
    "{\"ReservedPorts\":[{\"Label\":\"http\",\"Value\":80},{\"Label\":\"other\",\"Value\":81}]}"
#define ANY_PORT "{\"DynamicPorts\":[{\"Label\":\"http\"}]}"

static void stop(struct small_life *small, const char *name)
{
    struct alone_evaluation evaluation;
    struct err err;

    assert_int_equal(alone_deregister(small->alone, "default", name, 0, &evaluation, &err), 0);
    small_settle(small);
}

/* What was held back ends. */
static void let_go(struct small_life *small, const char *alloc)
{
    const struct task *task = core_task(life_core(small->life), alloc, "t");
    struct machine_id id = machine_id_join(MACHINE_TASK, alloc, "t");
    struct exited ended = {.known = 1, .code = 143, .signal = 15};

    assert_non_null(task);
    core_news(life_core(small->life), &id, task->machine.generation, TE_EXITED, &ended);
    small_settle(small);
}

static struct alloc_spec *spec_of(struct small_life *small, const char *alloc)
{
    char key[JOURNAL_KEY_SIZE];
    struct alloc_spec *spec;
    struct err err;

    (void)text_format(key, sizeof(key), "alloc/%s", alloc);
    const struct stored_blob *stored = small_spec(small, key);
    assert_non_null(stored);
    assert_int_equal(jobspec_decode_alloc(stored->bytes, stored->length, &spec, &err), 0);
    return spec;
}

struct every_port {
    struct small_life *small;
    char seen[512][ADDRESS_SIZE + 8];
    size_t count;
};

static bool note_ports(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct every_port *every = ctx;

    if (alloc_of(record)->ended_unix_ns != 0)
        return true;
    struct alloc_spec *spec = spec_of(every->small, id->text);
    for (size_t i = 0; i < spec->ports.count; i++) {
        char *text = every->seen[every->count];
        (void)text_format(text, sizeof(every->seen[0]), "%s %u", spec->ports.items[i].host_ip,
                          spec->ports.items[i].value);
        for (size_t j = 0; j < every->count; j++)
            assert_string_not_equal(text, every->seen[j]);
        every->count++;
    }
    alloc_spec_free(spec);
    return true;
}

/* How many ports living allocs have; no two have the same. */
static size_t count_ports(struct small_life *small)
{
    struct every_port every = {.small = small};

    core_each(life_core(small->life), MACHINE_ALLOC, note_ports, &every);
    return every.count;
}

/* Why what waits does. */
static const char *reason(struct small_life *small, const struct alone_evaluation *evaluation,
                          const char *why)
{
    const struct alone_evaluation *blocked = alone_evaluation(small->alone, evaluation->blocked_id);

    assert_non_null(blocked);
    assert_string_equal(blocked->status, "blocked");
    const json_t *failed = json_array_get(blocked->failed, 0);
    assert_string_equal(json_string_value(json_object_get(failed, "Why")), why);
    return json_string_value(json_object_get(failed, "What"));
}

/* --- tests --- */

static void test_a_static_port_is_given_out_once_and_whose_it_is_is_told(void **state)
{
    struct small_life *small = *state;
    char expected[200];

    (void)run(small, "one", 1, STATIC_80, "/bin/a");
    struct alone_evaluation evaluation = run(small, "two", 1, STATIC_80, "/bin/a");
    struct small_counts one = small_count(small, "one", NULL);
    assert_int_equal(small_count(small, "two", NULL).live, 0);
    (void)text_format(expected, sizeof(expected),
                      "network: reserved port collision http=80: held by alloc %.8s of job \"one\"",
                      one.newest);
    assert_string_equal(reason(small, &evaluation, "exhausted"), expected);
    stop(small, "one");
    assert_int_equal(small_count(small, "two", NULL).live, 1);
    assert_int_equal(count_ports(small), 1);
}

static void test_allocs_of_one_group_have_one_static_port_between_them(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation = run(small, "j", 3, STATIC_80, "/bin/a");

    assert_int_equal(small_count(small, "j", NULL).live, 1);
    assert_int_equal(alone_queued(small_find(small, "j"), 0), 2);
    assert_non_null(strstr(reason(small, &evaluation, "exhausted"), "http=80: "));
}

/* A process that is told to end still listens. */
static void test_a_port_is_free_when_its_alloc_has_ended_and_not_before(void **state)
{
    struct small_life *small = *state;

    (void)run(small, "one", 1, STATIC_80, "/bin/a");
    struct small_counts one = small_count(small, "one", NULL);
    small->holds_back = true;
    stop(small, "one");
    struct alone_evaluation evaluation = run(small, "two", 1, STATIC_80, "/bin/a");
    assert_non_null(strstr(reason(small, &evaluation, "exhausted"), "\"one\", which is ending"));
    small_again(small);
    assert_int_equal(small_count(small, "two", NULL).live, 0);
    let_go(small, one.newest);
    assert_int_equal(small_count(small, "two", NULL).live, 1);
}

static void test_dynamic_ports_run_out_and_come_back(void **state)
{
    struct small_life *small = *state;

    small->dynamic_ports = (struct port_range){30000, 30009};
    port_set_add(&small->addresses[0].reserved, 30003);
    small_again(small);
    struct alone_evaluation evaluation =
        run(small, "j", 6, "{\"DynamicPorts\":[{\"Label\":\"a\"},{\"Label\":\"b\"}]}", "/bin/a");
    assert_int_equal(small_count(small, "j", NULL).live, 4);
    assert_int_equal(count_ports(small), 8);
    assert_string_equal(
        reason(small, &evaluation, "exhausted"),
        "network: dynamic port selection failed: none of 30000 to 30009 is free for b");
    (void)run(small, "last", 1, ANY_PORT, "/bin/a"); /* what was offered was given back */
    assert_int_equal(small_count(small, "last", NULL).live, 1);
    stop(small, "j");
    stop(small, "last");
    (void)run(small, "k", 9, ANY_PORT, "/bin/a");
    assert_int_equal(small_count(small, "k", NULL).live, 9);
    assert_int_equal(count_ports(small), 9);
}

static void test_reserved_ports_are_given_to_nobody(void **state)
{
    struct small_life *small = *state;

    port_set_add(&small->addresses[0].reserved, 80);
    small_again(small);
    struct alone_evaluation evaluation = run(small, "j", 1, STATIC_80, "/bin/a");
    assert_string_equal(reason(small, &evaluation, "exhausted"),
                        "network: reserved port collision http=80: reserved by the node's "
                        "configuration");
}

static void test_host_networks_have_ports_of_their_own(void **state)
{
    struct small_life *small = *state;
    static const char lan[] =
        "{\"ReservedPorts\":[{\"Label\":\"http\",\"Value\":80,\"HostNetwork\":\"lan\"}]}";

    (void)run(small, "one", 1, STATIC_80, "/bin/a");
    (void)run(small, "two", 1, lan, "/bin/a");
    struct small_counts two = small_count(small, "two", NULL);
    assert_int_equal(two.live, 1);
    struct alloc_spec *spec = spec_of(small, two.newest);
    assert_string_equal(spec->ports.items[0].host_ip, "10.0.0.2");
    alloc_spec_free(spec);
    struct alone_evaluation evaluation = run(
        small, "three", 1, "{\"DynamicPorts\":[{\"Label\":\"x\",\"HostNetwork\":\"wan\"}]}", "/a");
    assert_string_equal(reason(small, &evaluation, "constraint"),
                        "missing host network \"wan\" for port \"x\"");
}

static void test_ports_are_kept_over_the_daemons_life(void **state)
{
    struct small_life *small = *state;

    small->dynamic_ports = (struct port_range){30000, 30001};
    small_again(small);
    (void)run(small, "one", 1,
              "{\"ReservedPorts\":[{\"Label\":\"a\",\"Value\":80}],\"DynamicPorts\":[{\"Label\":"
              "\"b\"}]}",
              "/bin/a");
    small_again(small);
    struct alone_evaluation evaluation = run(small, "two", 1, STATIC_80, "/bin/a");
    assert_non_null(strstr(reason(small, &evaluation, "exhausted"), "of job \"one\""));
    (void)run(small, "three", 2, ANY_PORT, "/bin/a");
    assert_int_equal(small_count(small, "three", NULL).live, 1);
    assert_int_equal(count_ports(small), 3);
}

/* The new version has the port at once, and is begun when the old one has ended. */
static void test_who_takes_the_place_inherits_the_static_port(void **state)
{
    struct small_life *small = *state;

    (void)run(small, "j", 1, STATIC_80, "/bin/a");
    struct small_counts old = small_count(small, "j", NULL);
    small->holds_back = true;
    struct alone_evaluation evaluation = run(small, "j", 1, STATIC_80, "/bin/b");
    assert_int_equal(evaluation.placed, 1);
    assert_string_equal(evaluation.blocked_id, "");
    struct small_counts both = small_count(small, "j", NULL);
    assert_int_equal(both.live, 2);
    assert_string_not_equal(both.newest, old.newest);
    const struct task *waits = core_task(life_core(small->life), both.newest, "t");
    assert_int_equal(waits->run_state, TASK_RUN_PENDING);
    small_again(small);
    evaluation = run(small, "other", 1, STATIC_80, "/bin/a");
    assert_non_null(strstr(reason(small, &evaluation, "exhausted"), "of job \"j\""));
    let_go(small, old.newest);
    waits = core_task(life_core(small->life), both.newest, "t");
    assert_int_equal(waits->run_state, TASK_RUN_RUNNING);
    assert_int_equal(small_count(small, "other", NULL).live, 0);
    assert_string_equal(small->said, "");
}

/* A third version comes while the second waits for the first: it waits for the first, too. */
static void test_an_heir_of_an_heir_waits_for_who_listens(void **state)
{
    struct small_life *small = *state;

    for (int crash = 0; crash < 2; crash++) {
        small->holds_back = false;
        (void)run(small, "j", 1, STATIC_80, "/bin/a");
        struct small_counts old = small_count(small, "j", NULL);
        small->holds_back = true;
        (void)run(small, "j", 1, STATIC_80, "/bin/b");
        struct alone_evaluation evaluation = run(small, "j", 1, STATIC_80, "/bin/c");
        assert_int_equal(evaluation.placed, 1);
        if (crash == 1)
            small_again(small);
        struct small_counts both = small_count(small, "j", NULL);
        assert_int_equal(both.live, 2); /* the second has ended without having begun */
        const struct alloc *third = core_alloc(life_core(small->life), both.newest);
        assert_string_equal(third->assign.previous, old.newest);
        assert_int_equal(third->machine.state, A_WAITING);
        let_go(small, old.newest);
        third = core_alloc(life_core(small->life), both.newest);
        assert_int_equal(third->machine.state, A_RUNNING);
        assert_string_equal(small->said, "");
        small->holds_back = false;
        stop(small, "j");
        assert_int_equal(run(small, "k", 1, STATIC_80, "/bin/a").placed, 1);
        stop(small, "k");
    }
}

/* Versions ask for 80, for 81 and for 80 again, and the first one still has it; one that asks for
 * both would have to wait for two. */
static void test_a_port_is_inherited_from_any_that_had_the_place(void **state)
{
    struct small_life *small = *state;

    for (int crash = 0; crash < 2; crash++) {
        small->holds_back = false;
        (void)run(small, "j", 1, STATIC_80, "/bin/a");
        struct small_counts first = small_count(small, "j", NULL);
        small->holds_back = true;
        assert_int_equal(run(small, "j", 1, STATIC_81, "/bin/a").placed, 1);
        struct small_counts second = small_count(small, "j", NULL);
        if (crash == 1)
            small_again(small);
        assert_int_equal(run(small, "j", 1, STATIC_80, "/bin/a").placed, 1);
        const char *third = small_count(small, "j", NULL).newest;
        const struct alloc *alloc = core_alloc(life_core(small->life), third);
        assert_string_equal(alloc->assign.previous, first.newest);
        assert_int_equal(run(small, "j", 1, STATIC_80_AND_81, "/bin/a").placed, 0);
        let_go(small, first.newest);
        assert_int_equal(small_count(small, "j", NULL).live, 2); /* the second, and its heir */
        let_go(small, second.newest);
        assert_int_equal(small_count(small, "j", NULL).live, 1);
        assert_string_equal(small->said, "");
        small->holds_back = false;
        stop(small, "j");
        assert_int_equal(count_ports(small), 0);
    }
}

/* The third version is not to be: the second still waits for the port, and has it in the end. */
static void test_a_commit_that_fails_leaves_the_heir_its_port(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    (void)run(small, "j", 1, STATIC_80, "/bin/a");
    struct small_counts first = small_count(small, "j", NULL);
    small->holds_back = true;
    (void)run(small, "j", 1, STATIC_80, "/bin/b");
    struct small_counts second = small_count(small, "j", NULL);
    small->commit_code = ERR_IO;
    assert_int_equal(post(small, "j", 1, STATIC_80, "/bin/c", &evaluation), 0);
    assert_false(life_turn(small->life));
    small->commit_code = 0;
    small->now_ms += 5000;
    small_settle(small);
    let_go(small, first.newest);
    const struct alloc *alloc = core_alloc(life_core(small->life), second.newest);
    assert_int_equal(alloc->machine.state, A_RUNNING);
    evaluation = run(small, "other", 1, STATIC_80, "/bin/a");
    assert_non_null(strstr(reason(small, &evaluation, "exhausted"), "of job \"j\""));
}

/* The heir ends first: the port goes back to who still listens. */
static void test_who_ends_before_it_began_gives_the_port_back(void **state)
{
    struct small_life *small = *state;

    for (int crash = 0; crash < 2; crash++) {
        small->holds_back = false;
        (void)run(small, "j", 1, STATIC_80, "/bin/a");
        struct small_counts old = small_count(small, "j", NULL);
        small->holds_back = true;
        (void)run(small, "j", 1, STATIC_80, "/bin/b");
        if (crash == 1)
            small_again(small);
        stop(small, "j");
        assert_int_equal(small_count(small, "j", NULL).live, 1);
        struct alone_evaluation evaluation = run(small, "other", 1, STATIC_80, "/bin/a");
        assert_int_equal(evaluation.placed, 0);
        let_go(small, old.newest);
        assert_int_equal(small_count(small, "other", NULL).live, 1);
        small->holds_back = false;
        stop(small, "other");
        assert_int_equal(count_ports(small), 0);
    }
}

static void test_a_commit_that_fails_takes_the_ports_back(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    (void)run(small, "old", 1, STATIC_80, "/bin/a");
    small->commit_code = ERR_IO;
    assert_int_equal(post(small, "old", 1, STATIC_80, "/bin/b", &evaluation), 0);
    assert_int_equal(post(small, "new", 1, "{\"ReservedPorts\":[{\"Label\":\"b\",\"Value\":81}]}",
                          "/bin/a", &evaluation),
                     0);
    assert_false(life_turn(small->life));
    small->commit_code = 0;
    small->now_ms += 5000;
    small_settle(small);
    evaluation =
        run(small, "two", 1, "{\"ReservedPorts\":[{\"Label\":\"b\",\"Value\":81}]}", "/bin/a");
    assert_int_equal(evaluation.placed, 1);
    evaluation = run(small, "three", 1, STATIC_80, "/bin/a");
    assert_non_null(strstr(reason(small, &evaluation, "exhausted"), "of job \"old\""));
    stop(small, "old");
    assert_int_equal(small_count(small, "three", NULL).live, 1);
}

static void test_a_plan_takes_no_port(void **state)
{
    struct small_life *small = *state;
    struct alone_wanted wanted;
    struct alone_plan plan;
    struct err err = {0};

    for (int i = 0; i < 3; i++) {
        json_t *job =
            json_pack("{s:s, s:[{s:s, s:[o], s:[{s:s, s:s, s:{s:s}}]}]}", "ID", "j", "TaskGroups",
                      "Name", "g", "Networks", json_loads(STATIC_80, 0, NULL), "Tasks", "Name", "t",
                      "Driver", "raw_exec", "Config", "command", i == 2 ? "/bin/b" : "/bin/a");
        assert_int_equal(alone_read_job(alone_plans(small->alone), job, &wanted, NULL, &err), 0);
        assert_int_equal(alone_plan(small->alone, &wanted, &plan, &err), 0);
        assert_int_equal(json_array_size(plan.failed), 0);
        alone_plan_free(&plan);
        if (i == 1)
            (void)run(small, "j", 1, STATIC_80, "/bin/a"); /* then a plan to replace it */
        json_decref(job);
    }
    stop(small, "j");
    assert_int_equal(run(small, "k", 1, STATIC_80, "/bin/a").placed, 1);
}

/* Those of a task are all on one address. */
static void test_task_has_several_ports(void **state)
{
    static const char network[] =
        "{\"ReservedPorts\":[{\"Label\":\"a\",\"Value\":65535}],"
        "\"DynamicPorts\":[{\"Label\":\"b\"},{\"Label\":\"c\"},{\"Label\":\"d\"}]}";
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};
    json_t *job =
        json_pack("{s:s, s:[{s:s, s:[{s:s, s:s, s:{s:s}, s:{s:[o]}}]}]}", "ID", "j", "TaskGroups",
                  "Name", "g", "Tasks", "Name", "t", "Driver", "raw_exec", "Config", "command",
                  "/bin/a", "Resources", "Networks", json_loads(network, 0, NULL));

    assert_non_null(job);
    if (alone_register(small->alone, job, &evaluation, NULL, &err) != 0)
        fail_msg("%s", err.text);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
    json_decref(job);
}

static void test_a_specification_that_is_lost_costs_its_ports(void **state)
{
    struct small_life *small = *state;
    char key[JOURNAL_KEY_SIZE];

    (void)run(small, "one", 1, STATIC_80, "/bin/a");
    (void)run(small, "two", 1, STATIC_80, "/bin/a");
    struct small_counts one = small_count(small, "one", NULL);
    (void)text_format(key, sizeof(key), "alloc/%s", one.newest);
    small_keep_spec(small, key, "{", 1);
    small_again(small);
    assert_int_equal(small_count(small, "two", NULL).live, 1);
}

/* Two of a journal from elsewhere: told, and the first has it. */
static void test_two_that_have_one_port_are_told(void **state)
{
    struct small_life *small = *state;
    char key[2][JOURNAL_KEY_SIZE];

    (void)run(small, "one", 1, ANY_PORT, "/bin/a");
    (void)run(small, "two", 1, ANY_PORT, "/bin/a");
    (void)text_format(key[0], sizeof(key[0]), "alloc/%s", small_count(small, "one", NULL).newest);
    (void)text_format(key[1], sizeof(key[1]), "alloc/%s", small_count(small, "two", NULL).newest);
    struct stored_blob *two = small_spec(small, key[1]);
    json_t *from = json_loads(small_spec(small, key[0])->bytes, 0, NULL);
    json_t *to = json_loads(two->bytes, 0, NULL);
    (void)json_object_set(to, "AllocatedResources", json_object_get(from, "AllocatedResources"));
    free(two->bytes);
    two->bytes = json_dumps(to, JSON_COMPACT);
    two->length = strlen(two->bytes);
    json_decref(from);
    json_decref(to);
    small_again(small);
    assert_non_null(strstr(small->said, "two allocs have one port"));
    stop(small, "one");
    stop(small, "two");
    small->said[0] = '\0';
    small_again(small);
    assert_string_equal(small->said, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_a_static_port_is_given_out_once_and_whose_it_is_is_told),
        SMALL_TEST(test_allocs_of_one_group_have_one_static_port_between_them),
        SMALL_TEST(test_a_port_is_free_when_its_alloc_has_ended_and_not_before),
        SMALL_TEST(test_dynamic_ports_run_out_and_come_back),
        SMALL_TEST(test_reserved_ports_are_given_to_nobody),
        SMALL_TEST(test_host_networks_have_ports_of_their_own),
        SMALL_TEST(test_ports_are_kept_over_the_daemons_life),
        SMALL_TEST(test_who_takes_the_place_inherits_the_static_port),
        SMALL_TEST(test_an_heir_of_an_heir_waits_for_who_listens),
        SMALL_TEST(test_a_port_is_inherited_from_any_that_had_the_place),
        SMALL_TEST(test_a_commit_that_fails_leaves_the_heir_its_port),
        SMALL_TEST(test_who_ends_before_it_began_gives_the_port_back),
        SMALL_TEST(test_a_commit_that_fails_takes_the_ports_back),
        SMALL_TEST(test_a_plan_takes_no_port),
        SMALL_TEST(test_task_has_several_ports),
        SMALL_TEST(test_a_specification_that_is_lost_costs_its_ports),
        SMALL_TEST(test_two_that_have_one_port_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
