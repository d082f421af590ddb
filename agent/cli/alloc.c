/* cairn alloc: status, restart, signal, stop, fs. */
#include "agent/cli/cli.h"

#include "io/loop.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- status --- */

static const struct cli_flag status_flags[] = {
    {"verbose", FLAG_SWITCH, NULL, "whole ids and exact times"},
    {"short", FLAG_SWITCH, NULL, "tasks in one line each, without events and usage"},
    {"stats", FLAG_SWITCH, NULL, "all that was measured of what tasks use"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

/* The object of LIST that is called NAME, or NULL. */
static const json_t *named(const json_t *list, const char *name)
{
    const json_t *item;
    size_t at;

    json_array_foreach(list, at, item)
    {
        if (text_equal(cli_value(item, "Name"), name))
            return item;
    }
    return NULL;
}

/* The group of ALLOC as its job has it. */
static const json_t *group_of(const json_t *alloc)
{
    const json_t *groups = json_object_get(json_object_get(alloc, "Job"), "TaskGroups");

    return named(groups, cli_value(alloc, "TaskGroup"));
}

/* A task's role in its group, from the job: " (prestart sidecar)", or "". */
static const char *role_of(const json_t *alloc, const char *name)
{
    const json_t *task = named(json_object_get(group_of(alloc), "Tasks"), name);
    const json_t *lifecycle = json_object_get(task, "Lifecycle");
    const char *hook = cli_value(lifecycle, "Hook");
    bool sidecar = json_is_true(json_object_get(lifecycle, "Sidecar"));

    return hook[0] == '\0' ? "" : cli_format(" (%s%s)", hook, sidecar ? " sidecar" : "");
}

/* What the network of a task's own resources was given, "http: 10.0.0.1:8080"; "" if nothing. */
static const char *addresses_of(const json_t *wanted)
{
    static const char *const kinds[] = {"DynamicPorts", "ReservedPorts"};
    const json_t *network = json_array_get(json_object_get(wanted, "Networks"), 0);
    const char *text = "";
    json_t *port;
    size_t at;

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        json_array_foreach(json_object_get(network, kinds[i]), at, port) text =
            cli_format("%s%s%s: %s:%s", text, *text != '\0' ? ", " : "", cli_value(port, "Label"),
                       cli_value(network, "IP"), cli_value(port, "Value"));
    }
    return text;
}

static void print_usage(const json_t *alloc, const json_t *stats, const char *name)
{
    const json_t *wanted = json_object_get(json_object_get(alloc, "TaskResources"), name);
    const json_t *used =
        json_object_get(json_object_get(json_object_get(stats, "Tasks"), name), "ResourceUsage");
    const json_t *cpu = json_object_get(used, "CpuStats");
    const json_t *memory = json_object_get(used, "MemoryStats");
    struct cli_table table = {0};

    if (wanted == NULL)
        return;
    const char *addresses = addresses_of(wanted);
    bool any = *addresses != '\0';
    (void)puts("Task Resources:");
    cli_table_row(&table, (const char *const[]){"CPU", "Memory", any ? "Addresses" : NULL, NULL});
    uint64_t megabytes = (uint64_t)json_integer_value(json_object_get(wanted, "MemoryMB"));
    const char *mhz = cli_value(wanted, "CPU"), *most = cli_bytes(megabytes << 20);
    if (used != NULL) {
        mhz = cli_format("%.0f/%s", json_number_value(json_object_get(cpu, "TotalTicks")), mhz);
        most = cli_format(
            "%s/%s", cli_bytes((uint64_t)json_integer_value(json_object_get(memory, "RSS"))), most);
    }
    cli_table_row(&table, (const char *const[]){cli_format("%s MHz", mhz), most,
                                                any ? addresses : NULL, NULL});
    cli_table_print(&table, stdout);
    (void)puts("");
}

/* What of STATS was measured, and nothing else; nomad v2.0.5 command/alloc_status.go
 * outputVerboseResourceUsage. */
static void print_measured(const char *title, const json_t *stats, bool are_bytes)
{
    const json_t *measured = json_object_get(stats, "Measured"), *name;
    struct cli_table table = {0};
    const char *names[16] = {NULL}, *values[16] = {NULL};
    size_t at;

    json_array_foreach(measured, at, name)
    {
        char member[40];
        const char *from = json_string_value(name);
        size_t used = 0;

        if (at + 1 == COUNT_OF(names) || from == NULL)
            break;
        names[at] = from;
        for (; *from != '\0' && used + 1 < sizeof(member); from++) {
            if (*from != ' ') /* "Max Usage" is MaxUsage */
                member[used++] = *from;
        }
        member[used] = '\0';
        double value = json_number_value(json_object_get(stats, member));
        values[at] = are_bytes                               ? cli_bytes((uint64_t)value)
                     : text_starts_with(member, "Throttled") ? cli_format("%.0f", value)
                                                             : cli_format("%.2f%%", value);
    }
    if (names[0] == NULL)
        return;
    (void)puts(title);
    cli_table_row(&table, names);
    cli_table_row(&table, values);
    cli_table_print(&table, stdout);
    (void)puts("");
}

static void print_all_measured(const json_t *stats, const char *name)
{
    const json_t *used =
        json_object_get(json_object_get(json_object_get(stats, "Tasks"), name), "ResourceUsage");

    print_measured("Memory Stats", json_object_get(used, "MemoryStats"), true);
    print_measured("CPU Stats", json_object_get(used, "CpuStats"), false);
}

static void print_volumes_of(const char *title, const json_t *group, const json_t *mounts,
                             bool of_plugins)
{
    struct cli_table table = {0};
    const json_t *mount;
    bool any = false;
    size_t at;

    json_array_foreach(mounts, at, mount)
    {
        const char *id = cli_value(mount, "Volume");
        const json_t *volume = json_object_get(json_object_get(group, "Volumes"), id);
        bool read_only = json_is_true(json_object_get(mount, "ReadOnly")) ||
                         json_is_true(json_object_get(volume, "ReadOnly"));

        if (text_equal(cli_value(volume, "Type"), "csi") != of_plugins)
            continue;
        if (!any)
            cli_row(&table, "ID", "Read Only", "Destination");
        any = true;
        cli_row(&table, id, read_only ? "true" : "false", cli_value(mount, "Destination"));
    }
    if (!any)
        return;
    (void)puts(title);
    cli_table_print(&table, stdout);
    (void)puts("");
}

/* nomad v2.0.5 command/alloc_status.go outputTaskVolumes, and where they are. */
static void print_volumes(const json_t *alloc, const char *name)
{
    const json_t *group = group_of(alloc);
    const json_t *task = named(json_object_get(group, "Tasks"), name);
    const json_t *mounts = json_object_get(task, "VolumeMounts");

    print_volumes_of("Host Volumes:", group, mounts, false);
    print_volumes_of("CSI Volumes:", group, mounts, true);
}

/* The API's times of tasks are texts; the zero time means "not yet". */
static const char *task_time(const json_t *state, const char *name)
{
    const char *text = cli_value(state, name);

    return text[0] == '\0' || text_starts_with(text, "0001-") ? "N/A" : text;
}

static void print_events(const json_t *state)
{
    const json_t *events = json_object_get(state, "Events");
    struct cli_table table = {0};

    (void)puts("Task Events:");
    cli_row(&table, "Started At", task_time(state, "StartedAt"));
    cli_row(&table, "Finished At", task_time(state, "FinishedAt"));
    cli_row(&table, "Total Restarts", cli_value(state, "Restarts"));
    cli_row(&table, "Last Restart", task_time(state, "LastRestart"));
    cli_table_print_pairs(&table, stdout);
    (void)puts("\nRecent Events:");
    cli_row(&table, "Time", "Type", "Description");
    for (size_t at = json_array_size(events); at > 0; at--) {
        const json_t *event = json_array_get(events, at - 1);

        cli_row(&table, cli_time(json_integer_value(json_object_get(event, "Time"))),
                cli_value(event, "Type"), cli_value(event, "DisplayMessage"));
    }
    cli_table_print(&table, stdout);
}

static bool is_dynamic(const json_t *network, const char *label)
{
    json_t *port;
    size_t at;

    json_array_foreach(json_object_get(network, "DynamicPorts"), at, port)
    {
        if (text_equal(cli_value(port, "Label"), label))
            return true;
    }
    return false;
}

/* nomad v2.0.5 command/alloc_status.go formatAllocNetworkInfo, but that calls all ports dynamic. */
static void print_addresses(const json_t *alloc)
{
    const json_t *shared = json_object_get(json_object_get(alloc, "AllocatedResources"), "Shared");
    const json_t *ports = json_object_get(shared, "Ports");
    const json_t *network = json_array_get(json_object_get(shared, "Networks"), 0), *port;
    const char *mode = cli_value(network, "Mode");
    struct cli_table table = {0};
    size_t at;

    if (json_array_size(ports) == 0)
        return;
    (void)printf("\nAllocation Addresses%s:\n",
                 *mode != '\0' ? cli_format(" (mode = \"%s\")", mode) : "");
    cli_row(&table, "Label", "Dynamic", "Address");
    json_array_foreach(ports, at, port)
    {
        const char *ip = cli_value(port, "HostIP");
        const char *to = cli_value(port, "To");
        bool mapped = json_integer_value(json_object_get(port, "To")) > 0;

        cli_row(&table, cli_format("*%s", cli_value(port, "Label")),
                is_dynamic(network, cli_value(port, "Label")) ? "yes" : "no",
                cli_format(strchr(ip, ':') != NULL ? "[%s]:%s%s%s" : "%s:%s%s%s", ip,
                           cli_value(port, "Value"), mapped ? " -> " : "", mapped ? to : ""));
    }
    cli_table_print(&table, stdout);
}

static void print_alloc(const struct cli *cli, const json_t *alloc)
{
    struct cli_table table = {0};
    int64_t now = loop_now_unix_ns();
    int64_t created = json_integer_value(json_object_get(alloc, "CreateTime"));
    int64_t modified = json_integer_value(json_object_get(alloc, "ModifyTime"));
    bool verbose = cli_switch(cli, "verbose");
    size_t tries =
        json_array_size(json_object_get(json_object_get(alloc, "RescheduleTracker"), "Events"));

    cli_row(&table, "ID", cli_value(alloc, "ID"));
    cli_row(&table, "Eval ID", cli_short(cli, cli_value(alloc, "EvalID")));
    cli_row(&table, "Name", cli_value(alloc, "Name"));
    cli_row(&table, "Node ID", cli_short(cli, cli_value(alloc, "NodeID")));
    cli_row(&table, "Node Name", cli_value(alloc, "NodeName"));
    cli_row(&table, "Job ID", cli_value(alloc, "JobID"));
    cli_row(&table, "Job Version", cli_value(json_object_get(alloc, "Job"), "Version"));
    cli_row(&table, "Client Status", cli_value(alloc, "ClientStatus"));
    cli_row(&table, "Client Description", cli_value(alloc, "ClientDescription"));
    cli_row(&table, "Desired Status", cli_value(alloc, "DesiredStatus"));
    cli_row(&table, "Desired Description", cli_value(alloc, "DesiredDescription"));
    if (tries > 0)
        cli_row(&table, "Reschedule Attempts", cli_format("%zu", tries));
    if (*cli_value(alloc, "PreviousAllocation") != '\0')
        cli_row(&table, "Previous Alloc ID",
                cli_short(cli, cli_value(alloc, "PreviousAllocation")));
    if (*cli_value(alloc, "NextAllocation") != '\0')
        cli_row(&table, "Replacement Alloc ID", cli_short(cli, cli_value(alloc, "NextAllocation")));
    if (*cli_value(alloc, "FollowupEvalID") != '\0')
        cli_row(&table, "Reschedule Eval ID", cli_short(cli, cli_value(alloc, "FollowupEvalID")));
    cli_row(&table, "Created", verbose ? cli_time(created) : cli_ago(created, now));
    cli_row(&table, "Modified", verbose ? cli_time(modified) : cli_ago(modified, now));
    cli_table_print_pairs(&table, stdout);
    print_addresses(alloc);
}

static void print_tasks_short(const struct cli *cli, const json_t *alloc)
{
    struct cli_table table = {0};
    const char *name;
    json_t *state;

    cli_heading(cli, "Tasks");
    cli_row(&table, "Name", "State", "Last Event", "Time");
    json_object_foreach(json_object_get(alloc, "TaskStates"), name, state)
    {
        const json_t *events = json_object_get(state, "Events");
        const json_t *last = json_array_get(events, json_array_size(events) - 1);

        cli_row(&table, name, cli_value(state, "State"), cli_value(last, "Type"),
                cli_time(json_integer_value(json_object_get(last, "Time"))));
    }
    cli_table_print(&table, stdout);
}

int cli_show_alloc(struct cli *cli, const json_t *alloc)
{
    char path[CLI_URL_SIZE];
    json_t *stats = NULL, *checks = NULL, *state;
    const char *name;
    int status = 0;

    print_alloc(cli, alloc);
    if (text_equal(cli_value(alloc, "ClientStatus"), "running")) {
        const char *id = cli_value(alloc, "ID");
        status =
            cli_get(cli, cli_path(cli, path, "/v1/client/allocation/%s/checks", id), &checks, NULL);
        if (status == 0)
            status = cli_get(cli, cli_path(cli, path, "/v1/client/allocation/%s/stats", id), &stats,
                             NULL);
        cli_print_checks(checks);
        json_decref(checks);
    }
    json_object_foreach(json_object_get(alloc, "TaskStates"), name, state)
    {
        cli_heading(cli, cli_format("Task \"%s\"%s is \"%s\"", name, role_of(alloc, name),
                                    cli_value(state, "State")));
        print_usage(alloc, stats, name);
        if (cli_is_on(cli, "stats"))
            print_all_measured(stats, name);
        print_volumes(alloc, name);
        print_events(state);
    }
    json_decref(stats);
    return status;
}

static int run_status(struct cli *cli)
{
    json_t *alloc;
    int status = cli_find_alloc(cli, cli_argument(cli, 0), &alloc);

    if (status != 0)
        return status;
    if (cli->json) {
        cli_print_json(alloc);
    } else if (cli_switch(cli, "short")) {
        print_alloc(cli, alloc);
        print_tasks_short(cli, alloc);
    } else {
        status = cli_show_alloc(cli, alloc);
    }
    json_decref(alloc);
    return status;
}

const struct cli_verb cli_alloc_status = {
    .group = "alloc",
    .name = "status",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "Show an alloc with its tasks, what they use and what became of them",
    .help = "  The beginning of an id is enough.\n\n"
            "    $ cairn alloc status 3f2a91c4",
    .flags = status_flags,
    .run = run_status,
};

/* --- restart, signal, stop --- */

/* PUT BODY (moved) to PATH_FORMAT of the alloc that the first argument names. */
static int put_alloc(struct cli *cli, const char *path_format, json_t *body)
{
    char path[CLI_URL_SIZE];
    json_t *alloc, *answer;
    int status = cli_find_alloc(cli, cli_argument(cli, 0), &alloc);

    check(body != NULL);
    if (status == 0) {
        status =
            cli_put(cli, cli_path(cli, path, path_format, cli_value(alloc, "ID")), body, &answer);
        json_decref(alloc);
    }
    if (status == 0) {
        if (cli->json)
            cli_print_json(answer);
        json_decref(answer);
    }
    json_decref(body);
    return status;
}

/* The task that is named behind the alloc, or by a flag, as Nomad has it in both ways. */
static const char *task_argument(const struct cli *cli)
{
    const char *task = cli_argument(cli, 1);

    return task != NULL ? task : cli_text(cli, "task", "");
}

static const struct cli_flag restart_flags[] = {
    {"task", FLAG_TEXT, "TASK", "only this one, as the second argument"},
    {"all-tasks", FLAG_SWITCH, NULL, "also those that have ended, all in lifecycle order"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int run_restart(struct cli *cli)
{
    return put_alloc(cli, "/v1/client/allocation/%s/restart",
                     json_pack("{s:s, s:b}", "TaskName", task_argument(cli), "AllTasks",
                               cli_switch(cli, "all-tasks")));
}

const struct cli_verb cli_alloc_restart = {
    .group = "alloc",
    .name = "restart",
    .arguments = "ID [TASK]",
    .min = 1,
    .max = 2,
    .summary = "Restart the running tasks of an alloc, or one of them",
    .help = "  The alloc stays where and what it is; the restart policy does not count it.\n"
            "  With -all-tasks every task but those of poststop is ended, the leader first and\n"
            "  sidecars last; then they start as they did at first: prestart, main, poststart.\n\n"
            "    $ cairn alloc restart 3f2a91c4 web",
    .flags = restart_flags,
    .run = run_restart,
};

static const struct cli_flag signal_flags[] = {
    {"s", FLAG_TEXT, "SIGNAL", "default SIGKILL"},
    {"task", FLAG_TEXT, "TASK", "only this one, as the second argument"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int run_signal(struct cli *cli)
{
    return put_alloc(cli, "/v1/client/allocation/%s/signal",
                     json_pack("{s:s, s:s}", "Task", task_argument(cli), "Signal",
                               cli_text(cli, "s", "SIGKILL")));
}

const struct cli_verb cli_alloc_signal = {
    .group = "alloc",
    .name = "signal",
    .arguments = "ID [TASK]",
    .min = 1,
    .max = 2,
    .summary = "Send a signal to the running tasks of an alloc, or to one of them",
    .help = "    $ cairn alloc signal -s SIGHUP 3f2a91c4 web",
    .flags = signal_flags,
    .run = run_signal,
};

static const struct cli_flag stop_flags[] = {
    {"detach", FLAG_SWITCH, NULL, "do not wait: nobody does, in any case"},
    {"no-shutdown-delay", FLAG_SWITCH, NULL, "wait for no shutdown_delay, be it under way"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int run_stop(struct cli *cli)
{
    return put_alloc(cli,
                     cli_switch(cli, "no-shutdown-delay")
                         ? "/v1/allocation/%s/stop?no_shutdown_delay=true"
                         : "/v1/allocation/%s/stop",
                     json_object());
}

const struct cli_verb cli_alloc_stop = {
    .group = "alloc",
    .name = "stop",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "Stop one alloc",
    .help = "  To stop all of a job use: cairn job stop\n\n"
            "    $ cairn alloc stop 3f2a91c4",
    .flags = stop_flags,
    .run = run_stop,
};
