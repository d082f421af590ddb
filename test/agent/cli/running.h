/* Running a command line in a test: what it printed on both streams, and its exit status. */
#ifndef CAIRN_TEST_AGENT_CLI_RUNNING_H
#define CAIRN_TEST_AGENT_CLI_RUNNING_H

#include "agent/cli/cli.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { STREAM_BYTES_MAX = 256 << 10, TYPED_WORDS_MAX = 24 };

/* --- streams --- */

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

/* All that is in FILE, owned by the caller. */
static inline char *read_whole(FILE *file)
{
    char *text = calloc(1, STREAM_BYTES_MAX);

    assert_non_null(text);
    rewind(file);
    assert_true(fread(text, 1, STREAM_BYTES_MAX, file) < STREAM_BYTES_MAX);
    return text;
}

/* The stream goes where it went; what went to the file, owned by the caller. */
static inline char *give_back(struct diverted *diverted)
{
    assert_int_equal(fflush(diverted->stream), 0);
    assert_true(dup2(diverted->before, fileno(diverted->stream)) >= 0);
    assert_int_equal(close(diverted->before), 0);
    char *text = read_whole(diverted->file);
    assert_int_equal(fclose(diverted->file), 0);
    return text;
}

/* --- command lines --- */

struct typed {
    char *out, *complain; /* owned */
    int status;
};

static inline void forget_typed(struct typed *typed)
{
    free(typed->out);
    free(typed->complain);
    *typed = (struct typed){.status = 0};
}

/* For cmocka: nothing typed yet, times are those of UTC. */
static inline int typed_make(void **state)
{
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    tzset();
    *state = calloc(1, sizeof(struct typed));
    assert_non_null(*state);
    return 0;
}

static inline int typed_remove(void **state)
{
    forget_typed(*state);
    free(*state);
    return 0;
}

/* Runs LINE, "job status web", with VERB alone to be found.  What an earlier line left is freed. */
static inline void type(struct typed *typed, const struct cli_verb *verb, const char *line)
{
    char words[1024] = "cairn ", *argv[TYPED_WORDS_MAX + 1], *rest = words;
    int argc = 0;

    assert_true(text_append(words, sizeof(words), line));
    for (char *word = strsep(&rest, " "); word != NULL; word = strsep(&rest, " ")) {
        assert_true(argc < TYPED_WORDS_MAX);
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    forget_typed(typed);
    struct diverted out = divert(stdout), complain = divert(stderr);
    typed->status = cli_main(&verb, 1, argc, argv);
    typed->complain = give_back(&complain);
    typed->out = give_back(&out);
}

/* --- what it says --- */

static inline void assert_says(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

static inline void assert_is_silent_about(const char *text, const char *part)
{
    if (strstr(text, part) != NULL)
        fail_msg("\"%s\" is in:\n%s", part, text);
}

#endif
