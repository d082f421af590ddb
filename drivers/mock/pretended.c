/*
 * Sessions in tasks of mock_driver: the command is not there, either.
 *
 * Whatever is to be run, it is what the block exec_command of the task's config says, and the
 * clock; input goes nowhere.  Each call to whoever listens is the last thing that a tick does: he
 * may hold the session, or end it, from within.
 */
#include "drivers/mock/pretended.h"

#include "drivers/mock/mock.h"

#include <stdlib.h>
#include <string.h>

struct pretended {
    struct loop *loop;
    struct driver_key key; /* of the task */
    struct driver_session_calls calls;
    struct mock *mock; /* a copy of the task's, for its config */
    uint64_t begun_ms, written[MOCK_OUTPUTS];
    bool closed[MOCK_OUTPUTS];
    struct io_timer timer;
    struct pretended *next, **link;
};

static void on_time(struct io_timer *timer);

static void go_on(struct pretended *pretended, uint64_t at_ms)
{
    uint64_t now_ms = loop_now_ms();

    io_timer_start(pretended->loop, &pretended->timer, at_ms > now_ms ? at_ms : now_ms, on_time,
                   pretended);
}

/* When the text of this output is due again, UINT64_MAX: it has all been said. */
static uint64_t due_ms(const struct pretended *pretended, size_t stream)
{
    const struct mock_output *output = &pretended->mock->command.mock.exec.outputs[stream];
    uint64_t written = pretended->written[stream];

    return output->text == NULL || written > (uint64_t)output->repeat
               ? UINT64_MAX
               : pretended->begun_ms + written * output->repeat_ms;
}

static void end(struct pretended *pretended)
{
    const struct mock_exec *exec = &pretended->mock->command.mock.exec;
    struct err err = {0};

    if (exec->exit_message == NULL || exec->exit_message[0] == '\0') {
        pretended->calls.on_end(
            pretended->calls.ctx,
            (int)(exec->exit_signal != 0 ? 128 + exec->exit_signal : exec->exit_code), NULL);
        return;
    }
    (void)err_set(&err, ERR_REFUSED, "%s", exec->exit_message);
    pretended->calls.on_end(pretended->calls.ctx, -1, &err);
}

static void on_time(struct io_timer *timer)
{
    struct pretended *pretended = timer->ctx;
    const struct mock_exec *exec = &pretended->mock->command.mock.exec;
    const struct driver_session_calls *calls = &pretended->calls;
    uint64_t now_ms = loop_now_ms(), next_ms = UINT64_MAX;

    for (size_t i = 0; i < MOCK_OUTPUTS; i++) {
        uint64_t at_ms = due_ms(pretended, i);

        if (at_ms <= now_ms) {
            const char *text = exec->outputs[i].text;

            pretended->written[i]++;
            go_on(pretended, now_ms);
            calls->on_output(calls->ctx, i == 1, text, strlen(text));
            return;
        }
        if (at_ms == UINT64_MAX && !pretended->closed[i]) {
            pretended->closed[i] = true;
            go_on(pretended, now_ms);
            calls->on_closed(calls->ctx, i == 1);
            return;
        }
        next_ms = at_ms < next_ms ? at_ms : next_ms;
    }
    if (next_ms == UINT64_MAX && now_ms >= pretended->begun_ms + exec->run_for_ms)
        end(pretended);
    else
        go_on(pretended, next_ms == UINT64_MAX ? pretended->begun_ms + exec->run_for_ms : next_ms);
}

static void pretended_end(void *session)
{
    struct pretended *pretended = session;

    io_timer_stop(&pretended->timer);
    *pretended->link = pretended->next;
    if (pretended->next != NULL)
        pretended->next->link = pretended->link;
    mock_free(pretended->mock);
    free(pretended);
}

static void pretended_hold(void *session, bool hold)
{
    struct pretended *pretended = session;

    if (hold)
        io_timer_stop(&pretended->timer);
    else
        go_on(pretended, 0);
}

const struct session_way pretended_way = {.end = pretended_end, .hold = pretended_hold};

struct pretended *pretended_new(struct drivers *drivers, const struct run *run,
                                const struct driver_session_calls *calls, struct err *err)
{
    struct pretended *pretended = calloc(1, sizeof(*pretended));

    check(pretended != NULL);
    *pretended = (struct pretended){.loop = drivers->config.loop,
                                    .key = run->key,
                                    .calls = *calls,
                                    .mock = calloc(1, sizeof(*pretended->mock)),
                                    .begun_ms = loop_now_ms(),
                                    .next = drivers->pretended,
                                    .link = &drivers->pretended};
    check(pretended->mock != NULL);
    pretended->mock->record = run->mock->record;
    if (pretended->next != NULL)
        pretended->next->link = &pretended->next;
    drivers->pretended = pretended;
    int code = mock_read_config(pretended->mock, err);
    if (code == 0 && !pretended->mock->command.mock.has_exec)
        code = err_set(err, ERR_UNSUPPORTED, "no exec command is configured");
    if (code != 0) {
        pretended_end(pretended);
        return NULL;
    }
    go_on(pretended, 0);
    return pretended;
}

void pretended_end_all(struct drivers *drivers, const struct driver_key *key)
{
    struct pretended *pretended = drivers->pretended;
    struct err err = {0};

    (void)err_set(&err, ERR_GONE, "the task has ended, and the session with it");
    while (pretended != NULL) {
        bool its = key_equal(&pretended->key, key);

        if (its)
            pretended->calls.on_end(pretended->calls.ctx, -1, &err); /* who frees it */
        pretended = its ? drivers->pretended : pretended->next; /* others may be gone with it */
    }
}
