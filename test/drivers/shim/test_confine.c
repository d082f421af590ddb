/* The filter of a shim: each call that is taken away is refused, and no other one. */
#include "drivers/shim/confine.c"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
/* Needs what stands above it. */
#include <cmocka.h>

enum { CALLS = 1024 }; /* more than any kernel has */

enum { STEPS_MAX = HEAD + (COUNT_OF(taken_away) + BLOCK - 1) / BLOCK + BLOCK + 1 };

/* What the filter says of the call NUMBER, as the kernel runs it: no call is compared with more
 * than the ends of the blocks and those of one block. */
static uint32_t verdict_of(const struct filter *filter, uint32_t arch, uint32_t number)
{
    const struct seccomp_data data = {.nr = (int)number, .arch = arch};
    uint32_t loaded = 0;
    size_t steps = 0;

    for (size_t at = 0; at < filter->length; at++) {
        const struct sock_filter *code = &filter->code[at];
        bool holds = false;

        assert_true(++steps <= STEPS_MAX);
        switch (code->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            memcpy(&loaded, (const char *)&data + code->k, sizeof(loaded));
            continue;
        case BPF_RET | BPF_K:
            return code->k;
        case BPF_JMP | BPF_JEQ | BPF_K:
            holds = loaded == code->k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            holds = loaded > code->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            holds = loaded >= code->k;
            break;
        default:
            fail_msg("instruction %zu is of a kind that no filter of ours has", at);
        }
        at += holds ? code->jt : code->jf;
    }
    fail_msg("the filter ends without a verdict");
    return 0;
}

static bool is_taken_away(uint32_t number)
{
    for (size_t i = 0; i < COUNT_OF(taken_away); i++) {
        if (taken_away[i] == number)
            return true;
    }
    return false;
}

static void test_what_is_taken_away_is_refused_and_nothing_else(void **state)
{
    struct filter filter;

    (void)state;
    make_filter(&filter);
    for (uint32_t number = 0; number < CALLS; number++)
        assert_int_equal(verdict_of(&filter, NATIVE, number),
                         is_taken_away(number) ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_ALLOW);
}

static void test_calls_of_other_machines_are_refused(void **state)
{
    struct filter filter;

    (void)state;
    make_filter(&filter);
    assert_int_equal(verdict_of(&filter, NATIVE + 1, SYS_getpid), SECCOMP_RET_ERRNO | EPERM);
    assert_int_equal(verdict_of(&filter, NATIVE, FOREIGN_FROM), SECCOMP_RET_ERRNO | EPERM);
}

static void test_the_kernel_takes_it(void **state)
{
    int status;

    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        shim_confine();
        _exit(getppid() > 0 && socket(AF_UNIX, SOCK_STREAM, 0) == -1 && errno == EPERM ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_taken_away_is_refused_and_nothing_else),
        cmocka_unit_test(test_calls_of_other_machines_are_refused),
        cmocka_unit_test(test_the_kernel_takes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
