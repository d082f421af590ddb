/*
 * A run without a shim: the file of its task, its output, and what the clock makes of it.
 *
 * The record is in the file before anybody is told of a start, whole or not at all.  All that
 * follows is derived from it, so that there is nothing to lose when the daemon dies.
 */
#include "drivers/mock/mock.h"
#include "drivers/mock/pretended.h"
#include "drivers/shim/numbers.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OUTPUT_STEP_BYTES = 65536, /* written at a time */
    LOG_NAME_SIZE = SPEC_NAME_SIZE + 16,
};

#define LOGS "alloc/logs"

/* --- its file --- */

static void put(const struct run *run, off_t at, void *record, uint32_t magic, size_t length)
{
    char name[KEY_NAME_SIZE];

    check(key_name(&run->key, name, NULL) == 0);
    scoped_fd int fd =
        openat(run->drivers->shim_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    record_seal(record, magic, length);
    if (fd >= 0)
        (void)task_file_put(fd, at, record, false, NULL); /* else who comes next derives the end,
                                                             and is told once more to stop */
}

/* The whole of it at once: a file that has begun says with what. */
static int put_first(struct mock_record *record, int fd, struct err *err)
{
    char block[TASK_FILE_SIZE] = "begun\n";

    record_seal(record, RECORD_MAGIC_MOCK, sizeof(*record));
    memcpy(block + TASK_STARTED_AT, record, sizeof(*record));
    if (pwrite(fd, block, sizeof(block), 0) == (ssize_t)sizeof(block))
        return 0;
    int os = errno;
    if (ftruncate(fd, 0) != 0) /* else it is lost, with nothing in it to lose */
        os = errno;
    (void)err_os(err, err_from_errno(os), os, "cannot write the task's file");
    err->recoverable = true;
    return err->code;
}

/* --- output --- */

/* "<task>.<stdout|stderr>." */
static void log_prefix(const struct run *run, size_t stream, char to[LOG_NAME_SIZE])
{
    static const char *const suffixes[MOCK_OUTPUTS] = {"stdout", "stderr"};

    check(text_format(to, LOG_NAME_SIZE, "%s.%s.", run->key.task, suffixes[stream]));
}

/* The alloc's directory as a place; -1: the output of STREAM goes nowhere. */
static int open_place(const struct mock *mock, size_t stream)
{
    if (mock->command.mock.outputs[stream].text == NULL || mock->record.log_bytes_max == 0)
        return -1;
    return open(mock->record.alloc_dir, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static int open_log(const struct run *run, size_t stream, struct stat *ret_status)
{
    char prefix[LOG_NAME_SIZE], name[LOG_NAME_SIZE + 40];

    scoped_fd int alloc_fd = open_place(run->mock, stream);
    if (alloc_fd < 0)
        return -1;
    log_prefix(run, stream, prefix);
    check(text_format(name, sizeof(name), "%s/%s%llu", LOGS, prefix,
                      (unsigned long long)run->mock->log_number[stream]));
    scoped_fd int fd =
        beneath_open(alloc_fd, name, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, 0644);
    if (fd < 0 || fstat(fd, ret_status) != 0 || !S_ISREG(ret_status->st_mode) ||
        ret_status->st_nlink > 1)
        return -1;
    return take_fd(&fd);
}

/* Deletes the files of STREAM that are too many; RET_NEWEST is the newest, 0 if there is none. */
static void keep_newest(const struct run *run, size_t stream, uint64_t *ret_newest)
{
    const struct mock *mock = run->mock;
    uint64_t number = mock->log_number[stream], most = mock->record.log_files_max;
    char prefix[LOG_NAME_SIZE];

    *ret_newest = 0;
    scoped_fd int alloc_fd = open_place(mock, stream);
    if (alloc_fd < 0)
        return;
    log_prefix(run, stream, prefix);
    scoped_fd int logs_fd = beneath_open(alloc_fd, LOGS, O_RDONLY | O_DIRECTORY, 0);
    (void)numbers_scan(logs_fd, prefix, most > 0 && number >= most ? number - most + 1 : 0,
                       ret_newest); /* none: number 0 */
}

/* Writes what is due, or a part of it: then true.  A text is never cut by the end of a file; a log
 * that cannot be written takes no more, as one whose disk is full. */
static bool write_due(struct run *run, size_t stream, uint64_t now_ms)
{
    struct mock *mock = run->mock;
    const struct mock_output *output = &mock->command.mock.outputs[stream];
    uint64_t due = mock_due(mock, output, now_ms), newest;
    struct stat status;
    size_t done = 0;

    if (mock->written[stream] >= due)
        return false;
    scoped_fd int fd = open_log(run, stream, &status);
    size_t length = strlen(output->text);
    uint64_t size = fd < 0 ? 0 : (uint64_t)status.st_size;
    while (fd >= 0 && mock->written[stream] < due && done < OUTPUT_STEP_BYTES &&
           size + length <= mock->record.log_bytes_max &&
           write(fd, output->text, length) == (ssize_t)length) {
        mock->written[stream]++;
        size += length;
        done += length + 1; /* an empty text takes its turn, too */
    }
    if (done >= OUTPUT_STEP_BYTES)
        return true;
    if (fd >= 0 && mock->written[stream] < due && mock->record.log_files_max > 0 &&
        length <= mock->record.log_bytes_max && size + length > mock->record.log_bytes_max) {
        mock->log_number[stream]++;
        keep_newest(run, stream, &newest);
        return true;
    }
    mock->written[stream] = due;
    return false;
}

/* How often TEXT was written by an earlier daemon, whose last file has SIZE bytes. */
static uint64_t written_before(const struct mock *mock, size_t stream, uint64_t size)
{
    const struct mock_record *record = &mock->record;
    uint64_t length = strlen(mock->command.mock.outputs[stream].text), most = record->log_bytes_max;
    uint64_t from = record->log_from[stream], first = record->log_number_from[stream];
    uint64_t files = mock->log_number[stream] - first;

    if (length == 0 || mock->log_number[stream] < first)
        return 0;
    if (files == 0)
        return size > from ? (size - from) / length : 0;
    return (most > from ? (most - from) / length : 0) + (files - 1) * (most / length) +
           size / length;
}

/* Where the output of this attempt begins; or how much of it an earlier daemon has written. */
static void find_output(struct run *run, bool is_first)
{
    struct mock *mock = run->mock;

    for (size_t i = 0; i < MOCK_OUTPUTS; i++) {
        struct stat status = {.st_size = 0};

        if (mock->record.log_files_max > 0 || is_first)
            keep_newest(run, i, &mock->log_number[i]);
        scoped_fd int fd = open_log(run, i, &status);
        uint64_t size = fd < 0 ? 0 : (uint64_t)status.st_size;

        if (is_first) {
            mock->record.log_number_from[i] = mock->log_number[i];
            mock->record.log_from[i] = size;
        } else if (fd >= 0) {
            mock->written[i] = written_before(mock, i, size);
        }
    }
}

/* --- its life --- */

static void on_time(struct io_timer *timer)
{
    held_advance(timer->ctx);
}

/* May free the run. */
static void conclude(struct run *run, struct exit_record *record)
{
    put(run, TASK_EXIT_AT, record, RECORD_MAGIC_EXIT, sizeof(*record));
    io_timer_stop(&run->timer);
    run_conclude(run, record);
    run_go_on(run);
}

/* As a start that fails after it was tried. */
static void fail_start(struct run *run)
{
    const struct mock_config *config = &run->mock->command.mock;
    struct exit_record record = {.kind = EXIT_NOT_STARTED,
                                 .error_code = ERR_IO,
                                 .error_recoverable = config->start_error_recoverable};

    (void)text_copy(record.message, sizeof(record.message), config->start_error); /* may be cut */
    conclude(run, &record);
}

/* Ended at AT_MS.  With a message its end is an error and no code, whatever else is configured. */
static void end(struct run *run, enum mock_end how, uint64_t at_ms)
{
    const struct mock_config *config = &run->mock->command.mock;
    const struct mock_record *begun = &run->mock->record;
    struct exit_record record = {.kind = EXIT_ENDED};
    int32_t signal = how == MOCK_IS_KILLED ? SIGKILL : (int32_t)config->exit_signal;

    pretended_end_all(run->drivers, &run->key);
    if (how == MOCK_IS_LOST) {
        run_empty(run);
        return;
    }
    record.signal = signal;
    record.code = signal != 0 ? 128 + signal : (int32_t)config->exit_code;
    record.finished_unix_ns = begun->asked_unix_ns + (int64_t)(at_ms - begun->asked_ms) * 1000000;
    if (how == MOCK_ENDS && config->exit_message != NULL)
        (void)text_copy(record.message, sizeof(record.message),
                        config->exit_message); /* may be cut */
    if (record.message[0] != '\0' && record.code == 0)
        record.kind = EXIT_UNKNOWN;
    conclude(run, &record);
}

static void note_stop(struct run *run, const struct call *call)
{
    struct mock_record *record = &run->mock->record;

    if (record->stop_ms == 0)
        record->stop_ms = loop_now_ms();
    if (record->kill_ms == 0 || call->at_ms < record->kill_ms)
        record->kill_ms = call->at_ms;
    put(run, TASK_STARTED_AT, record, RECORD_MAGIC_MOCK, sizeof(*record));
}

static void answer_signal(struct run *run, struct call *call)
{
    const char *error = run->mock->command.mock.signal_error;
    struct err err = {0};

    if (error == NULL || error[0] == '\0') {
        call_finish(run->drivers, call, DRIVER_DONE);
        return;
    }
    (void)err_set(&err, ERR_REFUSED, "%s", error);
    call_fail(run->drivers, call, &err);
}

/* Answers what can be answered now; RUNS: its start is over. */
static void answer_calls(struct run *run, bool runs)
{
    struct call_list calls = run->calls;

    if (calls.first == NULL)
        return;
    calls_init(&run->calls);
    for (struct call *call; (call = calls_take(&calls)) != NULL;) {
        if (runs && (call->kind == CALL_START || call->kind == CALL_RECOVER)) {
            run->reported = true;
            call_finish(run->drivers, call, DRIVER_RUNNING);
        } else if (runs && call->kind == CALL_SIGNAL) {
            answer_signal(run, call);
        } else if (call->kind == CALL_STOP) {
            note_stop(run, call);
            call_finish(run->drivers, call, DRIVER_DONE);
        } else {
            calls_add(&run->calls, call);
        }
    }
}

void held_advance(struct run *run)
{
    struct mock *mock = run->mock;
    const char *start_error = mock->command.mock.start_error;
    uint64_t now_ms = loop_now_ms(), begin_ms = mock_begin_ms(mock), end_ms, next_ms;
    bool more = false;

    if (now_ms >= begin_ms && start_error != NULL && start_error[0] != '\0') {
        fail_start(run);
        return;
    }
    (void)mock_end_ms(mock, &end_ms);
    answer_calls(run, now_ms >= begin_ms && now_ms < end_ms);
    for (size_t i = 0; i < MOCK_OUTPUTS; i++)
        more |= write_due(run, i, now_ms);
    enum mock_end how = mock_end_ms(mock, &end_ms); /* it may have been told to stop */
    if (now_ms >= end_ms && (!more || how != MOCK_ENDS)) {
        end(run, how, end_ms);
        return;
    }
    if (run_has(run, CALL_DESTROY)) {
        end(run, MOCK_IS_KILLED, now_ms);
        return;
    }
    next_ms = now_ms < begin_ms ? begin_ms : mock_next_output_ms(mock);
    next_ms = more ? now_ms : next_ms < end_ms ? next_ms : end_ms;
    run_at(run, next_ms > now_ms ? next_ms - now_ms : 0, on_time);
}

int held_begin(struct run *run, struct mock *mock, int task_fd, struct err *err)
{
    run->mock = mock;
    mock->record.asked_ms = loop_now_ms();
    mock->record.asked_unix_ns = loop_now_unix_ns();
    find_output(run, true);
    int code = put_first(&mock->record, task_fd, err);
    if (code != 0)
        return code;
    run->phase = RUN_HELD;
    held_advance(run);
    return 0;
}

/* Texts of a record that somebody else may have written have an end. */
static bool is_believed(struct mock_record *record, const struct drivers *drivers)
{
    record->alloc_dir[sizeof(record->alloc_dir) - 1] = '\0';
    record->config[sizeof(record->config) - 1] = '\0';
    record->boot_id[sizeof(record->boot_id) - 1] = '\0';
    return text_equal(record->boot_id, drivers->boot_id) && record->asked_ms <= loop_now_ms();
}

bool held_take_up(struct run *run, int task_fd)
{
    struct mock *mock = calloc(1, sizeof(*mock));

    check(mock != NULL);
    if (task_file_get(task_fd, TASK_STARTED_AT, RECORD_MAGIC_MOCK, &mock->record,
                      sizeof(mock->record), NULL) != 0 ||
        !is_believed(&mock->record, run->drivers) || mock_read_config(mock, NULL) != 0) {
        mock_free(mock);
        return false;
    }
    run->mock = mock;
    run->phase = RUN_HELD;
    find_output(run, false);
    held_advance(run);
    return true;
}
