/* Inside drivers only: a task of mock_driver, what it is (mock.c) and how it lives (held.c). */
#ifndef CAIRN_DRIVERS_MOCK_MOCK_H
#define CAIRN_DRIVERS_MOCK_MOCK_H

#include "drivers/part.h"

/* In the task's file, in place of the record of what a shim has started.  The times are those of
 * CLOCK_BOOTTIME, and count in this boot. */
struct mock_record {
    struct record_head head;
    uint64_t asked_ms;
    int64_t asked_unix_ns;
    uint64_t stop_ms, kill_ms; /* 0: nobody has asked for it */
    uint64_t log_bytes_max;    /* of one stream, 0: output goes nowhere */
    uint64_t log_from[MOCK_OUTPUTS];
    char boot_id[40];
    char alloc_dir[512];
    char config[768];                       /* JSON */
    uint64_t log_files_max;                 /* 0: an older version's, one that is not rotated */
    uint64_t log_number_from[MOCK_OUTPUTS]; /* the file that log_from is of */
};

_Static_assert(sizeof(struct mock_record) == 1424, "part of a format on disk");
_Static_assert(sizeof(struct mock_record) <= TASK_RECORD_SIZE, "it has its place");

struct mock {
    struct command command;
    struct mock_record record;
    uint64_t written[MOCK_OUTPUTS];    /* times that each stream's text was, or was tried */
    uint64_t log_number[MOCK_OUTPUTS]; /* of the file that it goes to */
};

/* The config of the record into the command. */
int mock_read_config(struct mock *mock, struct err *err);

/* When its start is over. */
uint64_t mock_begin_ms(const struct mock *mock);

enum mock_end { MOCK_ENDS, MOCK_IS_LOST, MOCK_IS_KILLED };

/* When it ends by what is known now, and how. */
enum mock_end mock_end_ms(const struct mock *mock, uint64_t *ret_at_ms);

/* How often the text of OUTPUT was to be written by now. */
uint64_t mock_due(const struct mock *mock, const struct mock_output *output, uint64_t now_ms);

/* When the next text is to be written, UINT64_MAX: never. */
uint64_t mock_next_output_ms(const struct mock *mock);

#endif
