/*
 * cairn node eligibility and node drain: whether allocs may be placed on the node, and what runs.
 *
 * Follows nomad v2.0.5 command/node_eligibility.go, command/node_drain.go and api/nodes.go.
 */
#include "agent/cli/cli.h"

#include "base/list.h"
#include "io/loop.h"

#include <stdlib.h>
#include <string.h>

static const int64_t default_deadline_ns = (int64_t)3600 * 1000000000;

/* The node of the argument, or of the agent that answers, whole. */
static int find_node(struct cli *cli, json_t **ret_node)
{
    char path[CLI_URL_SIZE];
    const char *prefix = cli_argument(cli, 0);
    bool self = cli_switch(cli, "self");
    json_t *nodes;

    if (self == (prefix != NULL))
        return cli_fail(CLI_USAGE, "give the node's id, or -self, and not both");
    int status =
        cli_get(cli, cli_path(cli, path, "/v1/nodes?prefix=%s", self ? "" : prefix), &nodes, NULL);
    if (status != 0)
        return status;
    const char *id = cli_value(json_array_get(nodes, 0), "ID");
    if (json_array_size(nodes) == 0)
        status = cli_fail(CLI_FAILED, "no node has an id that begins with \"%s\"", prefix);
    else
        status = cli_get(cli, cli_path(cli, path, "/v1/node/%s", id), ret_node, NULL);
    json_decref(nodes);
    return status;
}

/* --- eligibility --- */

static const struct cli_flag eligibility_flags[] = {
    {"enable", FLAG_SWITCH, NULL, "allocs may be placed"},
    {"disable", FLAG_SWITCH, NULL, "none is placed; what runs goes on"},
    {"self", FLAG_SWITCH, NULL, "the node of the agent that answers"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int run_eligibility(struct cli *cli)
{
    bool enable = cli_switch(cli, "enable");
    char path[CLI_URL_SIZE];
    json_t *node, *answer;

    if (enable == cli_switch(cli, "disable"))
        return cli_fail(CLI_USAGE, "give either -enable or -disable");
    int status = find_node(cli, &node);
    if (status != 0)
        return status;
    const char *id = cli_value(node, "ID");
    json_t *body =
        json_pack("{s:s, s:s}", "NodeID", id, "Eligibility", enable ? "eligible" : "ineligible");
    status = cli_put(cli, cli_path(cli, path, "/v1/node/%s/eligibility", id), body, &answer);
    json_decref(body);
    if (status == 0) {
        if (cli->json)
            cli_print_json(answer);
        else
            (void)printf("Node \"%s\" scheduling eligibility set: %s for scheduling\n", id,
                         enable ? "eligible" : "ineligible");
        json_decref(answer);
    }
    json_decref(node);
    return status;
}

const struct cli_verb cli_node_eligibility = {
    .group = "node",
    .name = "eligibility",
    .arguments = "[ID]",
    .max = 1,
    .summary = "Say whether allocs may be placed on the node",
    .help = "  What runs goes on.  What is missing waits until the node is eligible again.\n\n"
            "    $ cairn node eligibility -disable -self",
    .flags = eligibility_flags,
    .run = run_eligibility,
};

/* --- drain: watching --- */

static void say(const char *text)
{
    (void)printf("%s: %s\n", cli_time(loop_now_unix_ns()), text);
    (void)fflush(stdout); /* progress is for now */
}

struct seen {
    char id[UUID_TEXT_SIZE];
    char status[16];
};

struct watch {
    struct cli *cli;
    const char *node;
    struct {
        struct seen *items;
        size_t count, size;
    } seen;
};

static void look_at(struct watch *watch, const json_t *alloc)
{
    const char *id = cli_value(alloc, "ID"), *status = cli_value(alloc, "ClientStatus");
    struct seen *seen = NULL;

    for (size_t i = 0; i < watch->seen.count; i++) {
        if (text_equal(watch->seen.items[i].id, id))
            seen = &watch->seen.items[i];
    }
    if (seen == NULL) {
        seen = list_more(&watch->seen);
        *seen = (struct seen){0};
        (void)text_copy(seen->id, sizeof(seen->id), id); /* a UUID */
    } else if (!text_equal(seen->status, status)) {
        say(cli_format("Alloc \"%s\" status %s -> %s", id, seen->status, status));
    }
    (void)text_copy(seen->status, sizeof(seen->status), status); /* they are short */
}

/* Until the node is not drained any more. */
static int watch_drain(struct watch *watch)
{
    char path[CLI_URL_SIZE];
    uint64_t index = 0;
    bool drains = true;
    int status = 0;

    while (status == 0 && drains) {
        json_t *node = NULL, *allocs = NULL, *alloc;
        const char *since = cli_format("%llu", (unsigned long long)index);
        size_t at;

        status =
            cli_get(watch->cli,
                    cli_path(watch->cli, path, "/v1/node/%s?index=%s&wait=60s", watch->node, since),
                    &node, &index);
        drains = json_is_object(json_object_get(node, "DrainStrategy"));
        json_decref(node);
        if (status == 0)
            status = cli_get(watch->cli,
                             cli_path(watch->cli, path, "/v1/node/%s/allocations", watch->node),
                             &allocs, NULL);
        json_array_foreach(allocs, at, alloc) look_at(watch, alloc);
        json_decref(allocs);
    }
    if (status == 0)
        say(cli_format("Drain complete for node %s", watch->node));
    return status;
}

static int monitor(struct cli *cli, const char *node)
{
    struct watch watch = {.cli = cli, .node = node};
    int status = watch_drain(&watch);

    free(watch.seen.items);
    return status;
}

/* --- drain: asking --- */

static const struct cli_flag drain_flags[] = {
    {"enable", FLAG_SWITCH, NULL, "end what runs, and place nothing more"},
    {"disable", FLAG_SWITCH, NULL, "place allocs again, and first what was ended"},
    {"monitor", FLAG_SWITCH, NULL, "only watch a drain that is under way"},
    {"deadline", FLAG_TEXT, "DURATION", "by when all has ended; default 1h"},
    {"no-deadline", FLAG_SWITCH, NULL, "wait for batch jobs for as long as they need"},
    {"force", FLAG_SWITCH, NULL, "wait for nobody"},
    {"ignore-system", FLAG_SWITCH, NULL, "leave allocs of system jobs"},
    {"keep-ineligible", FLAG_SWITCH, NULL, "with -disable: nothing is placed yet"},
    {"m", FLAG_TEXT, "MESSAGE", "why, to be read in the node's last drain"},
    {"detach", FLAG_SWITCH, NULL, "do not wait for the end of the drain"},
    {"self", FLAG_SWITCH, NULL, "the node of the agent that answers"},
    {"yes", FLAG_SWITCH, NULL, "also if only the beginning of the id was given"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int check_switches(const struct cli *cli)
{
    bool enable = cli_switch(cli, "enable"), disable = cli_switch(cli, "disable");
    bool deadline = cli_text(cli, "deadline", NULL) != NULL;
    bool force = cli_switch(cli, "force"), endless = cli_switch(cli, "no-deadline");

    if (enable + disable + cli_switch(cli, "monitor") != 1)
        return cli_fail(CLI_USAGE, "give one of -enable, -disable and -monitor");
    if (!enable && (deadline || force || endless || cli_switch(cli, "ignore-system")))
        return cli_fail(CLI_USAGE, "how a node is drained can be said with -enable only");
    if (deadline + force + endless > 1)
        return cli_fail(CLI_USAGE, "give at most one of -deadline, -no-deadline and -force");
    if (!disable && cli_switch(cli, "keep-ineligible"))
        return cli_fail(CLI_USAGE, "-keep-ineligible goes with -disable");
    return 0;
}

static int read_deadline(const struct cli *cli, int64_t *ret_ns)
{
    const char *text = cli_text(cli, "deadline", NULL);

    *ret_ns = cli_switch(cli, "force")         ? -1000000000
              : cli_switch(cli, "no-deadline") ? 0
                                               : default_deadline_ns;
    if (text != NULL && (!text_to_duration_ns(text, ret_ns) || *ret_ns <= 0))
        return cli_fail(CLI_USAGE, "-deadline must be a duration above 0, as 30m: \"%s\"", text);
    return 0;
}

/* What was said of the drain that ends goes on with what is said of its end. */
static json_t *meta_of(const struct cli *cli, const json_t *node, bool enable)
{
    const json_t *before = json_object_get(json_object_get(node, "LastDrain"), "Meta");
    const char *message = cli_text(cli, "m", NULL);
    json_t *meta = enable || before == NULL ? json_object() : json_deep_copy(before);

    if (message != NULL)
        (void)json_object_set_new(meta, enable ? "message" : "cancel_message",
                                  json_string(message)); /* no UTF-8: without it */
    return meta;
}

static int ask(struct cli *cli, const json_t *node, int64_t deadline_ns)
{
    bool enable = cli_switch(cli, "enable");
    const char *id = cli_value(node, "ID");
    char path[CLI_URL_SIZE];
    json_t *answer;
    json_t *spec = enable ? json_pack("{s:I, s:b}", "Deadline", (json_int_t)deadline_ns,
                                      "IgnoreSystemJobs", cli_switch(cli, "ignore-system"))
                          : json_null();
    json_t *body =
        json_pack("{s:s, s:o, s:b, s:o}", "NodeID", id, "DrainSpec", spec, "MarkEligible",
                  !cli_switch(cli, "keep-ineligible"), "Meta", meta_of(cli, node, enable));

    int status = cli_put(cli, cli_path(cli, path, "/v1/node/%s/drain", id), body, &answer);
    json_decref(body);
    if (status != 0)
        return status;
    if (cli->json)
        cli_print_json(answer);
    else if (!enable || cli_switch(cli, "detach"))
        (void)printf("Node \"%s\" drain strategy %s\n", id, enable ? "set" : "unset");
    else
        say(cli_format("Node \"%s\" drain strategy set", id));
    json_decref(answer);
    return 0;
}

static int run_drain(struct cli *cli)
{
    int64_t deadline_ns;
    json_t *node;
    int status = check_switches(cli);

    if (status == 0)
        status = read_deadline(cli, &deadline_ns);
    if (status == 0)
        status = find_node(cli, &node);
    if (status != 0)
        return status;
    const char *id = cli_value(node, "ID"), *given = cli_argument(cli, 0);
    bool watches = cli_switch(cli, "monitor");
    if (given != NULL && !watches && !text_equal(given, id) && !cli_switch(cli, "yes"))
        status = cli_fail(CLI_USAGE, "did you mean node \"%s\"? Give its whole id, or -yes", id);
    else if (watches && !json_is_object(json_object_get(node, "DrainStrategy")))
        (void)puts("No drain strategy set");
    else if (!watches)
        status = ask(cli, node, deadline_ns);
    watches = watches ? json_is_object(json_object_get(node, "DrainStrategy"))
                      : cli_switch(cli, "enable") && !cli_switch(cli, "detach") && !cli->json;
    if (status == 0 && watches)
        status = monitor(cli, id);
    json_decref(node);
    return status;
}

const struct cli_verb cli_node_drain = {
    .group = "node",
    .name = "drain",
    .arguments = "[ID]",
    .max = 1,
    .summary = "End what runs on the node, and place nothing until it is eligible again",
    .help = "  Services end at once, batch jobs when their work is done, system jobs and storage\n"
            "  plugins last; what is left when the deadline is over ends then.\n\n"
            "    $ cairn node drain -enable -self -deadline 30m -m \"new disk\"\n"
            "    $ cairn node drain -disable -self",
    .flags = drain_flags,
    .run = run_drain,
};
