/* cairn volume snapshot.  The words are those of nomad v2.0.5 command/volume_snapshot_*.go. */
#include "agent/cli/volume/volume.h"

#include <stdlib.h>
#include <string.h>

static const struct cli_flag snapshot_flags[] = {
    {"plugin", FLAG_TEXT, "ID", "list: of which plugin"},
    {"per-page", FLAG_NUMBER, "N", "list: at most so many"},
    {"page-token", FLAG_TEXT, "TOKEN", "list: behind that page"},
    {"parameter", FLAG_TEXT, "KEY=VALUE", "create: for the plugin; repeatable"},
    {"secret", FLAG_TEXT, "KEY=VALUE", "for the plugin, over those of the volume; repeatable"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int print_snapshots(const struct cli *cli, const json_t *answer)
{
    const json_t *list = json_object_get(answer, "Snapshots"), *item;
    struct cli_table table = {0};
    size_t at;

    if (cli->json) {
        cli_print_json(list);
        return CLI_OK;
    }
    cli_row(&table, "Snapshot ID", "Volume ID", "Size", "Create Time", "Ready?");
    json_array_foreach(list, at, item)
    {
        int64_t made_s = json_integer_value(json_object_get(item, "CreateTime"));
        uint64_t bytes = (uint64_t)json_integer_value(json_object_get(item, "SizeBytes"));

        cli_row(&table, cli_value(item, "ID"), cli_value(item, "ExternalSourceVolumeID"),
                cli_bytes(bytes),
                made_s > INT64_MAX / 1000000000 ? "" : cli_time(made_s * 1000000000),
                cli_value(item, "IsReady"));
    }
    cli_table_print(&table, stdout);
    if (cli_value(answer, "NextToken")[0] != '\0')
        (void)printf("\nThere are more: -page-token %s\n", cli_value(answer, "NextToken"));
    return CLI_OK;
}

static int list_snapshots(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    const char *plugin = cli_text(cli, "plugin", NULL);
    int64_t per_page = 30;
    json_t *answer;

    if (plugin == NULL)
        return cli_fail(CLI_USAGE, "of which plugin? -plugin ID");
    if (cli_number(cli, "per-page", &per_page) != 0)
        return CLI_USAGE;
    int status = cli_get(
        cli,
        cli_path(cli, path, "/v1/volumes/snapshot?plugin_id=%s&per_page=%s&next_token=%s", plugin,
                 cli_format("%lld", (long long)per_page), cli_text(cli, "page-token", "")),
        &answer, NULL);
    if (status != 0)
        return status;
    status = print_snapshots(cli, answer);
    json_decref(answer);
    return status;
}

static int create_snapshot(struct cli *cli, const char *name)
{
    char path[CLI_URL_SIZE];
    json_t *entry, *answer, *parameters = json_object();
    const char *pair;

    for (size_t i = 0; (pair = cli_text_again(cli, "parameter", i)) != NULL; i++) {
        const char *value = strchr(pair, '=');

        if (value != NULL)
            (void)json_object_set_new(parameters, cli_format("%.*s", (int)(value - pair), pair),
                                      json_string(value + 1)); /* no UTF-8: none */
    }
    int status = volume_find(cli, cli_argument(cli, 1), &entry);
    if (status != 0) {
        json_decref(parameters);
        return status;
    }
    json_t *body = json_pack("{s:[{s:s, s:s, s:o}]}", "Snapshots", "SourceVolumeID",
                             cli_value(entry, "ID"), "Name", name, "Parameters", parameters);
    if (body == NULL)
        status = cli_fail(CLI_USAGE, "the name is no UTF-8");
    cli->namespace = cli_value(entry, "Namespace");
    if (status == 0)
        status = cli_put(cli, cli_path(cli, path, "/v1/volumes/snapshot"), body, &answer);
    json_decref(body);
    json_decref(entry);
    if (status != 0)
        return status;
    status = print_snapshots(cli, answer);
    json_decref(answer);
    return status;
}

static int delete_snapshot(struct cli *cli, const char *plugin, const char *id)
{
    char path[CLI_URL_SIZE];
    struct cli_reply reply;
    int status = cli_call(
        cli, "DELETE",
        cli_path(cli, path, "/v1/volumes/snapshot?plugin_id=%s&snapshot_id=%s", plugin, id), NULL,
        &reply);

    if (status != 0)
        return status;
    free(reply.body);
    (void)printf("Deleted snapshot %s\n", id);
    return CLI_OK;
}

static int run_snapshot(struct cli *cli)
{
    const char *what = cli_argument(cli, 0);
    int status = volume_add_secrets(cli);

    if (status != 0)
        return status;
    if (text_equal(what, "list") && cli_argument(cli, 1) == NULL)
        return list_snapshots(cli);
    if (text_equal(what, "create") && cli_argument(cli, 2) != NULL)
        return create_snapshot(cli, cli_argument(cli, 2));
    if (text_equal(what, "delete") && cli_argument(cli, 2) != NULL)
        return delete_snapshot(cli, cli_argument(cli, 1), cli_argument(cli, 2));
    return cli_fail(CLI_USAGE,
                    "write snapshot create VOLUME NAME, snapshot delete PLUGIN SNAPSHOT, "
                    "or snapshot list -plugin ID");
}

const struct cli_verb cli_volume_snapshot = {
    .group = "volume",
    .name = "snapshot",
    .arguments = "create VOLUME NAME | delete PLUGIN SNAPSHOT | list -plugin ID",
    .min = 1,
    .max = 3,
    .summary = "Make, delete and list snapshots of volumes",
    .help = "    $ cairn volume snapshot create database before-the-upgrade\n"
            "    $ cairn volume snapshot list -plugin hostpath\n"
            "    $ cairn volume snapshot delete hostpath snap-0123",
    .flags = snapshot_flags,
    .run = run_snapshot,
};
