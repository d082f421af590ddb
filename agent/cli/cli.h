/*
 * What the verbs of the command line share: flags in Go's manner, talk with the agent over HTTP,
 * output.
 *
 * A verb says what went wrong in one line on standard error (cli_fail) and returns its exit status.
 */
#ifndef CAIRN_AGENT_CLI_CLI_H
#define CAIRN_AGENT_CLI_CLI_H

#include "agent/cli/verb.h"

#include "io/http.h"
#include "io/loop.h"
#include "spec/hcl.h"

#include <jansson.h>
#include <stdio.h>

enum { CLI_FLAGS_MAX = 32, CLI_NAME_SIZE = 64, CLI_SHORT_ID = 8, CLI_URL_SIZE = 4096 };

struct cli_value {
    const struct cli_flag *flag;
    const char *text;
};

struct cli {
    const struct cli_verb *const *verbs;
    size_t verbs_count;
    const struct cli_verb *verb;
    struct cli_value values[CLI_FLAGS_MAX];
    size_t values_count;
    char **arguments; /* NULL behind the last */
    size_t arguments_count;
    const char *address, *namespace;
    bool json, color;
    char secrets[4352];      /* a header line that goes with each call, or "" */
    char token[512];         /* the same */
    struct http_trust trust; /* of https */
    uint64_t patience_ms;    /* with one answer, 0: as long as an agent may take */
    bool was_denied;         /* a call was refused for want of a right */
    struct loop *loop;       /* made by the first call */
};

/* --- what went wrong (fail.c) --- */

/* Says "cairn: ..." on standard error and returns STATUS. */
int cli_fail(enum cli_exit status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Why there is no such command, if Nomad has it; NULL: it has none either (missing.c). */
const char *cli_missing(const char *group, const char *name);

/* --- flags and arguments (flags.c) --- */

/* Of every verb that talks with an agent; ends as every list of flags. */
extern const struct cli_flag cli_common_flags[];

/* Sorts ARGV (behind the verb's name) into flags and arguments; both may be mixed, "--" ends the
 * flags.  ERR_INVALID for what the verb does not take. */
int cli_parse(struct cli *cli, int argc, char **argv, struct err *err);

/* What was given for a flag that the verb has. */
bool cli_switch(const struct cli *cli, const char *name);
const char *cli_text(const struct cli *cli, const char *name, const char *otherwise);
int cli_number(const struct cli *cli, const char *name, int64_t *ret_value); /* CLI_USAGE said */

/* The last value of a flag that the verb may not even have, or NULL; is it a switch that is on? */
const char *cli_given(const struct cli *cli, const char *name);
bool cli_is_on(const struct cli *cli, const char *name);

/* The COUNT-th value of a flag that may be given often, or NULL. */
const char *cli_text_again(const struct cli *cli, const char *name, size_t count);

/* True if VALUE is one of the flag NAME, or that was not given. */
bool cli_is_asked_for(const struct cli *cli, const char *name, const char *value);

const char *cli_argument(const struct cli *cli, size_t at); /* NULL if there is none */

/* "job run" */
void cli_verb_name(const struct cli_verb *verb, char to[CLI_NAME_SIZE]);

void cli_print_help(const struct cli_verb *verb, FILE *to);

/* --- talking with the agent (call.c) --- */

struct cli_reply {
    int status; /* of HTTP */
    char *body; /* owned, NUL behind it */
    size_t length;
    uint64_t index; /* X-Nomad-Index, 0 if there was none */
};

/* METHOD PATH (below the address, escaped, with its query) and waits for the answer.  Anything but
 * 2xx is said and returned as exit status. */
int cli_call(struct cli *cli, const char *method, const char *path, const json_t *body,
             struct cli_reply *ret_reply);

/* The same with the answer as JSON (new reference).  RET_INDEX may be NULL. */
int cli_get(struct cli *cli, const char *path, json_t **ret_json, uint64_t *ret_index);
int cli_put(struct cli *cli, const char *path, const json_t *body, json_t **ret_json);

/* Streams the answer of GET PATH to ON_DATA, until it ends or ON_DATA returns false. */
int cli_stream(struct cli *cli, const char *path,
               bool (*on_data)(void *ctx, const char *bytes, size_t length), void *ctx);

/* "/v1/job/<argument>?namespace=..." and the like: %s in FORMAT are escaped, the namespace is
 * appended. */
const char *cli_path(const struct cli *cli, char to[CLI_URL_SIZE], const char *format, ...);

/* Appends NAME=VALUE, which is escaped, to the query of PATH; false: it has no room. */
bool cli_query(char path[CLI_URL_SIZE], const char *name, const char *value);

/* A connection to the agent as it is, and what it is called in requests. */
int cli_dial(struct cli *cli, struct http_line **ret_line, char ret_host[256]);

void cli_close(struct cli *cli);

/* --- the end of what is streamed (tail.c) --- */

struct cli_tail {
    char *held; /* owned */
    size_t used, size, wanted;
    int64_t lines; /* -1: bytes were asked for */
    bool passing;  /* the end has been reached: nothing is held any more */
    struct io_timer quiet;
    struct loop *loop;
};

/* What -tail, -n and -c say, which the verb has, as it has -f. */
int cli_tail_read(const struct cli *cli, struct cli_tail *ret_tail);

/* Prints what GET PATH (escaped, with a query) streams; the rest of the query says how. */
int cli_tail_stream(struct cli *cli, struct cli_tail *tail, const char *path);

/* --- checks (service.c) --- */

/* What checks of an alloc's services have found, as a table with a heading; nothing if there are
 * none. */
void cli_print_checks(const json_t *results);

/* --- finding (find.c) --- */

/* The alloc whose id begins with PREFIX, whole, or the job; said if there is none or more. */
int cli_find_alloc(struct cli *cli, const char *prefix, json_t **ret_alloc);
int cli_find_job(struct cli *cli, const char *prefix, json_t **ret_job);

/* Of LIST, of what has an id that begins with PREFIX, the only one, or the one with that id whole;
 * NULL if it is neither.  Borrowed. */
json_t *cli_choose(const json_t *list, const char *prefix);

/* Of the list /v1/THINGS, which `cairn GROUP list` shows, the one whose id begins with PREFIX, a
 * new reference; said if there is none or more. */
int cli_find_one(struct cli *cli, const char *group, const char *things, const char *prefix,
                 json_t **ret_one);

/* The namespace that JOB names wins over the flag. */
const char *cli_namespace_of(const struct cli *cli, const json_t *job);

/* ACT on the job that the first argument names, in the job's own namespace. */
int cli_with_job(struct cli *cli, int (*act)(struct cli *cli, json_t *job));

/* The alloc that the first argument names; with the flag -job, which the verb has, one of that job:
 * the newest that runs, or else the newest. */
int cli_find_meant(struct cli *cli, json_t **ret_alloc);

/* The task of ALLOC that ASKED (may be NULL) or the flag -task names, or its only one; NULL after
 * saying what is wrong. */
const char *cli_find_task(const struct cli *cli, const json_t *alloc, const char *asked);

/* --- commands in tasks (exec.c) --- */

/* What a session is asked for with. */
#define CLI_SESSION_FLAGS                                                                          \
    {"i", FLAG_SWITCH, NULL, "pass standard input on, the default; -i=false: there is none"},      \
        {"t", FLAG_SWITCH, NULL, "with a terminal, the default on one; -t=false: without"},        \
    {                                                                                              \
        "e", FLAG_TEXT, "CHARACTER",                                                               \
            "of CHARACTER. at the beginning of a line, which ends the\n"                           \
            "session; default ~, \"none\": there is none"                                          \
    }

/* Where the agent runs what is wanted, on a TERMINAL or not; a status after saying why not. */
typedef int cli_session_path(struct cli *cli, bool terminal, char path[CLI_URL_SIZE]);

/* Runs something in a task with our input and output, as the flags say; its exit status. */
int cli_session(struct cli *cli, cli_session_path *path_of);

void cli_print_allocs(const struct cli *cli, const json_t *allocs);

/* --- output (table.c) --- */

/* Rows of cells, printed with aligned columns; empty cells are "<none>". */
struct cli_table {
    char **items; /* owned cells, row by row */
    size_t count, size;
    size_t columns;
};

void cli_table_row(struct cli_table *table, const char *const *cells);
#define cli_row(table, ...) cli_table_row(table, (const char *const[]){__VA_ARGS__, NULL})

/* Prints and empties the table: columns two spaces apart, or "name   = value". */
void cli_table_print(struct cli_table *table, FILE *to);
void cli_table_print_pairs(struct cli_table *table, FILE *to);

void cli_heading(const struct cli *cli, const char *text); /* behind an empty line */
void cli_title(const struct cli *cli, const char *text);
void cli_print_json(const json_t *value);

/* Parts of `node status`, each behind its heading, nothing if there is nothing: devices.c. */
void cli_print_plugins(const struct cli *cli, const json_t *node);
void cli_print_devices(const struct cli *cli, const json_t *node);
void cli_print_device_stats(const struct cli *cli, const json_t *stats);

/* "MARK<time>: TEXT", at once. */
void cli_progress(const char *mark, const char *text);

/* Values of the API's JSON, as texts that live until the next 64 calls. */
const char *cli_value(const json_t *object, const char *name); /* "" if absent */
const char *cli_short(const struct cli *cli, const char *id);  /* 8 bytes; -verbose: all */
const char *cli_ago(int64_t unix_ns, int64_t now_unix_ns);     /* "1m5s ago" */
const char *cli_time(int64_t unix_ns);                         /* local, to the second */
const char *cli_bytes(uint64_t bytes);                         /* "12 MiB" */
const char *cli_segments(const json_t *topology); /* "rack=r3,zone=a"; a long list is cut */
const char *cli_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- job files (job/job.c) --- */

/* The bytes of the file that the argument AT names, "-" is standard input, a NUL behind them; they
 * are owned by the caller.  A result other than 0 is an exit status. */
int cli_read_input(const struct cli *cli, size_t at, const char **ret_name, char **ret_text,
                   size_t *ret_length);

/* The job of the file that the first argument names, a new reference; "-" is standard input.
 * RET_SOURCE (may be NULL): the file and the values for its variables, a Submission of the API. */
int cli_read_job(const struct cli *cli, json_t **ret_job, json_t **ret_source);

/* The Warnings of ANSWER, if there are any. */
void cli_print_warnings(const json_t *answer);

/* The version NUMBER of JOB, a new reference; said if it is not kept (job/history.c). */
int cli_find_version(struct cli *cli, const json_t *job, int64_t number, json_t **ret_version);

/* DIFF, a JobDiff of the API (job/diff.c); VERBOSE: also the parts of what is new or gone. */
void cli_print_diff(const json_t *diff, bool verbose);

/* --- verbs that show what another verb has found --- */

/* Why allocs of GROUP are not placed, in Nomad's words (v1.1.2 command/monitor.go,
 * formatAllocMetrics). */
void cli_print_failed(const char *group, const json_t *failed);

int cli_show_job(struct cli *cli, const json_t *job);
void cli_print_deployment(const struct cli *cli, const json_t *deployment);
int cli_show_alloc(struct cli *cli, const json_t *alloc);

/* Follows an evaluation until its allocs run, have ended well, or one has failed. */
int cli_follow(struct cli *cli, const char *evaluation, const char *job, const char *namespace,
               bool stopping);

/* --- variables of job files (variables.c) --- */

/* What the environment and the flags -var and -var-file give; RET_GIVEN as a Submission of the API
 * has it, a new reference.  A result other than 0 is an exit status, and there is no RET_GIVEN;
 * RET_VALUES is owned by the caller in any case. */
struct jobspec_values;
int cli_read_variables(const struct cli *cli, struct jobspec_values **ret_values,
                       json_t **ret_given);

#endif
