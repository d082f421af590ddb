/*
 * In the place of programs that are run: what they say is the next pieces of a fuzzer's input, of
 * which the first byte is how the program ends.
 *
 * Included before the .c file under test.
 */
#ifndef CAIRN_TEST_HOOKS_ANSWERS_H
#define CAIRN_TEST_HOOKS_ANSWERS_H

#include "test/fuzz.h"

#include "io/program.h"

static struct fuzz_input answers;

static int answers_run(const struct program_call *call, struct program_answer *ret_answer,
                       struct err *err)
{
    const uint8_t *bytes;
    size_t length;

    check(call->limit_ms > 0 && call->program[0] == '/');
    if (!fuzz_piece(&answers, &bytes, &length) || length == 0)
        return err_set(err, ERR_TIMEOUT, "it has nothing more to say");
    *ret_answer = (struct program_answer){.status = bytes[0] % 4};
    ret_answer->output = strndup((const char *)bytes + 1, length - 1);
    check(ret_answer->output != NULL);
    (void)text_copy(ret_answer->complaint, sizeof(ret_answer->complaint), ret_answer->output);
    text_whole(ret_answer->complaint);
    text_clean(ret_answer->complaint); /* cut is enough */
    return 0;
}

static void answers_close(struct program_answer *answer)
{
    free(answer->output);
}

#define program_run answers_run
#define program_close answers_close

#endif
