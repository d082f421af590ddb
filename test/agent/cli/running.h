/* Running a command line in a test: what it printed on both streams, and its exit status. */
#ifndef CAIRN_TEST_AGENT_CLI_RUNNING_H
#define CAIRN_TEST_AGENT_CLI_RUNNING_H

#include "agent/cli/cli.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { STREAM_BYTES_MAX = 256 << 10 };

/* A stream of the process while it goes to a file. */
struct diverted {
    FILE *stream, *file;
    int before; /* where the stream went */
};

static inline struct diverted divert(FILE *stream)
{
    struct diverted diverted = {.stream = stream, .file = tmpfile()};

    assert_non_null(diverted.file);
    assert_int_equal(fflush(stream), 0);
    diverted.before = dup(fileno(stream));
    assert_true(diverted.before >= 0);
    assert_true(dup2(fileno(diverted.file), fileno(stream)) >= 0);
    return diverted;
}

/* The stream goes where it went; what went to the file, owned by the caller. */
static inline char *give_back(struct diverted *diverted)
{
    char *text = calloc(1, STREAM_BYTES_MAX);

    (void)fflush(diverted->stream); /* /dev/full is one of the tests */
    (void)dup2(diverted->before, fileno(diverted->stream));
    (void)close(diverted->before);
    assert_non_null(text);
    rewind(diverted->file);
    assert_true(fread(text, 1, STREAM_BYTES_MAX, diverted->file) < STREAM_BYTES_MAX);
    assert_int_equal(fclose(diverted->file), 0);
    return text;
}

#endif
