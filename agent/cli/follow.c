/*
 * Following an evaluation: what becomes of the allocs it touched, one line for each change.
 *
 * Waits with blocking queries, so nothing is polled.  In the style of nomad v1.1.2
 * command/monitor.go, but it goes on until the outcome is known, not only the plan.
 */
#include "agent/cli/cli.h"

#include <stdlib.h>
#include <string.h>

struct seen {
    char id[UUID_TEXT_SIZE];
    char status[16];
};

struct follow {
    struct cli *cli;
    const char *evaluation, *job;
    bool stopping;
    json_int_t index; /* of the evaluation: what was there before it is modified by it */
    struct {
        struct seen *items; /* owned */
        size_t count, size;
    } seen;
    size_t waiting, failed; /* of the last look */
};

static struct seen *find_seen(struct follow *follow, const char *id)
{
    for (size_t i = 0; i < follow->seen.count; i++) {
        if (text_equal(follow->seen.items[i].id, id))
            return &follow->seen.items[i];
    }
    struct seen *seen = list_more(&follow->seen);
    *seen = (struct seen){0};
    (void)text_copy(seen->id, sizeof(seen->id), id); /* a UUID */
    return seen;
}

/* The last event of each failed task says why. */
static void explain(const json_t *alloc)
{
    const char *name;
    json_t *state;

    json_object_foreach(json_object_get(alloc, "TaskStates"), name, state)
    {
        const json_t *events = json_object_get(state, "Events"), *told = NULL;
        json_t *event;
        size_t at;

        if (!json_is_true(json_object_get(state, "Failed")))
            continue;
        json_array_foreach(events, at, event)
        {
            if (!text_equal(cli_value(event, "Type"), "Not Restarting") || told == NULL)
                told = event;
        }
        if (told != NULL)
            (void)printf("      task \"%s\": %s: %s\n", name, cli_value(told, "Type"),
                         cli_value(told, "DisplayMessage"));
    }
}

static bool is_over(const char *status)
{
    return text_equal(status, "complete") || text_equal(status, "failed") ||
           text_equal(status, "lost");
}

static void look_at(struct follow *follow, const json_t *alloc)
{
    const char *id = cli_value(alloc, "ID"), *status = cli_value(alloc, "ClientStatus");
    bool ours = text_equal(cli_value(alloc, "EvalID"), follow->evaluation);
    bool failed = ours && text_equal(status, "failed"); /* it is told to end when it is replaced */
    bool stopped = !failed && text_equal(cli_value(alloc, "DesiredStatus"), "stop");

    /* A new version waits for its own allocs and for the end of those it replaces. */
    if (!ours && !stopped)
        return;
    if (stopped ? !is_over(status) : text_equal(status, "pending"))
        follow->waiting++;
    if (!stopped && text_equal(status, "failed"))
        follow->failed++;
    struct seen *seen = find_seen(follow, id);
    if (text_equal(seen->status, status))
        return;
    bool modified = seen->status[0] == '\0' && !stopped &&
                    json_integer_value(json_object_get(alloc, "CreateIndex")) < follow->index;
    if (seen->status[0] == '\0' && !stopped)
        cli_progress("    ",
                     cli_format("Allocation \"%s\" %s: group \"%s\"", cli_short(follow->cli, id),
                                modified ? "modified" : "created", cli_value(alloc, "TaskGroup")));
    else if (seen->status[0] == '\0' && !is_over(status))
        cli_progress("    ", cli_format("Allocation \"%s\" stopping: group \"%s\"",
                                        cli_short(follow->cli, id), cli_value(alloc, "TaskGroup")));
    if (seen->status[0] != '\0' || (!stopped && !modified && !text_equal(status, "pending")))
        cli_progress("    ", cli_format("Allocation \"%s\" status changed: \"%s\" -> \"%s\" (%s)",
                                        cli_short(follow->cli, id),
                                        seen->status[0] != '\0' ? seen->status : "pending", status,
                                        cli_value(alloc, "ClientDescription")));
    if (!stopped && text_equal(status, "failed"))
        explain(alloc);
    (void)text_copy(seen->status, sizeof(seen->status), status); /* they are short */
}

static int look(struct follow *follow, uint64_t *index)
{
    char path[CLI_URL_SIZE];
    json_t *allocs, *alloc;
    size_t at;

    int status = cli_get(follow->cli,
                         cli_path(follow->cli, path, "/v1/job/%s/allocations?index=%s&wait=60s",
                                  follow->job, cli_format("%llu", (unsigned long long)*index)),
                         &allocs, index);
    if (status != 0)
        return status;
    follow->waiting = follow->failed = 0;
    for (at = json_array_size(allocs); at > 0; at--) { /* the oldest first */
        alloc = json_array_get(allocs, at - 1);
        look_at(follow, alloc);
    }
    json_decref(allocs);
    return 0;
}

/* Its index, and whether some of what it was to place waits. */
static int read_evaluation(struct follow *follow, bool *ret_blocked)
{
    char path[CLI_URL_SIZE];
    json_t *answer = NULL;
    int status =
        cli_get(follow->cli, cli_path(follow->cli, path, "/v1/evaluation/%s", follow->evaluation),
                &answer, NULL);

    follow->index = json_integer_value(json_object_get(answer, "CreateIndex"));
    *ret_blocked = answer != NULL && *cli_value(answer, "BlockedEval") != '\0';
    json_decref(answer);
    return status;
}

int cli_follow(struct cli *cli, const char *evaluation, const char *job, const char *namespace,
               bool stopping)
{
    struct follow follow = {.cli = cli, .evaluation = evaluation, .job = job, .stopping = stopping};
    uint64_t index = 0;
    bool blocked = false;

    cli->namespace = namespace;
    cli_progress("==> ", cli_format("Monitoring evaluation \"%s\"", cli_short(cli, evaluation)));
    cli_progress("    ", cli_format("Evaluation triggered by job \"%s\"", job));
    int status = stopping ? 0 : read_evaluation(&follow, &blocked);
    do {
        status = status == 0 ? look(&follow, &index) : status;
    } while (status == 0 && follow.waiting > 0);
    free(follow.seen.items);
    if (status != 0)
        return status;
    if (follow.failed > 0 && !stopping) {
        cli_progress("==> ", cli_format("Evaluation \"%s\" finished, %zu of its allocations failed",
                                        cli_short(cli, evaluation), follow.failed));
        return CLI_UNHEALTHY;
    }
    if (blocked) {
        cli_progress("==> ",
                     cli_format("Evaluation \"%s\" failed to place all allocations; the rest waits "
                                "for room: cairn job status %s",
                                cli_short(cli, evaluation), job));
        return CLI_UNHEALTHY;
    }
    cli_progress("==> ", cli_format("Evaluation \"%s\" finished with status \"complete\"",
                                    cli_short(cli, evaluation)));
    return CLI_OK;
}
