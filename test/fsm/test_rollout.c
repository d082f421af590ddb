/*
 * Who is replaced next when a newer version is rolled out, and when that is over: a letter for each
 * place and for the canary beside it, and what becomes of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fsm/policy.h"

#include <string.h>

enum { PLACES_MAX = 8, BEGUN_MS = 1000, HEALTHY_MS = 2000, PROGRESS_MS = 10000 };

/* . nobody   o older    k kept as it is
 * w placed and not begun   u begun   h healthy   x unhealthy, the last   X another one will come
 * r was healthy and ended, another one will come   s told to end */
static struct rollout_alloc alloc_of_letter(char letter)
{
    struct rollout_alloc alloc = {.who = ROLLOUT_OWN, .begun_ms = BEGUN_MS};

    switch (letter) {
    case '.':
        alloc.who = ROLLOUT_NOBODY;
        break;
    case 'o':
        alloc.who = ROLLOUT_OLDER;
        break;
    case 'k':
        alloc.who = ROLLOUT_KEPT;
        break;
    case 'w':
        alloc.begun_ms = 0;
        break;
    case 'u':
        break;
    case 'h':
        alloc.health = HEALTH_HEALTHY;
        alloc.healthy_at_ms = HEALTHY_MS;
        break;
    case 'x':
    case 'X':
        alloc.health = HEALTH_UNHEALTHY;
        alloc.over = true;
        alloc.again = letter == 'X';
        break;
    case 'r':
        alloc.health = HEALTH_HEALTHY;
        alloc.healthy_at_ms = HEALTHY_MS;
        alloc.over = alloc.again = true;
        break;
    case 's':
        alloc.stopped = true;
        break;
    default:
        fail_msg("no such letter: %c", letter);
    }
    return alloc;
}

struct row {
    const char *places, *canaries; /* canaries NULL: nobody is beside them */
    uint32_t parallel, tried;
    const char *answer; /* go, done, promote, unhealthy, late */
    const char *next;   /* R replaced, T tried beside it, - neither; NULL: of no interest */
    uint64_t now_ms;
};

static const char *const answers[] = {
    [ROLLOUT_GOES_ON] = "go",          [ROLLOUT_SUCCEEDS] = "done", [ROLLOUT_PROMOTES] = "promote",
    [ROLLOUT_UNHEALTHY] = "unhealthy", [ROLLOUT_LATE] = "late",
};

struct asked {
    struct rollout_group group;
    struct rollout_place places[PLACES_MAX];
    struct rollout_input input;
};

static void ask(const struct row *row, struct asked *to)
{
    *to = (struct asked){.group = {.parallel = row->parallel,
                                   .canaries = row->tried,
                                   .progress_ms = PROGRESS_MS,
                                   .count = strlen(row->places)}};
    assert_in_range(to->group.count, 1, PLACES_MAX);
    to->group.places = to->places;
    for (size_t i = 0; i < to->group.count; i++) {
        to->places[i].last = alloc_of_letter(row->places[i]);
        to->places[i].canary = alloc_of_letter(row->canaries == NULL ? '.' : row->canaries[i]);
    }
    to->input = (struct rollout_input){.groups = &to->group, .count = 1, .now_ms = row->now_ms};
}

static void expect(const struct row *row, struct asked *asked)
{
    struct rollout_decision decision;

    policy_rollout(&asked->input, &decision);
    if (strcmp(answers[decision.answer], row->answer) != 0)
        fail_msg("%s beside %s, %u and %u at once: %s", row->places,
                 row->canaries == NULL ? "nobody" : row->canaries, row->parallel, row->tried,
                 answers[decision.answer]);
    for (size_t i = 0; row->next != NULL && i < asked->group.count; i++) {
        const struct rollout_place *place = &asked->places[i];
        char next = place->replace ? 'R' : place->try ? 'T' : '-';

        assert_false(place->replace && place->try);
        if (next != row->next[i])
            fail_msg("%s: place %zu is %c", row->places, i, next);
    }
}

static void test_places_are_replaced_as_those_before_them_become_healthy(void **state)
{
    static const struct row rows[] = {
        {"ooooo", NULL, 2, 0, "go", "RR---", 0}, {"uuooo", NULL, 2, 0, "go", "-----", 0},
        {"uhooo", NULL, 2, 0, "go", "--R--", 0}, {"hhooo", NULL, 2, 0, "go", "--RR-", 0},
        {"hhhhu", NULL, 2, 0, "go", "-----", 0}, {"hhhhh", NULL, 2, 0, "done", NULL, 0},
        {"khkhk", NULL, 1, 0, "done", NULL, 0},  {"ko.kk", NULL, 1, 0, "go", "-R---", 0},
        {"k..kk", NULL, 2, 0, "go", "-RR--", 0}, {"kokkk", NULL, 9, 0, "go", "-R---", 0},
        {"woooo", NULL, 1, 0, "go", "-----", 0}, {"soooo", NULL, 1, 0, "go", "-----", 0},
        {"rhhhh", NULL, 1, 0, "go", "-----", 0}, {"rhhho", NULL, 2, 0, "go", "----R", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct asked asked;
        ask(&rows[i], &asked);
        expect(&rows[i], &asked);
    }
}

static void test_place_that_is_filled_anyhow_is_not_counted_on(void **state)
{
    static const struct row one = {"ohh", NULL, 1, 0, "go", "---", 0},
                            two = {"hhr", NULL, 1, 0, "go", "---", 0};
    struct asked asked;

    (void)state;
    ask(&one, &asked);
    asked.places[2].filled = true;
    expect(&one, &asked);
    ask(&two, &asked);
    asked.places[2].filled = true;
    expect(&two, &asked);
}

static void test_one_that_fails_for_good_is_the_end(void **state)
{
    static const struct row rows[] = {
        {"hxo", NULL, 1, 0, "unhealthy", NULL, 0}, {"hXo", NULL, 1, 0, "go", "---", 0},
        {"hXo", NULL, 2, 0, "go", "--R", 0},       {"xxx", NULL, 3, 0, "unhealthy", NULL, 0},
        {"hxh", NULL, 1, 0, "unhealthy", NULL, 0},
    };
    struct asked asked;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ask(&rows[i], &asked);
        expect(&rows[i], &asked);
    }
    ask(&(struct row){"hXo", NULL, 1, 0, "unhealthy", NULL, 0}, &asked);
    asked.group.progress_ms = 0; /* then one failure is the end */
    expect(&(struct row){"hXo", NULL, 1, 0, "unhealthy", NULL, 0}, &asked);
}

static void test_nothing_that_becomes_healthy_in_time_is_the_end(void **state)
{
    static const struct row rows[] = {
        {"uoo", NULL, 1, 0, "go", "---", BEGUN_MS + PROGRESS_MS - 1},
        {"uoo", NULL, 1, 0, "late", NULL, BEGUN_MS + PROGRESS_MS},
        {"huo", NULL, 1, 0, "go", "---", HEALTHY_MS + PROGRESS_MS - 1},
        {"huo", NULL, 1, 0, "late", NULL, HEALTHY_MS + PROGRESS_MS},
        {"hho", NULL, 1, 0, "late", NULL, HEALTHY_MS + PROGRESS_MS},
        {"wuo", NULL, 1, 0, "go", "---", 100 * PROGRESS_MS}, /* one has yet to begin */
        {"hhh", NULL, 1, 0, "done", NULL, 100 * PROGRESS_MS},
        {"hx.", NULL, 1, 0, "unhealthy", NULL, 100 * PROGRESS_MS},
    };
    struct rollout_decision decision;
    struct asked asked;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ask(&rows[i], &asked);
        expect(&rows[i], &asked);
    }
    ask(&rows[0], &asked);
    policy_rollout(&asked.input, &decision);
    assert_int_equal(decision.look_at_ms, BEGUN_MS + PROGRESS_MS);
}

static void test_paused_one_replaces_nobody_and_is_not_late(void **state)
{
    static const struct row paused = {"hoo", NULL, 1, 0, "go", "---", 100 * PROGRESS_MS};
    static const struct row resumed = {"uoo", NULL, 1, 0, "go", "---", 100 * PROGRESS_MS};
    static const struct row late = {"uoo", NULL, 1, 0, "late", NULL, 100 * PROGRESS_MS};
    struct asked asked;

    (void)state;
    ask(&paused, &asked);
    asked.input.paused = true;
    expect(&paused, &asked);
    ask(&resumed, &asked);
    asked.input.resumed_ms = 99 * PROGRESS_MS + 1;
    expect(&resumed, &asked);
    ask(&late, &asked);
    asked.input.resumed_ms = 99 * PROGRESS_MS;
    expect(&late, &asked);
    ask(&(struct row){"hxo", NULL, 1, 0, "unhealthy", NULL, 0}, &asked);
    asked.input.paused = true;
    expect(&(struct row){"hxo", NULL, 1, 0, "unhealthy", NULL, 0}, &asked);
}

static void test_canaries_come_first_and_nobody_goes_for_them(void **state)
{
    static const struct row rows[] = {
        {"oooo", "....", 2, 2, "go", "TT--", 0},
        {"oooo", "uu..", 2, 2, "go", "----", 0},
        {"oooo", "h...", 2, 2, "go", "-T--", 0},
        {"oooo", ".h..", 2, 2, "go", "T---", 0},
        {"oooo", "hh..", 2, 2, "go", "----", 0},
        {"oooo", "hx..", 2, 2, "unhealthy", NULL, 0},
        {"oooo", "hX..", 2, 2, "unhealthy", NULL, 0}, /* that is what it was to tell */
        {"koko", "....", 1, 2, "go", "-T-T", 0},
        {"hhhh", "....", 1, 1, "go", "----", 0},
        {"ooo", "u..", 1, 1, "late", NULL, BEGUN_MS + PROGRESS_MS},
        {"ooo", "h..", 1, 1, "go", "---", 100 * PROGRESS_MS}, /* it is up to its users */
        {"hoo", "...", 1, 0, "go", "-R-", 0},                 /* promoted */
    };
    struct asked asked;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ask(&rows[i], &asked);
        expect(&rows[i], &asked);
    }
}

static void test_rollout_is_not_over_while_an_older_one_runs_beside_its_canary(void **state)
{
    static const struct row good = {"hh", NULL, 1, 0, "done", NULL, 0};
    static const struct row crowded = {"hh", NULL, 1, 0, "go", "--", 0};
    static const struct row broken = {"hx", NULL, 1, 0, "unhealthy", NULL, 0};
    struct asked asked;

    (void)state;
    ask(&good, &asked);
    expect(&good, &asked);
    ask(&crowded, &asked);
    asked.places[1].crowded = true;
    expect(&crowded, &asked);
    ask(&broken, &asked);
    asked.places[0].crowded = true;
    expect(&broken, &asked);
}

static void test_canaries_are_promoted_by_themselves_where_all_groups_say_so(void **state)
{
    static const struct row healthy = {"oo", "h.", 1, 1, "promote", NULL, 0};
    static const struct row waits = {"oo", "h.", 1, 1, "go", "--", 0};
    struct rollout_decision decision;
    struct asked one, other;
    struct rollout_group both[2];

    (void)state;
    ask(&healthy, &one);
    one.group.auto_promote = true;
    expect(&healthy, &one);
    ask(&waits, &other);
    expect(&waits, &other);
    policy_rollout(&other.input, &decision);
    assert_true(decision.awaits);
    both[0] = one.group;
    both[1] = other.group;
    one.input.groups = both;
    one.input.count = 2;
    policy_rollout(&one.input, &decision);
    assert_int_equal(decision.answer, ROLLOUT_GOES_ON); /* the other one does not */
    both[1].auto_promote = true;
    policy_rollout(&one.input, &decision);
    assert_int_equal(decision.answer, ROLLOUT_PROMOTES);
    other.places[0].canary = alloc_of_letter('u');
    policy_rollout(&one.input, &decision);
    assert_int_equal(decision.answer, ROLLOUT_GOES_ON); /* or is not healthy yet */
    both[1].canaries = 0;                               /* it has none to be waited for */
    policy_rollout(&one.input, &decision);
    assert_int_equal(decision.answer, ROLLOUT_PROMOTES);
}

static void test_group_that_fails_says_whether_the_job_goes_back(void **state)
{
    struct rollout_decision decision;
    struct asked good, bad;
    struct rollout_group both[2];

    (void)state;
    ask(&(struct row){"hh", NULL, 1, 0, "done", NULL, 0}, &good);
    ask(&(struct row){"xo", NULL, 1, 0, "unhealthy", NULL, 0}, &bad);
    both[0] = good.group;
    both[1] = bad.group;
    good.input.groups = both;
    good.input.count = 2;
    both[0].auto_revert = true;
    policy_rollout(&good.input, &decision);
    assert_int_equal(decision.answer, ROLLOUT_UNHEALTHY);
    assert_false(decision.reverts);
    both[1].auto_revert = true;
    policy_rollout(&good.input, &decision);
    assert_true(decision.reverts);
    bad.places[0].last = alloc_of_letter('u');
    good.input.now_ms = BEGUN_MS + PROGRESS_MS;
    policy_rollout(&good.input, &decision);
    assert_int_equal(decision.answer, ROLLOUT_LATE);
    assert_true(decision.reverts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places_are_replaced_as_those_before_them_become_healthy),
        cmocka_unit_test(test_place_that_is_filled_anyhow_is_not_counted_on),
        cmocka_unit_test(test_one_that_fails_for_good_is_the_end),
        cmocka_unit_test(test_nothing_that_becomes_healthy_in_time_is_the_end),
        cmocka_unit_test(test_paused_one_replaces_nobody_and_is_not_late),
        cmocka_unit_test(test_canaries_come_first_and_nobody_goes_for_them),
        cmocka_unit_test(test_rollout_is_not_over_while_an_older_one_runs_beside_its_canary),
        cmocka_unit_test(test_canaries_are_promoted_by_themselves_where_all_groups_say_so),
        cmocka_unit_test(test_group_that_fails_says_whether_the_job_goes_back),
    };
    return cmocka_run_group_tests_name("fsm/rollout", tests, NULL, NULL);
}
