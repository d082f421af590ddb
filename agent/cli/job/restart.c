/*
 * cairn job restart: the allocs of a job again, so many at a time; each batch when the one before
 * runs.
 *
 * In place their tasks are restarted; or they are stopped, and others take their places.  Nobody
 * is asked for anything but what the API tells of each alloc, with blocking queries.  Ctrl-C ends
 * nothing by itself: half of a job would be restarted, so somebody at a terminal is asked, and no
 * alloc is told anything meanwhile.  Follows nomad v2.0.5 command/job_restart.go.
 */
#include "agent/cli/cli.h"

#include "base/list.h"
#include "io/loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_SIZE = 64 };

#define WAIT_NS_MAX ((int64_t)24 * 3600 * 1000000000)

static const struct cli_flag restart_flags[] = {
    {"all-tasks", FLAG_SWITCH, NULL, "also those that have ended, all in lifecycle order"},
    {"batch-size", FLAG_TEXT, "N|N%", "so many allocs at once, or of a hundred; default 1"},
    {"batch-wait", FLAG_TEXT, "DURATION|ask", "between two batches; ask: ask before each"},
    {"group", FLAG_TEXT, "GROUP", "only allocs of this one; may be given often"},
    {"no-shutdown-delay", FLAG_SWITCH, NULL, "with -reschedule: wait for no shutdown_delay"},
    {"on-error", FLAG_TEXT, "ask|fail", "when a batch fails; default ask, where somebody can be"},
    {"reschedule", FLAG_SWITCH, NULL, "stop them, and wait for those that take their places"},
    {"task", FLAG_TEXT, "TASK", "only this one; may be given often"},
    {"yes", FLAG_SWITCH, NULL, "ask nothing and go on"},
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

struct restart {
    struct cli *cli;
    const json_t *job;
    json_t *allocs; /* to be restarted, entries of a list; owned */
    size_t batch;
    int64_t wait_ns;
    bool ask_each, ask_on_error, fail_on_error;
    bool lasting; /* what failed last will fail again */
    int worst;    /* of all batches */
};

/* --- what is asked for --- */

static int read_batch_size(struct restart *restart)
{
    const char *text = cli_text(restart->cli, "batch-size", "1");
    size_t length = strlen(text), count = json_array_size(restart->allocs);
    bool percent = text_ends_with(text, "%");
    char number[16];
    int64_t size;

    if (length - percent >= sizeof(number))
        return cli_fail(CLI_USAGE, "-batch-size is a number or a percentage, not \"%.40s\"", text);
    memcpy(number, text, length - percent);
    number[length - percent] = '\0';
    if (!text_to_i64(number, &size) || size <= 0 || size > 1000000)
        return cli_fail(CLI_USAGE, "-batch-size is a number above 0 or a percentage, not \"%s\"",
                        text);
    restart->batch = percent ? (count * (size_t)size + 99) / 100 : (size_t)size;
    return CLI_OK;
}

static int read_flags(struct restart *restart)
{
    struct cli *cli = restart->cli;
    const char *wait = cli_text(cli, "batch-wait", "0s"), *error = cli_text(cli, "on-error", NULL);
    bool asks = !cli_switch(cli, "yes"), somebody = isatty(STDIN_FILENO) == 1;

    restart->ask_each = asks && text_equal(wait, "ask");
    if (!text_equal(wait, "ask") && (!text_to_duration_ns(wait, &restart->wait_ns) ||
                                     restart->wait_ns < 0 || restart->wait_ns > WAIT_NS_MAX))
        return cli_fail(CLI_USAGE, "-batch-wait is \"ask\" or a duration of up to a day: \"%.40s\"",
                        wait);
    if (error != NULL && !text_equal(error, "ask") && !text_equal(error, "fail"))
        return cli_fail(CLI_USAGE, "-on-error is \"ask\" or \"fail\": \"%.40s\"", error);
    restart->fail_on_error = error != NULL ? text_equal(error, "fail") : asks && !somebody;
    restart->ask_on_error = asks && (error == NULL ? somebody : text_equal(error, "ask"));
    if (!somebody && (restart->ask_each || restart->ask_on_error))
        return cli_fail(CLI_USAGE, "nobody can be asked here: standard input is no terminal; "
                                   "use -yes, or other values of -batch-wait and -on-error");
    if (cli_text(cli, "task", NULL) != NULL &&
        (cli_switch(cli, "all-tasks") || cli_switch(cli, "reschedule")))
        return cli_fail(CLI_USAGE, "-task cannot be used with -all-tasks or -reschedule");
    return CLI_OK;
}

/* ALLOC runs, nobody has its place, and it is one of those that are asked for. */
static bool is_meant(const struct cli *cli, const json_t *alloc)
{
    const char *task;
    json_t *state;
    bool any = false;

    json_object_foreach(json_object_get(alloc, "TaskStates"), task, state) any =
        any || cli_is_asked_for(cli, "task", task);
    return any && text_equal(cli_value(alloc, "DesiredStatus"), "run") &&
           text_equal(cli_value(alloc, "ClientStatus"), "running") &&
           *cli_value(alloc, "NextAllocation") == '\0' &&
           cli_is_asked_for(cli, "group", cli_value(alloc, "TaskGroup"));
}

static int read_allocs(struct restart *restart)
{
    char path[CLI_URL_SIZE];
    json_t *list, *alloc;
    size_t at;
    int status = cli_get(
        restart->cli,
        cli_path(restart->cli, path, "/v1/job/%s/allocations", cli_value(restart->job, "ID")),
        &list, NULL);

    if (status != 0)
        return status;
    restart->allocs = json_array();
    json_array_foreach(list, at, alloc)
    {
        if (is_meant(restart->cli, alloc))
            check(json_array_append(restart->allocs, alloc) == 0);
    }
    json_decref(list);
    return CLI_OK;
}

/* Both would be in each other's way. */
static int check_deployments(struct restart *restart)
{
    char path[CLI_URL_SIZE];
    json_t *newest;
    int status = cli_get(
        restart->cli,
        cli_path(restart->cli, path, "/v1/job/%s/deployment", cli_value(restart->job, "ID")),
        &newest, NULL);

    if (status != 0)
        return status;
    const char *is = cli_value(newest, "Status");
    if (text_equal(is, "running") || text_equal(is, "paused")) {
        restart->lasting = true;
        status = cli_fail(CLI_FAILED, "deployment \"%s\" is %s",
                          cli_short(restart->cli, cli_value(newest, "ID")), is);
    }
    json_decref(newest);
    return status;
}

/* --- one alloc --- */

static bool is_over(const json_t *alloc)
{
    const char *status = cli_value(alloc, "ClientStatus");

    return text_equal(status, "complete") || text_equal(status, "failed") ||
           text_equal(status, "lost");
}

/* The alloc ID once it has changed since INDEX, a new reference. */
static int await(struct cli *cli, const char *id, uint64_t *index, json_t **ret_alloc)
{
    char path[CLI_URL_SIZE];

    return cli_get(cli,
                   cli_path(cli, path, "/v1/allocation/%s?index=%s&wait=60s", id,
                            cli_format("%llu", (unsigned long long)*index)),
                   ret_alloc, index);
}

static int put_restart(struct restart *restart, const json_t *alloc, const char *task)
{
    struct cli *cli = restart->cli;
    char path[CLI_URL_SIZE];
    json_t *answer;
    json_t *body = json_pack("{s:s, s:b}", "TaskName", task, "AllTasks",
                             task[0] == '\0' && cli_switch(cli, "all-tasks"));

    check(body != NULL);
    int status = cli_put(
        cli, cli_path(cli, path, "/v1/client/allocation/%s/restart", cli_value(alloc, "ID")), body,
        &answer);
    json_decref(body);
    if (status == 0)
        json_decref(answer);
    return status;
}

static int restart_one(struct restart *restart, const json_t *alloc)
{
    struct cli *cli = restart->cli;
    const char *id = cli_short(cli, cli_value(alloc, "ID")), *task;
    const char *group = cli_value(alloc, "TaskGroup");
    const json_t *states = json_object_get(alloc, "TaskStates");
    int status = 0;

    if (cli_text(cli, "task", NULL) == NULL) {
        cli_progress("    ",
                     cli_format("Restarting %s tasks in allocation \"%s\" for group \"%s\"",
                                cli_switch(cli, "all-tasks") ? "all" : "running", id, group));
        return put_restart(restart, alloc, "");
    }
    for (size_t i = 0; status == 0 && (task = cli_text_again(cli, "task", i)) != NULL; i++) {
        if (json_object_get(states, task) == NULL)
            continue;
        cli_progress("    ",
                     cli_format("Restarting task \"%s\" in allocation \"%s\" for group \"%s\"",
                                task, id, group));
        status = put_restart(restart, alloc, task);
    }
    return status;
}

/* A stopped alloc of a system job is replaced when the whole job is looked at again. */
static int evaluate(struct restart *restart)
{
    struct cli *cli = restart->cli;
    const char *id = cli_value(restart->job, "ID");
    char path[CLI_URL_SIZE];
    json_t *answer;
    json_t *body = json_pack("{s:s, s:{s:b}}", "JobID", id, "EvalOptions", "ForceReschedule", 1);

    check(body != NULL);
    int status = cli_put(cli, cli_path(cli, path, "/v1/job/%s/evaluate", id), body, &answer);
    json_decref(body);
    if (status == 0)
        json_decref(answer);
    return status;
}

static int stop_one(struct restart *restart, const json_t *alloc)
{
    struct cli *cli = restart->cli;
    char path[CLI_URL_SIZE];
    json_t *answer;

    cli_progress("    ",
                 cli_format("Rescheduling allocation \"%s\" for group \"%s\"",
                            cli_short(cli, cli_value(alloc, "ID")), cli_value(alloc, "TaskGroup")));
    int status = cli_put(cli,
                         cli_path(cli, path, "/v1/allocation/%s/stop?no_shutdown_delay=%s",
                                  cli_value(alloc, "ID"),
                                  cli_switch(cli, "no-shutdown-delay") ? "true" : "false"),
                         NULL, &answer);
    if (status != 0)
        return status;
    json_decref(answer);
    return text_equal(cli_value(restart->job, "Type"), "system") ? evaluate(restart) : 0;
}

/* Each task of BEFORE that ran, and was to be restarted, runs again in NOW, or has ended since. */
static bool has_restarted(const struct cli *cli, const json_t *before, const json_t *now)
{
    const char *task;
    json_t *was;

    json_object_foreach(json_object_get(before, "TaskStates"), task, was)
    {
        const json_t *is = json_object_get(json_object_get(now, "TaskStates"), task);
        json_int_t first = json_integer_value(json_object_get(was, "Restarts"));

        if (!text_equal(cli_value(was, "State"), "running") || !cli_is_asked_for(cli, "task", task))
            continue;
        if (json_integer_value(json_object_get(is, "Restarts")) <= first ||
            text_equal(cli_value(is, "State"), "pending"))
            return false;
    }
    return true;
}

static int await_restarted(struct restart *restart, const json_t *before)
{
    uint64_t index = 0;
    json_t *now = NULL;
    int status;

    do {
        json_decref(now);
        now = NULL;
        status = await(restart->cli, cli_value(before, "ID"), &index, &now);
    } while (status == 0 && !is_over(now) && !has_restarted(restart->cli, before, now));
    if (status == 0 && !has_restarted(restart->cli, before, now))
        status = cli_fail(CLI_FAILED, "allocation \"%s\" is %s: %s",
                          cli_short(restart->cli, cli_value(before, "ID")),
                          cli_value(now, "ClientStatus"), cli_value(now, "ClientDescription"));
    json_decref(now);
    return status;
}

/* Nothing will take the place of BEFORE for now: something waits for room. */
static int check_room(struct restart *restart, const json_t *before)
{
    char path[CLI_URL_SIZE];
    json_t *list, *evaluation;
    size_t at;
    int status = cli_get(
        restart->cli,
        cli_path(restart->cli, path, "/v1/job/%s/evaluations", cli_value(restart->job, "ID")),
        &list, NULL);

    if (status != 0)
        return status;
    json_array_foreach(list, at, evaluation)
    {
        const json_t *failed = json_object_get(json_object_get(evaluation, "FailedTGAllocs"),
                                               cli_value(before, "TaskGroup"));

        if (failed == NULL || !text_equal(cli_value(evaluation, "Status"), "blocked"))
            continue;
        restart->lasting = true;
        status = cli_fail(CLI_FAILED, "evaluation \"%s\" cannot place group \"%s\":",
                          cli_short(restart->cli, cli_value(evaluation, "ID")),
                          cli_value(before, "TaskGroup"));
        cli_print_failed(cli_value(before, "TaskGroup"), failed);
        break;
    }
    json_decref(list);
    return status;
}

/* Who takes the place of BEFORE may fail, and be replaced in turn. */
static int await_replaced(struct restart *restart, const json_t *before)
{
    struct cli *cli = restart->cli;
    char id[UUID_TEXT_SIZE];
    uint64_t index = 0;
    bool runs = false;
    int status = 0;

    (void)text_copy(id, sizeof(id), cli_value(before, "ID")); /* else nobody has such an id */
    while (status == 0 && !runs) {
        json_t *now;
        const char *next;

        status = await(cli, id, &index, &now);
        if (status != 0)
            return status;
        next = cli_value(now, "NextAllocation");
        runs = !text_equal(id, cli_value(before, "ID")) &&
               text_equal(cli_value(now, "ClientStatus"), "running");
        if (runs) {
            cli_progress("    ", cli_format("Allocation \"%s\" is running", cli_short(cli, id)));
        } else if (next[0] != '\0') {
            cli_progress("    ", cli_format("Allocation \"%s\" replaced by \"%s\"",
                                            cli_short(cli, id), cli_short(cli, next)));
            (void)text_copy(id, sizeof(id), next);
            index = 0;
        } else {
            status = check_room(restart, before);
        }
        if (status == 0 && !runs && next[0] == '\0' && is_over(now) &&
            *cli_value(now, "FollowupEvalID") == '\0' && !text_equal(id, cli_value(before, "ID")))
            status = cli_fail(CLI_FAILED, "allocation \"%s\" is %s", cli_short(cli, id),
                              cli_value(now, "ClientStatus"));
        json_decref(now);
    }
    return status;
}

/* --- somebody at the terminal --- */

static void wake(int signal)
{
    (void)signal; /* ppoll() has been interrupted: that is all */
}

/* What somebody types for QUESTION, without spaces around it; false: they type no more, or Ctrl-C,
 * which is blocked but for this. */
static bool ask(const char *question, const char *answers, char ret_answer[ANSWER_SIZE])
{
    struct sigaction act = {.sa_handler = wake}, before;
    struct pollfd terminal = {.fd = STDIN_FILENO, .events = POLLIN};
    sigset_t mask;
    char line[256];
    ssize_t got = -1;

    (void)printf("==> %s: %s [%s] ", cli_time(loop_now_unix_ns()), question, answers);
    (void)fflush(stdout);
    check(sigprocmask(SIG_SETMASK, NULL, &mask) == 0);
    check(sigdelset(&mask, SIGINT) == 0);
    check(sigaction(SIGINT, &act, &before) == 0);
    if (ppoll(&terminal, 1, NULL, &mask) == 1)
        got = read(STDIN_FILENO, line, sizeof(line) - 1);
    check(sigaction(SIGINT, &before, NULL) == 0);
    if (got <= 0) {
        (void)putchar('\n');
        return false;
    }
    line[got] = '\0';
    const char *start = line + strspn(line, " \t");
    size_t length = strcspn(start, "\n");
    while (length > 0 && strchr(" \t\r", start[length - 1]) != NULL)
        length--;
    if (!text_format(ret_answer, ANSWER_SIZE, "%.*s", (int)length, start))
        (void)text_copy(ret_answer, ANSWER_SIZE, "?"); /* nothing that is asked for is so long */
    return true;
}

static bool is_yes(const char *answer)
{
    return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

static bool is_no(const char *answer)
{
    return strcasecmp(answer, "n") == 0 || strcasecmp(answer, "no") == 0;
}

static void say_invalid(const char *answer)
{
    cli_progress("    ", cli_format("Invalid answer \"%s\"", answer));
}

/* An answer may be how long to wait from now on, without any further question. */
static bool is_wait(struct restart *restart, const char *answer)
{
    int64_t wait_ns;

    if (!restart->ask_each || !text_to_duration_ns(answer, &wait_ns) || wait_ns < 0 ||
        wait_ns > WAIT_NS_MAX)
        return false;
    restart->wait_ns = wait_ns;
    restart->ask_each = false;
    return true;
}

/* Whether the next batch is to be restarted after one that ended with STATUS. */
static bool is_agreed(struct restart *restart, int status)
{
    const char *question = status == 0 ? "Proceed with the next batch?"
                           : restart->lasting
                               ? "The same is likely to fail again. Proceed with the next batch?"
                               : "Proceed with the next batch in spite of that?";
    char answers[40], answer[ANSWER_SIZE];

    check(text_format(answers, sizeof(answers), "%s%s", status == 0 ? "Y/n" : "y/N",
                      restart->ask_each ? "/<how long to wait>" : ""));
    while (ask(question, answers, answer)) {
        if (answer[0] == '\0')
            return status == 0;
        if (is_yes(answer) || is_no(answer))
            return is_yes(answer);
        if (is_wait(restart, answer))
            return true;
        say_invalid(answer);
    }
    return false;
}

static void on_interrupt(void *ctx, int signal)
{
    struct restart *restart = ctx;
    char answer[ANSWER_SIZE];
    bool ends = isatty(STDIN_FILENO) != 1, answered = ends;
    (void)signal;

    while (!answered) {
        answered = true;
        ends = !ask("Interrupted: no more allocs are restarted. End here?", "y/N", answer) ||
               is_yes(answer);
        if (!ends && answer[0] != '\0' && !is_no(answer)) {
            answered = false;
            say_invalid(answer);
        }
    }
    cli_progress("==> ", ends ? "Job restart canceled" : "Going on");
    if (!ends)
        return;
    exit(restart->worst); /* what is asked for just now may take minutes */
}

/* A Ctrl-C that came since the loop ran last. */
static void look_for_interrupt(struct restart *restart)
{
    const struct timespec now = {0, 0};
    sigset_t set;

    check(sigemptyset(&set) == 0);
    check(sigaddset(&set, SIGINT) == 0);
    if (sigtimedwait(&set, NULL, &now) == SIGINT)
        on_interrupt(restart, SIGINT);
}

static void on_pause_over(struct io_timer *timer)
{
    loop_stop(timer->ctx);
}

static void pause_between(struct restart *restart)
{
    struct io_timer timer = {0};
    char text[32];

    if (restart->wait_ns == 0)
        return;
    text_from_duration_ns(text, sizeof(text), restart->wait_ns);
    cli_progress("==> ", cli_format("Waiting %s before restarting the next batch", text));
    io_timer_start(restart->cli->loop, &timer,
                   loop_now_ms() + (uint64_t)(restart->wait_ns + 999999) / 1000000, on_pause_over,
                   restart->cli->loop);
    loop_run(restart->cli->loop);
}

/* --- batches --- */

/* COUNT allocs from FIRST on: all are told, and then waited for. */
static int run_batch(struct restart *restart, size_t first, size_t count)
{
    bool stops = cli_switch(restart->cli, "reschedule");
    int status = check_deployments(restart);
    size_t told = 0;

    for (; status == 0 && told < count; told++) {
        const json_t *alloc = json_array_get(restart->allocs, first + told);

        look_for_interrupt(restart);
        status = stops ? stop_one(restart, alloc) : restart_one(restart, alloc);
    }
    for (size_t i = 0; i < told && (status == 0 || i + 1 < told); i++) {
        const json_t *alloc = json_array_get(restart->allocs, first + i);
        int one = stops ? await_replaced(restart, alloc) : await_restarted(restart, alloc);
        status = status == 0 ? one : status;
    }
    return status;
}

static int run_batches(struct restart *restart)
{
    static const int signals[] = {SIGINT, 0};
    size_t count = json_array_size(restart->allocs);

    loop_on_signals(restart->cli->loop, signals, on_interrupt, restart);
    cli_progress("==> ",
                 cli_format("Restarting %zu %s", count, count == 1 ? "allocation" : "allocations"));
    for (size_t at = 0; at < count; at += restart->batch) {
        size_t left = count - at, size = left < restart->batch ? left : restart->batch;
        bool asks = restart->ask_each;

        restart->lasting = restart->cli->was_denied = false;
        int status = run_batch(restart, at, size);
        restart->lasting = restart->lasting || restart->cli->was_denied;
        restart->worst = status != 0 ? status : restart->worst;
        if (at + size == count)
            break;
        if (status != 0) {
            asks = asks || restart->ask_on_error;
            if (restart->fail_on_error || (restart->lasting && !asks)) {
                cli_progress("==> ", "Stopping job restart due to error");
                break;
            }
        }
        if (asks && !is_agreed(restart, status)) {
            cli_progress("==> ", "Job restart canceled");
            return restart->worst;
        }
        pause_between(restart);
    }
    cli_progress("==> ", restart->worst == CLI_OK ? "Job restart finished"
                                                  : "Job restart finished with errors");
    return restart->worst;
}

static int run_of_job(struct restart *restart)
{
    bool stops = cli_switch(restart->cli, "reschedule");
    int status;

    if (stops && text_equal(cli_value(restart->job, "Type"), "sysbatch"))
        return cli_fail(CLI_FAILED, "jobs of type \"sysbatch\" are not rescheduled");
    status = read_allocs(restart);
    if (status == 0)
        status = read_batch_size(restart);
    if (status == 0 && json_array_size(restart->allocs) == 0)
        (void)puts("No allocations to restart");
    else if (status == 0)
        status = run_batches(restart);
    json_decref(restart->allocs);
    return status;
}

static int run_restart(struct cli *cli)
{
    struct restart restart = {.cli = cli};
    json_t *job;
    int status = read_flags(&restart);

    if (status == 0)
        status = cli_find_job(cli, cli_argument(cli, 0), &job);
    if (status != 0)
        return status;
    cli->namespace = cli_namespace_of(cli, job);
    restart.job = job;
    status = run_of_job(&restart);
    json_decref(job);
    return status;
}

const struct cli_verb cli_job_restart = {
    .group = "job",
    .name = "restart",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "Restart the allocs of a job, so many at a time",
    .help =
        "  The next batch follows when the one before runs again. The tasks that run are\n"
        "  restarted in place; with -reschedule the allocs are stopped, and others take their\n"
        "  places. Nothing is restarted while a deployment is under way.\n\n"
        "    $ cairn job restart web\n"
        "    $ cairn job restart -batch-size 25% -batch-wait 30s -reschedule -on-error fail web",
    .flags = restart_flags,
    .run = run_restart,
};
