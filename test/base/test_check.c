/* Guards: whose work a failed check broke, and that nobody else is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct node {
    struct check_guard guard;
    jmp_buf place;
    unsigned told;
    char text[64];
};

static void note(struct node *node, const char *text)
{
    node->told++;
    text_copy(node->text, sizeof(node->text), text);
}

static void jump_back(void *ctx, const char *file, int line, const char *text)
{
    struct node *node = ctx;

    assert_non_null(strstr(file, "test_check.c"));
    assert_true(line > 0);
    note(node, text);
    longjmp(node->place, 1);
}

static void come_back(void *ctx, const char *file, int line, const char *text)
{
    (void)file;
    (void)line;
    note(ctx, text);
}

/* True if RUN did not come to its end under a guard of NODE. */
static bool breaks(struct node *node, void (*run)(void *ctx), void *ctx)
{
    check_guard_push(&node->guard, jump_back, node);
    bool broken = setjmp(node->place) != 0;
    if (!broken)
        run(ctx);
    check_guard_pop(&node->guard);
    return broken;
}

static void fail_a_check(void *ctx)
{
    const char *one = ctx;

    check(one == NULL);
}

static void test_failed_check_comes_back_to_its_guard(void **state)
{
    struct node node = {0};

    (void)state;
    for (unsigned times = 1; times <= 3; times++) {
        assert_true(breaks(&node, fail_a_check, "not null"));
        assert_int_equal(node.told, times);
        assert_string_equal(node.text, "one == NULL");
        assert_false(breaks(&node, fail_a_check, NULL));
        assert_int_equal(node.told, times);
    }
}

static void fail_within(void *ctx)
{
    assert_true(breaks(ctx, fail_a_check, "not null"));
}

static void test_only_the_innermost_guard_is_told(void **state)
{
    struct node outer = {0}, inner = {0};

    (void)state;
    assert_false(breaks(&outer, fail_within, &inner));
    assert_int_equal(inner.told, 1);
    assert_int_equal(outer.told, 0);
    assert_true(breaks(&outer, fail_a_check, "not null"));
    assert_int_equal(outer.told, 1);
}

static void fail_under_one_that_returns(void *ctx)
{
    struct node *node = ctx;

    check_guard_push(&node->guard, come_back, node);
    fail_a_check("not null");
}

static void test_next_guard_is_told_when_one_returns(void **state)
{
    struct node outer = {0}, inner = {0};

    (void)state;
    assert_true(breaks(&outer, fail_under_one_that_returns, &inner));
    assert_int_equal(inner.told, 1);
    assert_int_equal(outer.told, 1);
}

static void fail_again(void *ctx, const char *file, int line, const char *text)
{
    (void)file;
    (void)line;
    note(ctx, text);
    unreachable("a guard that fails itself");
}

static void fail_under_one_that_fails(void *ctx)
{
    struct node *node = ctx;

    check_guard_push(&node->guard, fail_again, node);
    fail_a_check("not null");
}

static void test_check_that_fails_in_a_guard_is_the_next_ones(void **state)
{
    struct node outer = {0}, inner = {0};

    (void)state;
    assert_true(breaks(&outer, fail_under_one_that_fails, &inner));
    assert_int_equal(inner.told, 1);
    assert_string_equal(outer.text, "unreachable: a guard that fails itself");
}

/* A jump of another kind, as a simulated world leaves for a violation. */
static void leave_a_guard_behind(void *ctx)
{
    struct check_guard left;
    struct node *outer = ctx;

    check_guard_push(&left, come_back, NULL);
    longjmp(outer->place, 1);
}

static void test_guard_left_behind_by_a_jump_is_taken_off_too(void **state)
{
    struct node outer = {0};

    (void)state;
    assert_true(breaks(&outer, leave_a_guard_behind, &outer));
    assert_int_equal(outer.told, 0);
    assert_true(breaks(&outer, fail_a_check, "not null"));
    assert_int_equal(outer.told, 1);
}

static void *fail_on_a_thread(void *ctx)
{
    return breaks(ctx, fail_a_check, "not null") ? ctx : NULL;
}

static void test_threads_have_guards_of_their_own(void **state)
{
    struct node here = {0}, there = {0};
    pthread_t thread;
    void *result;

    (void)state;
    check_guard_push(&here.guard, come_back, &here);
    assert_int_equal(pthread_create(&thread, NULL, fail_on_a_thread, &there), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    check_guard_pop(&here.guard);
    assert_ptr_equal(result, &there);
    assert_int_equal(there.told, 1);
    assert_int_equal(here.told, 0);
}

static void test_failed_check_without_a_guard_aborts(void **state)
{
    int status;

    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit none = {0};

        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(SIGABRT, SIG_DFL);
        fail_a_check("not null");
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failed_check_comes_back_to_its_guard),
        cmocka_unit_test(test_only_the_innermost_guard_is_told),
        cmocka_unit_test(test_next_guard_is_told_when_one_returns),
        cmocka_unit_test(test_check_that_fails_in_a_guard_is_the_next_ones),
        cmocka_unit_test(test_guard_left_behind_by_a_jump_is_taken_off_too),
        cmocka_unit_test(test_threads_have_guards_of_their_own),
        cmocka_unit_test(test_failed_check_without_a_guard_aborts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
