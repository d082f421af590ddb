/*
 * cairn service and cairn alloc checks: who offers what under a name, and whether it answers.
 *
 * Follows nomad v2.0.5 command/service_list.go, service_info.go and alloc_checks.go.
 */
#include "agent/cli/cli.h"

#include <stdlib.h>
#include <string.h>

static const char *tags_text(const json_t *tags)
{
    char text[1024] = "[";
    const json_t *tag;
    size_t at;

    json_array_foreach(tags, at, tag)
    {
        (void)text_append(text, sizeof(text), at > 0 ? "," : ""); /* what fits */
        (void)text_append(text, sizeof(text), json_string_value(tag));
    }
    (void)text_append(text, sizeof(text), "]");
    return cli_format("%s", text);
}

/* --- list --- */

static void print_names(const struct cli *cli, const json_t *namespaces)
{
    const json_t *namespace, *service;
    bool all = text_equal(cli->namespace, "*");
    struct cli_table table = {0};
    size_t at, place;

    if (all)
        cli_row(&table, "Service Name", "Namespace", "Tags");
    else
        cli_row(&table, "Service Name", "Tags");
    json_array_foreach(namespaces, at, namespace)
    {
        json_array_foreach(json_object_get(namespace, "Services"), place, service)
        {
            const char *name = cli_value(service, "ServiceName");
            const char *tags = tags_text(json_object_get(service, "Tags"));
            if (all)
                cli_row(&table, name, cli_value(namespace, "Namespace"), tags);
            else
                cli_row(&table, name, tags);
        }
    }
    cli_table_print(&table, stdout);
}

static int run_list(struct cli *cli)
{
    json_t *list;
    int status = cli_get(cli, "/v1/services", &list, NULL);

    if (status != 0)
        return status;
    if (cli->json)
        cli_print_json(list);
    else if (json_array_size(list) == 0)
        (void)puts("No service registrations found");
    else
        print_names(cli, list);
    json_decref(list);
    return CLI_OK;
}

const struct cli_verb cli_service_list = {
    .group = "service",
    .name = "list",
    .summary = "List the names under which allocs offer something",
    .help = "  A name is there as long as what offers it runs.\n\n"
            "    $ cairn service list",
    .run = run_list,
};

/* --- info --- */

static const char *address_of(const json_t *service)
{
    const char *address = cli_value(service, "Address"), *port = cli_value(service, "Port");

    if (text_equal(port, "0"))
        return address;
    return cli_format(strchr(address, ':') != NULL ? "[%s]:%s" : "%s:%s", address, port);
}

static void print_short(const struct cli *cli, const json_t *list)
{
    struct cli_table table = {0};
    const json_t *service;
    size_t at;

    cli_row(&table, "Job ID", "Address", "Tags", "Node ID", "Alloc ID");
    json_array_foreach(list, at, service) cli_row(
        &table, cli_value(service, "JobID"), address_of(service),
        tags_text(json_object_get(service, "Tags")), cli_short(cli, cli_value(service, "NodeID")),
        cli_short(cli, cli_value(service, "AllocID")));
    cli_table_print(&table, stdout);
}

static void print_whole(const json_t *list)
{
    const json_t *service;
    size_t at;

    json_array_foreach(list, at, service)
    {
        struct cli_table facts = {0};
        if (at > 0)
            (void)puts("");
        cli_row(&facts, "ID", cli_value(service, "ID"));
        cli_row(&facts, "Service Name", cli_value(service, "ServiceName"));
        cli_row(&facts, "Namespace", cli_value(service, "Namespace"));
        cli_row(&facts, "Job ID", cli_value(service, "JobID"));
        cli_row(&facts, "Alloc ID", cli_value(service, "AllocID"));
        cli_row(&facts, "Node ID", cli_value(service, "NodeID"));
        cli_row(&facts, "Datacenter", cli_value(service, "Datacenter"));
        cli_row(&facts, "Address", address_of(service));
        cli_row(&facts, "Tags", tags_text(json_object_get(service, "Tags")));
        cli_table_print_pairs(&facts, stdout);
    }
}

static int run_info(struct cli *cli)
{
    const char *name = cli_argument(cli, 0);
    char path[CLI_URL_SIZE];
    json_t *list;
    int status = cli_get(cli, cli_path(cli, path, "/v1/service/%s", name), &list, NULL);

    if (status != 0)
        return status;
    if (json_array_size(list) == 0)
        status = cli_fail(CLI_FAILED,
                          "nobody offers a service \"%s\"; `cairn service list` shows all", name);
    else if (cli->json)
        cli_print_json(list);
    else if (cli_switch(cli, "verbose"))
        print_whole(list);
    else
        print_short(cli, list);
    json_decref(list);
    return status;
}

static const struct cli_flag info_flags[] = {
    {"verbose", FLAG_SWITCH, NULL, "all that is known of each, whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

const struct cli_verb cli_service_info = {
    .group = "service",
    .name = "info",
    .arguments = "NAME",
    .min = 1,
    .max = 1,
    .summary = "Show who offers a service, and where",
    .help = "    $ cairn service info web",
    .flags = info_flags,
    .run = run_info,
};

/* --- checks --- */

static const char *task_of(const json_t *result)
{
    const char *task = cli_value(result, "Task");

    return *task == '\0' ? "(group)" : task;
}

void cli_print_checks(const json_t *results)
{
    struct cli_table table = {0};
    const json_t *result;
    const char *id;

    if (json_object_size(results) == 0)
        return;
    (void)puts("\nNomad Service Checks:");
    cli_row(&table, "Service", "Task", "Name", "Mode", "Status");
    json_object_foreach((json_t *)(uintptr_t)results, id, result)
        cli_row(&table, cli_value(result, "Service"), task_of(result), cli_value(result, "Check"),
                cli_value(result, "Mode"), cli_value(result, "Status"));
    cli_table_print(&table, stdout);
}

static void print_result(const json_t *result)
{
    int64_t at = json_integer_value(json_object_get(result, "Timestamp"));
    struct cli_table facts = {0};

    cli_row(&facts, "ID", cli_value(result, "ID"));
    cli_row(&facts, "Name", cli_value(result, "Check"));
    cli_row(&facts, "Group", cli_value(result, "Group"));
    cli_row(&facts, "Task", task_of(result));
    cli_row(&facts, "Service", cli_value(result, "Service"));
    cli_row(&facts, "Status", cli_value(result, "Status"));
    if (json_object_get(result, "StatusCode") != NULL)
        cli_row(&facts, "StatusCode", cli_value(result, "StatusCode"));
    cli_row(&facts, "Mode", cli_value(result, "Mode"));
    cli_row(&facts, "Timestamp", at == 0 ? "<none>" : cli_time(at * 1000000000));
    cli_row(&facts, "Output", cli_value(result, "Output"));
    cli_table_print_pairs(&facts, stdout);
}

static int run_checks(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    json_t *alloc, *results, *result;
    const char *id;
    int status = cli_find_alloc(cli, cli_argument(cli, 0), &alloc);

    if (status != 0)
        return status;
    status =
        cli_get(cli, cli_path(cli, path, "/v1/client/allocation/%s/checks", cli_value(alloc, "ID")),
                &results, NULL);
    json_decref(alloc);
    if (status != 0)
        return status;
    if (cli->json)
        cli_print_json(results);
    else
        (void)printf("Status of %zu Nomad Service Checks\n", json_object_size(results));
    json_object_foreach(results, id, result)
    {
        if (cli->json)
            break;
        (void)puts("");
        print_result(result);
    }
    json_decref(results);
    return CLI_OK;
}

const struct cli_verb cli_alloc_checks = {
    .group = "alloc",
    .name = "checks",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "Show what the checks of an alloc's services have found last",
    .help = "    $ cairn alloc checks 3f2a91c4",
    .run = run_checks,
};
