/*
 * The driver mock_driver: tasks that are not there, for trying jobs and the node itself.
 *
 * Follows nomad v2.0.5 drivers/mock.  Such a task has no process and no supervisor: it is what its
 * config and the clock say, from the moment that is written in its file.  So a daemon that comes
 * back finds it as it would be had it gone on running, ended at its time and with its code, and its
 * output without a gap; and a reboot loses it, like any process.
 *
 *   asked --start_block_for--> begins --run_for, or its output, whichever is longer--> ends
 *                                 \--plugin_exit_after--> lost, as with a supervisor
 *   told to stop --kill_after--> ends;  at the end of the kill timeout it is killed
 */
#include "drivers/mock/mock.h"

#include <stddef.h>
#include <stdlib.h>

enum { REPEAT_MAX = 1000000 };

#define OUT(stream, member) offsetof(struct command, mock.outputs[stream].member)
#define OF(member) offsetof(struct command, mock.member)

static const char no_network[] = "a task has no network of its driver's";
static const char no_signals[] = "no session is sent a signal";

static const struct config_key keys[] = {
    {"run_for", CONFIG_DURATION, OF(run_for_ms), NULL},
    {"exit_code", CONFIG_NUMBER, OF(exit_code), NULL},
    {"exit_signal", CONFIG_NUMBER, OF(exit_signal), NULL},
    {"exit_err_msg", CONFIG_TEXT, OF(exit_message), NULL},
    {"start_error", CONFIG_TEXT, OF(start_error), NULL},
    {"start_error_recoverable", CONFIG_BOOL, OF(start_error_recoverable), NULL},
    {"start_block_for", CONFIG_DURATION, OF(start_block_for_ms), NULL},
    {"kill_after", CONFIG_DURATION, OF(kill_after_ms), NULL},
    {"plugin_exit_after", CONFIG_DURATION, OF(plugin_exit_after_ms), NULL},
    {"signal_error", CONFIG_TEXT, OF(signal_error), NULL},
    {"stdout_string", CONFIG_TEXT, OUT(0, text), NULL},
    {"stdout_repeat", CONFIG_NUMBER, OUT(0, repeat), NULL},
    {"stdout_repeat_duration", CONFIG_DURATION, OUT(0, repeat_ms), NULL},
    {"stderr_string", CONFIG_TEXT, OUT(1, text), NULL},
    {"stderr_repeat", CONFIG_NUMBER, OUT(1, repeat), NULL},
    {"stderr_repeat_duration", CONFIG_DURATION, OUT(1, repeat_ms), NULL},
    {"driver_ip", CONFIG_REFUSED, 0, no_network},
    {"driver_advertise", CONFIG_REFUSED, 0, no_network},
    {"driver_port_map", CONFIG_REFUSED, 0, no_network},
    {"exec_command", CONFIG_BLOCK, OF(has_exec), NULL},
    {"exec_command.run_for", CONFIG_DURATION, OF(exec.run_for_ms), NULL},
    {"exec_command.exit_code", CONFIG_NUMBER, OF(exec.exit_code), NULL},
    {"exec_command.exit_signal", CONFIG_NUMBER, OF(exec.exit_signal), NULL},
    {"exec_command.exit_err_msg", CONFIG_TEXT, OF(exec.exit_message), NULL},
    {"exec_command.signal_error", CONFIG_REFUSED, 0, no_signals},
    {"exec_command.stdout_string", CONFIG_TEXT, OF(exec.outputs[0].text), NULL},
    {"exec_command.stdout_repeat", CONFIG_NUMBER, OF(exec.outputs[0].repeat), NULL},
    {"exec_command.stdout_repeat_duration", CONFIG_DURATION, OF(exec.outputs[0].repeat_ms), NULL},
    {"exec_command.stderr_string", CONFIG_TEXT, OF(exec.outputs[1].text), NULL},
    {"exec_command.stderr_repeat", CONFIG_NUMBER, OF(exec.outputs[1].repeat), NULL},
    {"exec_command.stderr_repeat_duration", CONFIG_DURATION, OF(exec.outputs[1].repeat_ms), NULL},
};

/* --- config --- */

static int check_end(int64_t code, int64_t signal, struct err *err)
{
    if (code < 0 || code > 255)
        return err_set(err, ERR_INVALID, "mock_driver: \"exit_code\" must be 0 to 255");
    if (signal < 0 || signal > 64)
        return err_set(err, ERR_INVALID, "mock_driver: \"exit_signal\" must be 0 to 64");
    return 0;
}

static int check_outputs(const struct mock_output *outputs, struct err *err)
{
    for (size_t i = 0; i < MOCK_OUTPUTS; i++) {
        if (outputs[i].repeat < 0 || outputs[i].repeat > REPEAT_MAX)
            return err_set(err, ERR_INVALID, "mock_driver: output is repeated 0 to %d times",
                           REPEAT_MAX);
    }
    return 0;
}

static int check_config(const struct command *command, struct err *err)
{
    const struct mock_config *config = &command->mock;
    const struct mock_exec *exec = &config->exec;
    int code = check_end(config->exit_code, config->exit_signal, err);

    if (code == 0)
        code = check_end(exec->exit_code, exec->exit_signal, err);
    if (code == 0)
        code = check_outputs(config->outputs, err);
    if (code == 0)
        code = check_outputs(exec->outputs, err);
    if (code != 0)
        return code;
    if (config->start_block_for_ms > START_BOUND_MS)
        return err_set(err, ERR_INVALID,
                       "mock_driver: \"start_block_for\" must be %d s at most: no start takes "
                       "longer here",
                       START_BOUND_MS / 1000);
    return 0;
}

static int prepare(const struct drivers *drivers, const struct driver_probed *probed,
                   struct command *command, struct err *err)
{
    (void)drivers; /* the node has nothing to say to what is not there */
    (void)probed;
    (void)command;
    (void)err;
    return 0;
}

static bool look(const struct drivers *drivers, char ret_why[ERR_TEXT_SIZE])
{
    const struct drivers_mock *mock = &drivers->config.mock;
    bool is_over =
        mock->shuts_down && loop_now_ms() - drivers->opened_ms >= mock->shutdown_after_ms;

    if (!mock->enabled || is_over)
        (void)text_copy(ret_why, ERR_TEXT_SIZE, "disabled"); /* fits */
    return mock->enabled && !is_over;
}

const struct driver mock_driver = {
    .kind = {.name = "mock_driver",
             .isolation = ISOLATION_NONE,
             .user = "",
             .signals = true,
             .runs_commands = true},
    .stop_signal = "SIGINT",
    .keys = keys,
    .keys_count = COUNT_OF(keys),
    .validate = check_config,
    .prepare = prepare,
    .look = look,
    .way = WAY_HELD,
};

/* --- what it is --- */

void mock_free(struct mock *mock)
{
    if (mock == NULL)
        return;
    command_close(&mock->command);
    free(mock);
}

int mock_read_config(struct mock *mock, struct err *err)
{
    const struct task_spec task = {.config_json = mock->record.config};

    return command_read(&mock_driver, &task, &mock->command, err);
}

struct mock *mock_new(const struct drivers *drivers, const struct driver_start *start,
                      struct err *err)
{
    const struct spec_logs *logs = &start->task->logs;
    struct mock *mock = calloc(1, sizeof(*mock));
    struct mock_record *record;

    check(mock != NULL);
    record = &mock->record;
    if (!text_copy(record->config, sizeof(record->config), start->task->config_json) ||
        !text_copy(record->alloc_dir, sizeof(record->alloc_dir), start->alloc_dir)) {
        (void)err_set(err, ERR_LIMIT, "mock_driver: the config must be shorter than %zu bytes",
                      sizeof(record->config));
        mock_free(mock);
        return NULL;
    }
    (void)text_copy(record->boot_id, sizeof(record->boot_id), drivers->boot_id); /* fits */
    if (!logs->disabled)
        record->log_bytes_max =
            (uint64_t)(logs->max_file_size_mb > 0 ? logs->max_file_size_mb : LOG_FILE_MB) << 20;
    record->log_files_max = logs->max_files > 0 ? logs->max_files : LOG_FILES_MAX;
    if (mock_read_config(mock, err) != 0) {
        mock_free(mock);
        return NULL;
    }
    return mock;
}

uint64_t mock_begin_ms(const struct mock *mock)
{
    return mock->record.asked_ms + mock->command.mock.start_block_for_ms;
}

enum mock_end mock_end_ms(const struct mock *mock, uint64_t *ret_at_ms)
{
    const struct mock_config *config = &mock->command.mock;
    const struct mock_record *record = &mock->record;
    uint64_t begin_ms = mock_begin_ms(mock), at_ms = begin_ms + config->run_for_ms;
    enum mock_end end = MOCK_ENDS;

    for (size_t i = 0; i < MOCK_OUTPUTS; i++) {
        const struct mock_output *output = &config->outputs[i];
        uint64_t last_ms = begin_ms + (uint64_t)output->repeat * output->repeat_ms;

        if (output->text != NULL && last_ms > at_ms)
            at_ms = last_ms;
    }
    if (record->stop_ms != 0) {
        uint64_t told_ms = record->stop_ms > begin_ms ? record->stop_ms : begin_ms;

        at_ms = told_ms + config->kill_after_ms < at_ms ? told_ms + config->kill_after_ms : at_ms;
    }
    if (config->plugin_exit_after_ms != 0 && begin_ms + config->plugin_exit_after_ms < at_ms) {
        at_ms = begin_ms + config->plugin_exit_after_ms;
        end = MOCK_IS_LOST;
    }
    if (record->kill_ms != 0 && record->kill_ms < at_ms) {
        at_ms = record->kill_ms;
        end = MOCK_IS_KILLED;
    }
    *ret_at_ms = at_ms;
    return end;
}

uint64_t mock_due(const struct mock *mock, const struct mock_output *output, uint64_t now_ms)
{
    uint64_t most = (uint64_t)output->repeat + 1, end_ms;

    if (output->text == NULL || now_ms < mock_begin_ms(mock))
        return 0;
    (void)mock_end_ms(mock, &end_ms); /* nothing is written after it */
    now_ms = now_ms < end_ms ? now_ms : end_ms;
    uint64_t due =
        output->repeat_ms == 0 ? most : (now_ms - mock_begin_ms(mock)) / output->repeat_ms + 1;
    return due < most ? due : most;
}

uint64_t mock_next_output_ms(const struct mock *mock)
{
    uint64_t next_ms = UINT64_MAX;

    for (size_t i = 0; i < MOCK_OUTPUTS; i++) {
        const struct mock_output *output = &mock->command.mock.outputs[i];
        uint64_t at_ms = mock_begin_ms(mock) + mock->written[i] * output->repeat_ms;

        if (output->text != NULL && mock->written[i] <= (uint64_t)output->repeat && at_ms < next_ms)
            next_ms = at_ms;
    }
    return next_ms;
}
